#include "trace/sm_clock.h"

#include <algorithm>

namespace iket::trace {

double SmClock::GHz() const {
  if (knots.empty() || knots.front().slope <= 0) return 0;
  const Knot& first = knots.front();
  const Knot& last = knots.back();
  if (last.ns <= first.ns) return 1 / first.slope;
  return static_cast<double>(last.cycles - first.cycles) / (last.ns - first.ns);
}

const SmClock::Knot& SmClock::KnotOf(uint64_t cycles) const {
  auto after = std::ranges::upper_bound(knots, cycles, {}, &Knot::cycles);
  return after == knots.begin() ? *after : *(after - 1);
}

}  // namespace iket::trace
