// timer_widening.h: the 64-bit %globaltimer of each begin, from its low word. Private to the room.
#pragma once

#include <cstdint>
#include <span>

#include "trace/warp_scan.h"

namespace iket::trace {

// The latest time not after `later_ns` whose low word is `low`, moved back by as many ranges of the
// low word (4.3 s) as bring it nearest to at least `at_least_ns` before `later_ns`.
uint64_t WidenBackwards(uint64_t later_ns, uint32_t low, double at_least_ns);

// How many cycles an SM makes in a ns, and how far the mean over a long time may be from that (as a
// share).
struct SmFrequency {
  double ghz = 0;
  double doubt = 0;
};

// Fills begin_timer_ns of the spans of one ring, oldest first. `host_ns` is of their launches, 0
// unknown; `reference_ns` is a time of this capture, for rings whose header has none. A warp so
// long that the frequency may be off by half a range over it gets kWarpWrapGap.
void WidenTimers(std::span<WarpSpan> ring, std::span<const int64_t> host_ns,
                 const SmFrequency& frequency, uint64_t reference_ns);

}  // namespace iket::trace
