#include "trace/clock_fit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace iket::trace {
namespace {

// No GPU runs outside of 50 MHz to 5 GHz: ns a cycle.
constexpr double kMinSlope = 0.2;
constexpr double kMaxSlope = 20;
// Pairs in a row that may be passed over as outliers before a new piece is begun.
constexpr size_t kMaxOutliersInARow = 2;

// The slopes of all lines through a first pair that pass others within a tolerance.
class Cone {
 public:
  Cone(const ClockPair& apex, double tolerance) : apex_(apex), tolerance_(tolerance) {}

  bool Holds(const ClockPair& pair) const {
    const auto [low, high] = Slopes(pair);
    return low <= high_ && high >= low_;
  }
  void Narrow(const ClockPair& pair) {
    const auto [low, high] = Slopes(pair);
    low_ = std::max(low_, low);
    high_ = std::min(high_, high);
  }

 private:
  std::pair<double, double> Slopes(const ClockPair& pair) const {
    const double cycles = static_cast<double>(pair.cycles - apex_.cycles);
    const double ns = static_cast<double>(pair.ns - apex_.ns);
    if (cycles <= 0) {
      constexpr double kNever = std::numeric_limits<double>::infinity();
      return std::abs(ns) <= tolerance_ ? std::pair(kMinSlope, kMaxSlope)
                                        : std::pair(kNever, -kNever);
    }
    return {(ns - tolerance_) / cycles, (ns + tolerance_) / cycles};
  }

  ClockPair apex_;
  double tolerance_;
  double low_ = kMinSlope;
  double high_ = kMaxSlope;
};

struct Line {
  int64_t first = 0, last = 0;  // cycles
  double mean_cycles = 0, mean_ns = 0, slope = 0;
  double spread = 0;  // root of the sum of squared distances from the mean, ns

  double At(int64_t cycles) const {
    return mean_ns + (static_cast<double>(cycles) - mean_cycles) * slope;
  }
};

Line LeastSquares(std::span<const ClockPair> pairs) {
  // Sums are taken from the first pair on: cycles and ns have more digits than their squares keep.
  const ClockPair origin = pairs.front();
  const double count = static_cast<double>(pairs.size());
  double sum_x = 0, sum_y = 0;
  for (const ClockPair& pair : pairs) {
    sum_x += static_cast<double>(pair.cycles - origin.cycles);
    sum_y += static_cast<double>(pair.ns - origin.ns);
  }
  const double mean_x = sum_x / count, mean_y = sum_y / count;
  double xx = 0, xy = 0, yy = 0;
  for (const ClockPair& pair : pairs) {
    const double x = static_cast<double>(pair.cycles - origin.cycles) - mean_x;
    const double y = static_cast<double>(pair.ns - origin.ns) - mean_y;
    xx += x * x;
    xy += x * y;
    yy += y * y;
  }
  Line line;
  line.first = origin.cycles;
  line.last = pairs.back().cycles;
  line.slope = xx > 0 ? xy / xx : 0;
  line.spread = line.slope >= kMinSlope && line.slope <= kMaxSlope ? std::sqrt(yy) : 0;
  line.mean_cycles = static_cast<double>(origin.cycles) + mean_x;
  line.mean_ns = static_cast<double>(origin.ns) + mean_y;
  return line;
}

}  // namespace

int64_t ClockUnwrapper::Unwrap(uint32_t clock, uint64_t timer_ns) const {
  if (!anchored_) return clock;
  const double silence = static_cast<double>(static_cast<int64_t>(timer_ns - timer_ns_));
  const int64_t predicted = cycles_ + std::llround(silence * ghz_);
  return predicted + static_cast<int32_t>(clock - static_cast<uint32_t>(predicted));
}

void ClockUnwrapper::Anchor(int64_t cycles, uint64_t timer_ns) {
  const double silence = static_cast<double>(static_cast<int64_t>(timer_ns - timer_ns_));
  if (anchored_ && silence * ghz_ > static_cast<double>(kHalfClockRange)) wrap_gap_ = true;
  anchored_ = true;
  cycles_ = cycles;
  timer_ns_ = timer_ns;
}

