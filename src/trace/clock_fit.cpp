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

namespace {

// Cuts pairs into pieces, and outliers.
class Pieces {
 public:
  Pieces(std::span<const ClockPair> pairs, double tolerance_ns, double silence_ns)
      : pairs_(pairs), tolerance_ns_(tolerance_ns), silence_ns_(silence_ns) {}

  // The next piece, at least a pair; empty at the end.
  std::span<const ClockPair> Next() {
    while (next_ < pairs_.size()) {
      const bool alone_before = alone_;
      Grow();
      if (piece_.size() > 1 || (alone_before && alone_)) return piece_;
      ++outliers_;
    }
    return {};
  }
  uint64_t outliers() const { return outliers_; }

 private:
  void Grow() {
    piece_.assign(1, pairs_[next_]);
    Cone cone(pairs_[next_], tolerance_ns_);
    alone_ = true;
    for (++next_; next_ < pairs_.size(); ++next_) {
      size_t after = next_;
      while (after < pairs_.size() && !cone.Holds(pairs_[after]) &&
             after - next_ <= kMaxOutliersInARow) {
        ++after;
      }
      if (after == pairs_.size() || after - next_ > kMaxOutliersInARow) {
        alone_ = IsSilence(piece_.back(), pairs_[next_]);
        return;
      }
      if (after > next_ && Wandered(piece_.back(), next_, after)) return;
      outliers_ += after - next_;
      next_ = after;
      if (IsSilence(piece_.back(), pairs_[after])) return;
      cone.Narrow(pairs_[after]);
      piece_.push_back(pairs_[after]);
    }
  }

  bool IsSilence(const ClockPair& from, const ClockPair& to) const {
    return static_cast<double>(to.ns - from.ns) > silence_ns_;
  }

  // Whether the pairs [first, after) may be right, too, beside those around them.
  bool Wandered(const ClockPair& before, size_t first, size_t after) const {
    const ClockPair& behind = pairs_[after];
    const double cycles = static_cast<double>(behind.cycles - before.cycles);
    const double ns = static_cast<double>(behind.ns - before.ns);
    const double shorter = static_cast<double>(
        std::min(pairs_[first].cycles - before.cycles, behind.cycles - pairs_[after - 1].cycles));
    if (cycles <= 0) return false;
    for (size_t i = first; i < after; ++i) {
      const double straight = static_cast<double>(pairs_[i].cycles - before.cycles) / cycles * ns;
      const double off = std::abs(static_cast<double>(pairs_[i].ns - before.ns) - straight);
      if (off > kWander * shorter / cycles * ns) return false;
    }
    return true;
  }

  std::span<const ClockPair> pairs_;
  double tolerance_ns_;
  double silence_ns_;
  size_t next_ = 0;
  bool alone_ = true;  // what follows the piece says nothing against it
  uint64_t outliers_ = 0;
  std::vector<ClockPair> piece_;
};

// The line of a piece; of one that does not show its slope, at the typical one.
Line LineOf(std::span<const ClockPair> piece, double timer_step_ns, double tolerance_ns,
            double typical_slope) {
  Line line = LeastSquares(piece);
  // The timer's steps are an error of step / sqrt(12), over the spread of the pairs.
  constexpr double kStepError = 0.289;
  const double cycles = static_cast<double>(line.last - line.first);
  const bool shows = kStepError * timer_step_ns <= kSlopeDoubt * line.spread;
  const bool typical_fits = std::abs(line.slope - typical_slope) * cycles <= tolerance_ns;
  if (!shows && (typical_fits || line.spread == 0)) line.slope = typical_slope;
  return line;
}

std::vector<SmClock::Knot> Join(std::span<const Line> lines) {
  std::vector<SmClock::Knot> knots;
  double floor = lines.front().At(lines.front().first);
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    const double ns = std::max(floor, line.At(line.first));
    knots.push_back({static_cast<uint64_t>(line.first), ns, line.slope});
    if (i + 1 == lines.size()) break;
    const Line& following = lines[i + 1];
    const double length = static_cast<double>(line.last - line.first);
    const double end_ns = ns + length * line.slope;
    const double gap = static_cast<double>(following.first - line.last);
    const double next_ns = std::max(end_ns, following.At(following.first));
    knots.push_back(
        {static_cast<uint64_t>(line.last), end_ns, gap > 0 ? (next_ns - end_ns) / gap : 0});
    floor = end_ns;
  }
  return knots;
}

}  // namespace

SmClock FitClock(std::span<const ClockPair> pairs, int64_t timer_step_ns, double typical_slope) {
  SmClock clock;
  if (pairs.empty()) return clock;
  const double step_ns = static_cast<double>(timer_step_ns);
  const double tolerance_ns = 4 * step_ns + 100;

  std::vector<Line> lines;
  double square_sum = 0;
  const auto add = [&](std::span<const ClockPair> piece) {
    const Line line = LineOf(piece, step_ns, tolerance_ns, typical_slope);
    for (const ClockPair& pair : piece) {
      const double residual = line.At(pair.cycles) - static_cast<double>(pair.ns);
      square_sum += residual * residual;
      clock.residual_max_ns = std::max(clock.residual_max_ns, std::abs(residual));
    }
    clock.pairs += piece.size();
    lines.push_back(line);
  };
  Pieces pieces(pairs, tolerance_ns, step_ns / kUnsteady);
  for (auto piece = pieces.Next(); !piece.empty(); piece = pieces.Next()) add(piece);
  clock.outliers = pieces.outliers();
  if (lines.empty()) {  // nothing but outliers: no two pairs agree
    clock.outliers -= 1;
    add(pairs.first(1));
  }
  clock.residual_rms_ns = std::sqrt(square_sum / static_cast<double>(clock.pairs));
  clock.knots = Join(lines);
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
