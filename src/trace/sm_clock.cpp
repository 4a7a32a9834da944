#include "trace/sm_clock.h"

#include <algorithm>

namespace iket::trace {

void SmClock::Move(const std::function<double(double)>& moved) {
  for (size_t i = 0; i < knots.size(); ++i) {
    Knot& knot = knots[i];
    // A piece keeps its ends; the last one gets the pace of its next half a second.
    const double cycles =
        i + 1 < knots.size() ? static_cast<double>(knots[i + 1].cycles - knot.cycles) : 1e9;
    const double begin = moved(knot.ns), end = moved(knot.ns + cycles * knot.slope);
    knot.ns = begin;
    if (cycles > 0) knot.slope = (end - begin) / cycles;
  }
}

double SmClock::GHz() const {
  if (knots.empty() || knots.front().slope <= 0) return 0;
  const Knot& first = knots.front();
  const Knot& last = knots.back();
  if (last.ns <= first.ns) return 1 / first.slope;
  return static_cast<double>(last.cycles - first.cycles) / (last.ns - first.ns);
}

std::pair<double, double> SmClock::LeastAndMostGHz(double least_ns) const {
  std::pair<double, double> found{0, 0};
  for (size_t i = 0; i + 1 < knots.size(); ++i) {
    if (knots[i + 1].ns - knots[i].ns < least_ns || knots[i].slope <= 0) continue;
    const double ghz = 1 / knots[i].slope;
    found.first = found.first == 0 ? ghz : std::min(found.first, ghz);
    found.second = std::max(found.second, ghz);
  }
  return found.second != 0 ? found : std::pair(GHz(), GHz());
}

const SmClock::Knot& SmClock::KnotOf(uint64_t cycles) const {
  auto after = std::ranges::upper_bound(knots, cycles, {}, &Knot::cycles);
  return after == knots.begin() ? *after : *(after - 1);
}

}  // namespace iket::trace
