// What iket/session.h calls, by name. The header says what each means; it does nothing where these
// are not to be found.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>

#include "inject/contexts.h"
#include "inject/embed.h"
#include "inject/guest.h"
#include "inject/host_marks.h"
#include "inject/recording.h"
#include "inject/say.h"
#include "session/control.h"

#define IKET_EXPORT extern "C" __attribute__((visibility("default")))

using iket::inject::Guest;

IKET_EXPORT int iket_session_attached() noexcept { return Guest::MayTrace() ? 1 : 0; }

IKET_EXPORT void iket_session_start() noexcept { iket::inject::OpenByProgram(); }

IKET_EXPORT void iket_session_stop() noexcept { iket::inject::CloseByProgram(); }

IKET_EXPORT void iket_session_mark(const char* text) noexcept { iket::inject::AddHostMark(text); }

namespace {

// The paths of a snapshot, by the supervisor or, where there is none, made here. Says what failed.
std::optional<std::string> Snapshot(Guest& guest) noexcept {
  if (guest.HasSupervisor()) return guest.Ask(iket::session::kOwnSnapshotRequest);
  try {
    auto path = guest.NewSnapshotPath();
    auto written = path ? iket::inject::WriteHere(*path, false) : std::move(path);
    if (written) return std::move(*written);
    iket::inject::Say("no snapshot: " + written.error().message);
  } catch (...) {
    iket::inject::Say("out of memory; no snapshot");
  }
  return std::nullopt;
}

bool Flush(Guest& guest) noexcept {
  if (guest.HasSupervisor()) return guest.Ask(iket::session::kFlushRequest).has_value();
  const uint64_t lost_before = guest.chunks_lost();
  const auto flushed = iket::inject::ReadAllRings({.follow = true}, [](const auto&, auto) {});
  if (!flushed) iket::inject::Say("not flushed: " + flushed.error().message);
  // What is lost has been said when it was met.
  return flushed.has_value() && guest.chunks_lost() == lost_before;
}

}  // namespace

// As snprintf: the length of the path, of which what fits is written; 0 if there is none.
IKET_EXPORT size_t iket_session_snapshot(char* path, size_t capacity) noexcept {
  Guest* const guest = Guest::Existing();
  const auto written = guest != nullptr ? Snapshot(*guest) : std::nullopt;
  const size_t length = written ? written->size() : 0;
  if (path == nullptr || capacity == 0) return length;
  const size_t fits = std::min(length, capacity - 1);
  if (fits > 0) std::memcpy(path, written->data(), fits);
  path[fits] = 0;
  return length;
}

IKET_EXPORT int iket_session_flush() noexcept {
  Guest* const guest = Guest::Existing();
  return guest != nullptr && Flush(*guest) ? 1 : 0;
}
