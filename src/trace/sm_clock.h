// sm_clock.h: from cycles of one SM to trace time.
//
// `%clock` of an SM, unwrapped to 64 bits, against `%globaltimer`, which all SMs share and which
// steps by 32 ns. The relation is a polyline: one straight piece for as long as the SM's frequency
// stood still, which in most captures is all of it.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace iket::trace {

struct SmClock {
  // A corner of the polyline. `slope` holds from here to the next one, in ns a cycle.
  struct Knot {
    uint64_t cycles = 0;
    double ns = 0;  // since the model's origin
    double slope = 0;
  };

  std::vector<Knot> knots;     // ascending; empty if the SM recorded no pair
  uint64_t pairs = 0;          // (cycles, globaltimer) pairs that the fit is made of
  uint64_t outliers = 0;       // pairs that were left out of it
  double residual_max_ns = 0;  // over the pairs that were used
  double residual_rms_ns = 0;
  bool wrap_gap = false;  // a silence so long that a wrap of %clock may have been missed

  // Ns since the model's origin. Before the first knot and after the last one the nearest piece is
  // continued. Never falls when `cycles` grows. 0 without any knot.
  double NsOf(uint64_t cycles) const {
    if (knots.empty()) return 0;
    const Knot& knot = knots.size() == 1 ? knots.front() : KnotOf(cycles);
    return knot.ns + static_cast<double>(static_cast<int64_t>(cycles - knot.cycles)) * knot.slope;
  }
  // Puts it on another axis, by what that makes of a time on this one; `moved` never falls.
  void Move(const std::function<double(double)>& moved);

  // Mean frequency in GHz (cycles a ns) from first knot to last; 0 if not known.
  double GHz() const;
  // The least and the most that it had for at least `least_ns` at a time; the mean twice where it
  // was never seen for so long.
  std::pair<double, double> LeastAndMostGHz(double least_ns) const;

 private:
  const Knot& KnotOf(uint64_t cycles) const;  // the last one at or before `cycles`, else the first
};

}  // namespace iket::trace
