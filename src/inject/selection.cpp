#include "inject/selection.h"

#include <cstddef>
#include <new>
#include <optional>

#include "capture/demangle.h"
#include "inject/say.h"
#include "inject/settings.h"

namespace iket::inject {
namespace {

struct State {
  session::Selection selection;
  std::optional<session::KernelChooser> chooser;
  bool needs_sinks = false;
};

Result<State> Read() {
  auto selection = session::DecodeSelection(Setting(session::kEnvSelection));
  if (!selection) return tl::unexpected(selection.error());
  auto chooser = session::KernelChooser::Make(*selection);
  if (!chooser) return tl::unexpected(chooser.error());
  // What is chosen when an image is loaded needs none, but for kernels that share functions.
  session::Selection rest = *selection;
  rest.events.clear();
  rest.triggers.clear();
  return State{.selection = std::move(*selection),
               .chooser = std::move(*chooser),
               .needs_sinks = rest != session::Selection()};
}

// Never destroyed, since hooks may run until the end, and made without memory that may lack.
const State& Get() noexcept {
  alignas(State) static std::byte storage[sizeof(State)];
  static const State* const kState = [] {
    auto* state = new (storage) State;
    try {
      if (auto read = Read()) {
        *state = std::move(*read);
      } else {
        Say(read.error().message + "; all kernels are recorded");
      }
    } catch (...) {
      Say("out of memory; all kernels are recorded");
    }
    return state;
  }();
  return *kState;
}

}  // namespace

const session::Selection& Wanted() noexcept { return Get().selection; }

patch::Choice Choose(const std::string& mangled) {
  const State& state = Get();
  if (!state.chooser) return {};
  const std::string demangled = capture::DemangledName(mangled);
  const bool warps = state.chooser->WantsWarps(mangled, demangled);
  return {.wanted = warps || state.chooser->Wants(mangled, demangled),
          .unmarked = warps,
          .filter = state.chooser->Ctas(mangled)};
}

bool WantsEvent(const std::string& name) {
  const State& state = Get();
  return !state.chooser || state.chooser->WantsEvent(name);
}

bool WantsAllEvents() noexcept { return Wanted().events.empty(); }

bool WantsUnmarked() noexcept { return !Wanted().warps.empty() || !Wanted().triggers.empty(); }

bool NeedsSinks() noexcept { return Get().needs_sinks; }

}  // namespace iket::inject
