// ring_reading.h: the rings of one context, read in this process: where no supervisor has them, or
// where the program itself wants to have them in a file.
//
// Cost: copies the rings of each SM that was used, some MiB at a time, on a stream of our own. A
// reading that follows keeps a copy of all rings that were used.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "capture/content.h"
#include "inject/window.h"
#include "session/ring_follower.h"

namespace iket::inject {

class RingReading {
 public:
  using Append =
      std::function<void(const capture::RingMoment&, std::span<const capture::RingContents>)>;

  // Reads the rings of `window`, whose context must be current, and hands them to `append`: all
  // that is in them, or, once it follows, what is new since the last reading. `quiet`: no kernel
  // writes to them meanwhile. Error: kSystem; what was read by then has been handed over.
  Result<void> Read(const Window& window, uint32_t context, bool quiet, const Append& append);

  // From now on each record is given once, so that readings add up and outlive what overwrites it.
  void Follow() { follows_ = true; }
  bool follows() const { return follows_; }

 private:
  Result<void> ReadNews(const Window& window, uint32_t context, bool quiet, const Append& append);

  bool follows_ = false;
  std::vector<session::RingFollower> followers_;  // by ring; made where a ring is used
  uint64_t moments_ = 0;
};

}  // namespace iket::inject
