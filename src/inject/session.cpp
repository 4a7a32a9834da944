// What iket/session.h calls, by name. The header says what each means; it does nothing where these
// are not to be found.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "inject/guest.h"
#include "inject/host_marks.h"
#include "inject/recording.h"
#include "session/control.h"

#define IKET_EXPORT extern "C" __attribute__((visibility("default")))

using iket::inject::Guest;

IKET_EXPORT int iket_session_attached() noexcept { return Guest::MayTrace() ? 1 : 0; }

IKET_EXPORT void iket_session_start() noexcept { iket::inject::OpenByProgram(); }

IKET_EXPORT void iket_session_stop() noexcept { iket::inject::CloseByProgram(); }

IKET_EXPORT void iket_session_mark(const char* text) noexcept { iket::inject::AddHostMark(text); }

// As snprintf: the length of the path, of which what fits is written; 0 if there is none.
IKET_EXPORT size_t iket_session_snapshot(char* path, size_t capacity) noexcept {
  Guest* const guest = Guest::Existing();
  const auto answer =
      guest != nullptr ? guest->Ask(iket::session::kOwnSnapshotRequest) : std::nullopt;
  const size_t length = answer ? answer->size() : 0;
  if (path == nullptr || capacity == 0) return length;
  const size_t fits = std::min(length, capacity - 1);
  if (fits > 0) std::memcpy(path, answer->data(), fits);
  path[fits] = 0;
  return length;
}

IKET_EXPORT int iket_session_flush() noexcept {
  Guest* const guest = Guest::Existing();
  return guest != nullptr && guest->Ask(iket::session::kFlushRequest) ? 1 : 0;
}
