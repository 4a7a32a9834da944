// hang_watch.h: notices that warps are running and none has recorded anything for some time.
//
// Cost: a look copies the rings of the SMs in use, as a snapshot does.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

#include "session/message.h"
#include "supervisor/ring_memory.h"

namespace iket::supervisor {

class HangWatch {
 public:
  HangWatch(std::chrono::nanoseconds patience, RingWindows& windows)
      : patience_(patience), windows_(windows) {}

  // Looks at one context. True once for each time that it hangs: some warp had not ended, and
  // nothing of its rings has changed since `patience` before `now`.
  bool Look(const session::RingMemory& memory, std::chrono::steady_clock::time_point now);

  // How long to wait between looks.
  std::chrono::nanoseconds period() const { return patience_ / 4; }
  std::chrono::nanoseconds patience() const { return patience_; }

 private:
  struct Seen {
    uint64_t digest = 0;
    std::chrono::steady_clock::time_point since;
    bool said = false;
  };

  std::chrono::nanoseconds patience_;
  RingWindows& windows_;
  std::map<std::pair<uint32_t, uint32_t>, Seen> seen_;  // by pid and context
};

}  // namespace iket::supervisor
