// timer_widening.h: the 64-bit %globaltimer of each begin, from its low word. Private to the room.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "trace/warp_scan.h"

namespace iket::trace {

// The latest time not after `later_ns` whose low word is `low`, moved back by as many ranges of the
// low word (4.3 s) as bring it nearest to at least `at_least_ns` before `later_ns`.
uint64_t WidenBackwards(uint64_t later_ns, uint32_t low, double at_least_ns);

// How many cycles an SM makes in a ns. As shares of that: how far the mean over a long time may be
// from it, and how well it was measured, for SMs that keep their frequency.
struct SmFrequency {
  double ghz = 0;
  double doubt = 0;
  double error = 0;
};

// How long before a time of the timer the host launched something that may have run the span's
// kernel, ns; nothing if that is not known, or no such launch was before it.
using SinceLaunch = std::function<std::optional<uint64_t>(const WarpSpan&, uint64_t timer_ns)>;

// Fills begin_timer_ns of the spans of one ring, oldest first. Where begun_by_timer_ns is known a
// warp began at the latest time that fits it: exactly right if it was read less than 3 s after it
// began. Else by its launch: `host_ns`, 0 unknown, or the time that `since_launch` finds soon
// behind one, helped by the clock where there are several. `reference_ns` is a time of this
// capture, for rings whose header has none. A warp so long that the frequency may be off by half a
// range over it gets kWarpWrapGap.
void WidenTimers(std::span<WarpSpan> ring, std::span<const int64_t> host_ns,
                 const SinceLaunch& since_launch, const SmFrequency& frequency,
                 uint64_t reference_ns);

}  // namespace iket::trace
