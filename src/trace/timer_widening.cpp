#include "trace/timer_widening.h"

#include <algorithm>
#include <cmath>

namespace iket::trace {
namespace {

constexpr double kTimerRange = 4294967296.0;

// The first time not before `earlier_ns` with this low word.
uint64_t WidenForwards(uint64_t earlier_ns, uint32_t low) {
  return earlier_ns + (low - static_cast<uint32_t>(earlier_ns));
}

uint64_t WidenNearest(uint64_t near_ns, uint32_t low) {
  return near_ns + static_cast<uint64_t>(static_cast<int64_t>(
                       static_cast<int32_t>(low - static_cast<uint32_t>(near_ns))));
}

uint64_t BeginOfNewest(const WarpSpan& span, double ghz, uint64_t reference_ns) {
  if (span.has_end_timer) {
    return WidenBackwards(span.end_timer_ns, span.begin_timer_low,
                          static_cast<double>(span.end_offset) / ghz);
  }
  if (!span.header_end_known) return WidenNearest(reference_ns, span.begin_timer_low);
  // The header has the end of the warp before it, or of some of its own lanes.
  const bool own_lanes = (span.flags & kWarpPartialExit) != 0;
  return own_lanes ? WidenBackwards(span.end_timer_ns, span.begin_timer_low, 0)
                   : WidenForwards(span.end_timer_ns, span.begin_timer_low);
}

}  // namespace

uint64_t WidenBackwards(uint64_t later_ns, uint32_t low, double at_least_ns) {
  const uint32_t least = static_cast<uint32_t>(later_ns) - low;
  const double missing = at_least_ns - static_cast<double>(least);
  const double ranges = std::clamp(std::round(missing / kTimerRange), 0.0, 1e6);
  return later_ns - least - (static_cast<uint64_t>(ranges) << 32);
}

void WidenTimers(std::span<WarpSpan> ring, std::span<const int64_t> host_ns,
                 const SmFrequency& frequency, uint64_t reference_ns) {
  uint64_t later_ns = 0;
  int64_t later_host_ns = 0;
  bool known = false;
  for (size_t i = ring.size(); i-- > 0;) {
    WarpSpan& span = ring[i];
    if (!span.has_begin) continue;
    const double own_ns =
        static_cast<double>(std::max(span.end_offset, span.last_offset)) / frequency.ghz;
    if (own_ns * frequency.doubt > kTimerRange / 2) span.flags |= kWarpWrapGap;
    if (!known) {
      // Only the newest span can have the header's end; where that one has no begin it still says
      // when the ones before it were over.
      const WarpSpan& newest = ring.back();
      span.begin_timer_ns =
          i + 1 == ring.size()
              ? BeginOfNewest(span, frequency.ghz, reference_ns)
              : WidenBackwards(newest.end_timer_ns != 0 ? newest.end_timer_ns : reference_ns,
                               span.begin_timer_low, 0);
      known = true;
    } else {
      const double between_launches = host_ns[i] != 0 && later_host_ns != 0
                                          ? static_cast<double>(later_host_ns - host_ns[i])
                                          : 0;
      span.begin_timer_ns =
          WidenBackwards(later_ns, span.begin_timer_low, std::max(own_ns, between_launches));
    }
    later_ns = span.begin_timer_ns;
    later_host_ns = host_ns[i];
  }
}

}  // namespace iket::trace
