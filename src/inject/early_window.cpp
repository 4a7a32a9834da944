#include "inject/early_window.h"

#include <map>
#include <mutex>

#include "inject/driver.h"
#include "inject/guest.h"
#include "inject/never_destroyed.h"
#include "inject/ring_room.h"
#include "inject/say.h"
#include "inject/settings.h"
#include "session/message.h"

namespace iket::inject {
namespace {

// By id of the context, which no other will have; nothing where it was tried in vain, or is taken.
std::mutex g_mutex;
std::map<unsigned long long, std::optional<EarlyWindow>>& Windows() {
  return NeverDestroyed<std::map<unsigned long long, std::optional<EarlyWindow>>>();
}

thread_local CUcontext t_mapped = nullptr;

void Map(CUcontext handle) {
  unsigned long long id = 0;
  CUdevice device = 0;
  if (Real().CtxGetId(handle, &id) != CUDA_SUCCESS ||
      Real().CtxGetDevice(&device) != CUDA_SUCCESS) {
    return;
  }
  const std::lock_guard lock(g_mutex);
  const auto [known, is_new] = Windows().try_emplace(id);
  if (!is_new) return;
  const auto room = ChooseRingRoom();
  if (!room || room->in_flight || room->layout.window_bytes() > room->memory_bytes) return;
  const RelaxedCapture relaxed;
  // Before the rings: whatever it takes, the GPU is done with when those are cleared.
  ClockExchanges clocks = ClockExchanges::Begin(device);
  constexpr bool kKeeps = true;
  if (auto window = Window::Create(device, room->layout, kKeeps); window && !window->is_sink()) {
    known->second = EarlyWindow{.window = std::move(*window), .clocks = std::move(clocks)};
  }
}

}  // namespace

bool MapsEarly() noexcept {
  try {
    static const bool kIsWanted = Setting(session::kEnvMapEarly) == "1";
    return kIsWanted;
  } catch (...) {
    return false;
  }
}

void MapEarly() noexcept {
  try {
    CUcontext context = nullptr;
    if (!MapsEarly() || !Real().usable || !Guest::MayTrace() ||
        Real().CtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr ||
        context == t_mapped) {
      return;
    }
    Map(context);
    t_mapped = context;
  } catch (...) {
    Say("out of memory; rings are mapped when there is code to record");
  }
}

std::optional<EarlyWindow> TakeEarlyWindow(unsigned long long context_id,
                                           const ring::Layout& layout) {
  const std::lock_guard lock(g_mutex);
  const auto found = Windows().find(context_id);
  if (found == Windows().end() || !found->second) return std::nullopt;
  const ring::Layout& made = found->second->window.layout();
  if (made.ring_bytes != layout.ring_bytes || made.sm_count != layout.sm_count) return std::nullopt;
  return std::exchange(found->second, std::nullopt);
}

}  // namespace iket::inject
