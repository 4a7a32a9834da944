#include "trace/timer_widening.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace iket::trace {
namespace {

constexpr double kTimerRange = 4294967296.0;
// By how much begun_by_timer_ns may be too early: how far the timer is ahead of the host's clock is
// known as well as some end was read soon.
constexpr uint64_t kReadDoubtNs = 1'000'000'000;

// The first time not before `earlier_ns` with this low word.
uint64_t WidenForwards(uint64_t earlier_ns, uint32_t low) {
  return earlier_ns + (low - static_cast<uint32_t>(earlier_ns));
}

uint64_t WidenNearest(uint64_t near_ns, uint32_t low) {
  return near_ns + static_cast<uint64_t>(static_cast<int64_t>(
                       static_cast<int32_t>(low - static_cast<uint32_t>(near_ns))));
}

// Kernels begin so soon behind their launch, mostly; and so, where others are in the queue.
constexpr uint64_t kAtOnceNs = 10'000'000, kSoonNs = 1'000'000'000;
constexpr int kMostTries = 100;
// Two clocks may be as close as this by chance, in one case of a hundred.
constexpr double kByChanceCycles = 0x1p32 / 200;
// A step of the timer, 1 us on some GPUs, and more.
constexpr double kStepCycles = 5000;
// Over little time no frequency is further from the mean than this.
constexpr double kLargestShare = 0.02;

// The latest time at which the span can have begun by what is known of its reading; 0 unknown.
uint64_t BegunBy(const WarpSpan& span) {
  return span.begun_by_timer_ns == 0 ? 0 : span.begun_by_timer_ns + kReadDoubtNs;
}

uint64_t BeginOfNewest(const WarpSpan& span, double ghz, uint64_t reference_ns) {
  const uint64_t begun_by = BegunBy(span);
  if (span.has_end_timer) {
    if (begun_by != 0 && begun_by < span.end_timer_ns) {
      return WidenBackwards(begun_by, span.begin_timer_low, 0);
    }
    return WidenBackwards(span.end_timer_ns, span.begin_timer_low,
                          static_cast<double>(span.end_offset) / ghz);
  }
  // The header has the end of the warp before it, or of some of its own lanes.
  const bool own_lanes = (span.flags & kWarpPartialExit) != 0;
  if (begun_by != 0) {
    const uint64_t begin_ns = WidenBackwards(begun_by, span.begin_timer_low, 0);
    const bool behind_end = span.header_end_known && !own_lanes;
    if (!behind_end || begin_ns >= span.end_timer_ns) return begin_ns;
  }
  if (!span.header_end_known) return WidenNearest(reference_ns, span.begin_timer_low);
  return own_lanes ? WidenBackwards(span.end_timer_ns, span.begin_timer_low, 0)
                   : WidenForwards(span.end_timer_ns, span.begin_timer_low);
}

// A moment on the low words of both clocks of an SM, and on the whole timer.
struct Moment {
  uint64_t timer_ns;
  uint32_t clock;
};

enum class Verdict : uint8_t { kAgrees, kSaysNothing, kContradicts };

// Whether an SM comes from one moment to the other at this frequency, give or take a share of it.
Verdict ByClock(const Moment& from, const Moment& to, double ghz, double share) {
  const double cycles = static_cast<double>(to.timer_ns - from.timer_ns) * ghz;
  if (share * cycles > kByChanceCycles) return Verdict::kSaysNothing;
  const double counted = static_cast<double>(to.clock - from.clock);
  const double off = std::abs(counted - std::fmod(cycles, 0x1p32));
  const bool agrees = std::min(off, 0x1p32 - off) <= share * cycles + kStepCycles;
  return agrees ? Verdict::kAgrees : Verdict::kContradicts;
}

// Of latest_ns and the times by ranges of the timer before it, the one that fits the host's
// launches best; of several such the one that fits the clock best, of these the latest. latest_ns
// where no launch is known. `later` began next on the ring.
uint64_t BehindLaunch(const WarpSpan& span, uint64_t latest_ns, const WarpSpan& later,
                      const SinceLaunch& since_launch, const SmFrequency& frequency) {
  const auto verdict = [&](uint64_t timer_ns, double share) {
    return ByClock({timer_ns, span.first_clock}, {later.begin_timer_ns, later.first_clock},
                   frequency.ghz, share);
  };
  // What waited for its turn on this ring is here, however long ago it was launched.
  if (verdict(latest_ns, std::max(frequency.error, kLargestShare)) == Verdict::kAgrees) {
    return latest_ns;
  }
  uint64_t best_ns = latest_ns;
  auto best = std::pair(2, Verdict::kContradicts);
  uint64_t timer_ns = latest_ns;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const auto since = since_launch(span, timer_ns);
    if (!since) break;
    const auto fits = std::pair(*since <= kAtOnceNs ? 0
                                : *since <= kSoonNs ? 1
                                                    : 2,
                                verdict(timer_ns, frequency.error));
    if (fits.first < 2 && fits < best) {
      best = fits;
      best_ns = timer_ns;
    }
    // The first of the times that is in the last range behind the launch, or the next one.
    const uint64_t ranges = std::max<uint64_t>(*since >> 32, 1);
    if (ranges << 32 > timer_ns) break;
    timer_ns -= ranges << 32;
  }
  return best_ns;
}

}  // namespace

