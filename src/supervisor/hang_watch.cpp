#include "supervisor/hang_watch.h"

#include <functional>
#include <string_view>

#include "session/ring_image.h"

namespace iket::supervisor {
namespace {

template <typename T>
uint64_t Mix(uint64_t digest, std::span<const T> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size_bytes());
  return (digest * 0x9e3779b97f4a7c15u) ^ std::hash<std::string_view>()(text);
}

}  // namespace

bool HangWatch::Look(const session::RingMemory& memory, std::chrono::steady_clock::time_point now) {
  const auto window = windows_.Find(memory);
  if (!window) return false;  // said when the rings are read at the end
  uint64_t digest = 1;
  bool running = false;
  const auto done =
      session::ReadRings((*window)->layout(), (*window)->Copy(), [&](const session::SmRings& sm) {
        for (const capture::RingContents& ring : sm.rings) {
          running |= static_cast<uint32_t>(ring.written) != ring.header.cursor;
          digest = Mix(digest, std::span(&ring.header, 1));
          digest = Mix(Mix(digest, ring.older), ring.newer);
        }
      });
  if (!done) return false;
  Seen& seen = seen_[{memory.pid, memory.context}];
  if (!running || digest != seen.digest) {
    seen = {.digest = digest, .since = now, .said = false};
    return false;
  }
  if (seen.said || now - seen.since < patience_) return false;
  seen.said = true;
  return true;
}

}  // namespace iket::supervisor
