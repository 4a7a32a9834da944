// clock_fit.h: 32-bit cycle clocks made 64 bits wide, and the line from cycles to nanoseconds.
//
// Pure functions over pairs (%clock, %globaltimer) of one SM; clock_alignment.h has the warps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trace/sm_clock.h"

namespace iket::trace {

inline constexpr int64_t kClockRange = int64_t{1} << 32;
inline constexpr int64_t kHalfClockRange = int64_t{1} << 31;

// A moment on both clocks: unwrapped cycles, and ns since some origin.
struct ClockPair {
  int64_t cycles = 0;
  int64_t ns = 0;
};

// Widens clocks of one SM, given in the order of the timer.
class ClockUnwrapper {
 public:
  // `ghz`: cycles a ns, about. A silence of s seconds is bridged right if the mean frequency over
  // it is known to 2^31 cycles: at 2 GHz to 100 % over a second, to 10 % over ten.
  explicit ClockUnwrapper(double ghz) : ghz_(ghz) {}

  // The 64-bit value congruent to `clock` that is nearest to what the pair before and the frequency
  // predict; the clock itself for the first one.
  int64_t Unwrap(uint32_t clock, uint64_t timer_ns) const;
  // Says that the SM stood at `cycles` when the timer showed `timer_ns`.
  void Anchor(int64_t cycles, uint64_t timer_ns);

  bool anchored() const { return anchored_; }
  // True if two anchors in a row were so far apart that a wrap may have been missed or invented.
  bool wrap_gap() const { return wrap_gap_; }

 private:
  double ghz_;
  bool anchored_ = false;
  bool wrap_gap_ = false;
  int64_t cycles_ = 0;
  uint64_t timer_ns_ = 0;
};

// The step of the timer: the largest power of two (at most 2^20 ns) that divides all values.
int64_t TimerStep(std::span<const uint64_t> timers_ns);

// Fits a polyline to pairs sorted by cycles, which are not negative: least squares within each
// piece. A new piece begins where pairs leave the old one by more than 4 timer steps + 100 ns (what
// two reads of the timer and the instructions between may differ by) and stay away, and behind a
// silence over which kUnsteady comes to a step of the timer. One or two pairs that leave alone are
// outliers, but where an SM that wandered by kWander in the silences around them explains them. A
// piece too short to show its slope better than to kSlopeDoubt takes `typical_slope` (ns a cycle),
// if that fits it.
SmClock FitClock(std::span<const ClockPair> pairs, int64_t timer_step_ns, double typical_slope);

// 10 ns a millisecond: the frequency of an SM is known no better from the SMs beside it.
inline constexpr double kSlopeDoubt = 1e-5;
// By so much it changes for a while where nothing seems to happen: H200s in a soak were 4 us off
// after 0.7 s. On captures of those, pieces that bridge 20 ms leave an rms of 50 ns, 3 ms of 25 ns,
// 1 ms of 16 ns.
inline constexpr double kUnsteady = 3e-5;
// By so much its mean over one silence may differ from that over the next: 1 us a millisecond. A
// warp that lost a microsecond between its two reads is among others, which know better, or nobody
// can tell.
inline constexpr double kWander = 1e-3;

struct Weighted {
  double value = 0;
  double weight = 0;
};
// The least of `values` up to which lies half of all weight; nothing if there are none.
std::optional<double> WeightedMedian(std::vector<Weighted> values);

// The slope that pairs of many SMs show together; `otherwise` if they show none. Robust: the median
// of the SMs' own slopes, each weighing as much as its pairs lie apart.
class CommonSlope {
 public:
  void Add(std::span<const ClockPair> pairs);
  double Get(double otherwise) const;

 private:
  std::vector<Weighted> slopes_;
};

}  // namespace iket::trace