uint64_t WidenBackwards(uint64_t later_ns, uint32_t low, double at_least_ns) {
  const uint32_t least = static_cast<uint32_t>(later_ns) - low;
  const double missing = at_least_ns - static_cast<double>(least);
  const double ranges = std::clamp(std::round(missing / kTimerRange), 0.0, 1e6);
  return later_ns - least - (static_cast<uint64_t>(ranges) << 32);
}

void WidenTimers(std::span<WarpSpan> ring, std::span<const int64_t> host_ns,
                 const SinceLaunch& since_launch, const SmFrequency& frequency,
                 uint64_t reference_ns) {
  const WarpSpan* later = nullptr;
  uint64_t later_ns = 0;
  int64_t later_host_ns = 0;
  for (size_t i = ring.size(); i-- > 0;) {
    WarpSpan& span = ring[i];
    if (!span.has_begin) continue;
    const double own_ns =
        static_cast<double>(std::max(span.end_offset, span.last_offset)) / frequency.ghz;
    if (own_ns * frequency.doubt > kTimerRange / 2) span.flags |= kWarpWrapGap;
    if (later == nullptr) {
      // Only the newest span can have the header's end; where that one has no begin it still says
      // when the ones before it were over.
      const WarpSpan& newest = ring.back();
      span.begin_timer_ns =
          i + 1 == ring.size()
              ? BeginOfNewest(span, frequency.ghz, reference_ns)
              : WidenBackwards(newest.end_timer_ns != 0 ? newest.end_timer_ns : reference_ns,
                               span.begin_timer_low, 0);
    } else if (const uint64_t begun_by = BegunBy(span); begun_by != 0 && begun_by < later_ns) {
      span.begin_timer_ns = WidenBackwards(begun_by, span.begin_timer_low, 0);
    } else {
      const double between_launches = host_ns[i] != 0 && later_host_ns != 0
                                          ? static_cast<double>(later_host_ns - host_ns[i])
                                          : 0;
      span.begin_timer_ns =
          WidenBackwards(later_ns, span.begin_timer_low, std::max(own_ns, between_launches));
      if (between_launches == 0 && since_launch) {
        span.begin_timer_ns =
            BehindLaunch(span, span.begin_timer_ns, *later, since_launch, frequency);
      }
    }
    later = &span;
    later_ns = span.begin_timer_ns;
    later_host_ns = host_ns[i];
  }
}

}  // namespace iket::trace