int64_t TimerStep(std::span<const uint64_t> timers_ns) {
  uint64_t bits = uint64_t{1} << 20;
  for (uint64_t timer : timers_ns) bits |= timer;
  return int64_t{1} << std::countr_zero(bits);
}

SmClock FitClock(std::span<const ClockPair> pairs, int64_t timer_step_ns, double typical_slope) {
  SmClock clock;
  if (pairs.empty()) return clock;
  const double tolerance = 4 * static_cast<double>(timer_step_ns) + 100;

  std::vector<Line> lines;
  double square_sum = 0;
  std::vector<ClockPair> piece;
  auto finish_piece = [&](bool may_be_single) {
    if (piece.size() < 2 && !may_be_single) {
      clock.outliers += piece.size();
      return;
    }
    Line line = LeastSquares(piece);
    // The timer's steps are an error of step / sqrt(12), over the spread of the pairs.
    constexpr double kStepError = 0.289;
    if (kStepError * static_cast<double>(timer_step_ns) > kSlopeDoubt * line.spread) {
      line.slope = typical_slope;
    }
    for (const ClockPair& pair : piece) {
      const double residual = line.At(pair.cycles) - static_cast<double>(pair.ns);
      square_sum += residual * residual;
      clock.residual_max_ns = std::max(clock.residual_max_ns, std::abs(residual));
    }
    clock.pairs += piece.size();
    lines.push_back(line);
  };

  for (size_t i = 0; i < pairs.size();) {
    piece.assign(1, pairs[i]);
    Cone cone(pairs[i], tolerance);
    size_t next = i + 1;
    while (next < pairs.size()) {
      size_t skipped = 0;
      while (next + skipped < pairs.size() && !cone.Holds(pairs[next + skipped]) &&
             skipped <= kMaxOutliersInARow) {
        ++skipped;
      }
      if (skipped > kMaxOutliersInARow || next + skipped == pairs.size()) break;
      clock.outliers += skipped;
      next += skipped;
      cone.Narrow(pairs[next]);
      piece.push_back(pairs[next]);
      ++next;
    }
    finish_piece(next == pairs.size() && lines.empty());
    i = next;
  }
  if (lines.empty()) {  // nothing but outliers: no two pairs agree
    clock.outliers -= 1;
    piece.assign(1, pairs.front());
    finish_piece(true);
  }
  clock.residual_rms_ns = std::sqrt(square_sum / static_cast<double>(clock.pairs));

  double floor = lines.front().At(lines.front().first);
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    const double ns = std::max(floor, line.At(line.first));
    clock.knots.push_back({static_cast<uint64_t>(line.first), ns, line.slope});
    if (i + 1 == lines.size()) break;
    const Line& following = lines[i + 1];
    const double length = static_cast<double>(line.last - line.first);
    const double end_ns = ns + length * line.slope;
    const double gap = static_cast<double>(following.first - line.last);
    const double next_ns = std::max(end_ns, following.At(following.first));
    clock.knots.push_back(
        {static_cast<uint64_t>(line.last), end_ns, gap > 0 ? (next_ns - end_ns) / gap : 0});
    floor = end_ns;
  }
  return clock;
}

void CommonSlope::Add(std::span<const ClockPair> pairs) {
  if (pairs.size() < 2) return;
  const Line line = LeastSquares(pairs);
  if (line.spread > 0) slopes_.push_back({line.slope, line.spread});
}

double CommonSlope::Get(double otherwise) const {
  // Less than this tells nothing: a few steps of the timer.
  constexpr double kLeastSpreadNs = 10'000;
  double total = 0;
  for (const Weighted& one : slopes_) total += one.weight;
  return total < kLeastSpreadNs ? otherwise : WeightedMedian(slopes_).value_or(otherwise);
}

std::optional<double> WeightedMedian(std::vector<Weighted> values) {
  double total = 0;
  for (const Weighted& one : values) total += one.weight;
  std::ranges::sort(values, {}, &Weighted::value);
  double below = 0;
  for (const Weighted& one : values) {
    below += one.weight;
    if (below >= total / 2) return one.value;
  }
  return std::nullopt;
}

}  // namespace iket::trace
