#include "trace/clock_alignment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "trace/clock_fit.h"

namespace iket::trace {
namespace {

// A timer further than this from the capture's median is no time of this capture.
constexpr uint64_t kPlausibleNs = uint64_t{30} * 24 * 3600 * 1'000'000'000;
// Below this a warp cannot hide a wrap at any frequency.
constexpr uint64_t kShortNs = 500'000'000;

// A moment on both raw clocks.
struct Reading {
  enum class What : uint8_t {
    kBegin,
    kEnd,
    kEndBefore,  // of the warp before a running one, or of some of its lanes
  };
  uint64_t timer_ns = 0;
  uint32_t span = 0;
  What what = What::kBegin;
};

// Stretches of time in which the cycles were counted.
class FrequencySample {
 public:
  void Add(double cycles, double ns) { stretches_.push_back({cycles, ns}); }
  bool empty() const { return stretches_.empty(); }

  // Cycles a ns, over those that are no further than by `share` from their median, which is taken
  // over those no further than that from `expected`. `expected` if there are none.
  double Mean(double expected, double share) const {
    std::vector<Stretch> near;
    const auto is_near = [&](const Stretch& stretch, double ghz) {
      return std::abs(stretch.cycles - ghz * stretch.ns) <= share * ghz * stretch.ns;
    };
    std::ranges::copy_if(stretches_, std::back_inserter(near),
                         [&](const Stretch& stretch) { return is_near(stretch, expected); });
    if (near.empty()) return expected;
    const auto middle = near.begin() + static_cast<ptrdiff_t>(near.size() / 2);
    std::ranges::nth_element(near, middle, {}, &Stretch::Ghz);
    const double median = middle->Ghz();
    double cycles = 0, ns = 0;
    for (const Stretch& stretch : near) {
      if (!is_near(stretch, median)) continue;
      cycles += stretch.cycles;
      ns += stretch.ns;
    }
    return cycles / ns;
  }

 private:
  struct Stretch {
    double cycles = 0, ns = 0;
    double Ghz() const { return cycles / ns; }
  };
  std::vector<Stretch> stretches_;
};

class Alignment {
 public:
  Alignment(const AlignmentInput& input, Model& model)
      : spans_(input.spans),
        host_ns_(input.host_ns),
        since_launch_(input.since_launch),
        clock_of_ring_(input.clock_of_ring),
        gpu_of_clock_(input.gpu_of_clock),
        ghz_of_clock_(input.ghz_of_clock),
        exchanges_of_gpu_(input.exchanges_of_gpu),
        model_(model) {
    for (const Declaration& declaration : model.declarations) {
      has_syncs_ |= declaration.kind == EventKind::kSync;
    }
  }

  void Run() {
    FindReference();
    const Column<uint32_t> order = SpansByClock();
    std::vector<SmFrequency> frequencies(model_.clocks.size());
    ForEachClock(order, [&](uint32_t clock, std::span<const uint32_t> members) {
      frequencies[clock] = FrequencyOf(clock, members);
    });
    ForEachRing([&](size_t first, size_t count) {
      WidenTimers(spans_.subspan(first, count), host_ns_.subspan(first, count), since_launch_,
                  frequencies[ClockOf(spans_[first])], reference_ns_);
    });
    FindOrigin();
    std::vector<std::vector<ClockPair>> pairs(model_.clocks.size());
    std::map<uint32_t, CommonSlope> slopes;  // by GPU
    ForEachClock(order, [&](uint32_t clock, std::span<const uint32_t> members) {
      pairs[clock] = AlignSm(clock, members, frequencies[clock]);
      slopes[gpu_of_clock_[clock]].Add(pairs[clock]);
    });
    ForEachClock(order, [&](uint32_t clock, std::span<const uint32_t> members) {
      const double typical = slopes[gpu_of_clock_[clock]].Get(1 / frequencies[clock].ghz);
      Fit(clock, members, pairs[clock], typical);
    });
    ForEachRing([&](size_t first, size_t count) { CheckEnds(spans_.subspan(first, count)); });
    JoinGpus();
    StartAtFirstMoment();
    MoveSteppedEvents();
  }

 private:
  uint32_t ClockOf(const WarpSpan& span) const { return clock_of_ring_[span.ring]; }

  template <typename Visit>
  void ForEachClock(std::span<const uint32_t> order, Visit&& visit) const {
    for (size_t begin = 0; begin < order.size();) {
      const uint32_t clock = ClockOf(spans_[order[begin]]);
      size_t end = begin;
      while (end < order.size() && ClockOf(spans_[order[end]]) == clock) ++end;
      visit(clock, order.subspan(begin, end - begin));
      begin = end;
    }
  }

  template <typename Visit>
  void ForEachRing(Visit&& visit) const {
    for (size_t begin = 0; begin < spans_.size();) {
      size_t end = begin;
      while (end < spans_.size() && spans_[end].ring == spans_[begin].ring) ++end;
      visit(begin, end - begin);
      begin = end;
    }
  }

  bool Plausible(uint64_t timer_ns) const {
    const uint64_t distance =
        timer_ns > reference_ns_ ? timer_ns - reference_ns_ : reference_ns_ - timer_ns;
    return distance <= kPlausibleNs;
  }

  static bool HasEndTimer(const WarpSpan& span) {
    return span.has_end_timer || span.header_end_known;
  }

  // The median of the timers that are known in full.
  void FindReference() {
    std::vector<uint64_t> ends;
    for (const WarpSpan& span : spans_) {
      if (HasEndTimer(span)) ends.push_back(span.end_timer_ns);
    }
    if (ends.empty()) {
      const auto begun = std::ranges::find_if(spans_, &WarpSpan::has_begin);
      if (begun != spans_.end()) reference_ns_ = begun->begin_timer_low;
      return;
    }
    const auto middle = ends.begin() + static_cast<ptrdiff_t>(ends.size() / 2);
    std::nth_element(ends.begin(), middle, ends.end());
    reference_ns_ = *middle;
  }

  // The first begin, or else end, and the step of the timer.
  void FindOrigin() {
    std::vector<uint64_t> begins, ends;
    for (const WarpSpan& span : spans_) {
      if (span.has_begin && Plausible(span.begin_timer_ns)) begins.push_back(span.begin_timer_ns);
      if (HasEndTimer(span) && Plausible(span.end_timer_ns)) ends.push_back(span.end_timer_ns);
    }
    timer_step_ns_ = std::min(TimerStep(begins), TimerStep(ends));
    const std::vector<uint64_t>& from = begins.empty() ? ends : begins;
    if (!from.empty()) model_.origin_ns = *std::ranges::min_element(from);
  }

  Column<uint32_t> SpansByClock() const {
    std::vector<uint32_t> start(model_.clocks.size() + 1);
    for (const WarpSpan& span : spans_) ++start[ClockOf(span) + 1];
    for (size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
    Column<uint32_t> order(spans_.size());
    for (uint32_t i = 0; i < spans_.size(); ++i) order[start[ClockOf(spans_[i])]++] = i;
    return order;
  }

  // By the begins that follow one another on a ring soon, or by warps that ended, or nominal.
  SmFrequency FrequencyOf(uint32_t clock, std::span<const uint32_t> members) const {
    const double nominal = ghz_of_clock_[clock];
    constexpr uint32_t kLeastNs = 1000, kLeastBetweenNs = 100'000;
    FrequencySample warps, between;
    for (size_t i = 0; i < members.size(); ++i) {
      const WarpSpan& span = spans_[members[i]];
      if (!span.has_begin) continue;
      // Of a warp longer than the range of the timer's low word this is too short: it seems to run
      // faster than any SM does.
      const uint32_t length = static_cast<uint32_t>(span.end_timer_ns) - span.begin_timer_low;
      if (span.has_end_timer && span.back_steps == 0 && length >= kLeastNs && length <= kShortNs &&
          static_cast<double>(span.end_offset) < 1.5 * nominal * length) {
        warps.Add(static_cast<double>(span.end_offset), length);
      }
      if (i + 1 == members.size()) continue;
      const WarpSpan& next = spans_[members[i + 1]];
      const uint32_t silence = next.begin_timer_low - span.begin_timer_low;
      if (next.ring == span.ring && next.has_begin && silence >= kLeastBetweenNs &&
          silence <= kShortNs) {
        between.Add(next.first_clock - span.first_clock, silence);
      }
    }
    // Warps are measured by few steps of the timer, what is between them by thousands.
    constexpr double kErrorBetween = 0.001, kErrorOfWarps = 0.02, kErrorOfNominal = 0.25;
    const double by_warps = warps.Mean(nominal, 1);
    const double doubt = warps.empty() ? kErrorOfNominal : 0.1;
    if (between.empty()) {
      return {std::clamp(by_warps, 0.05, 5.0), doubt,
              warps.empty() ? kErrorOfNominal : kErrorOfWarps};
    }
    return {std::clamp(between.Mean(by_warps, doubt), 0.05, 5.0), doubt, kErrorBetween};
  }

  // What an SM does between its warps, out of which it takes over a silence how often its clock
  // wrapped: better known than from warps of a microsecond. The median over all time that two
  // readings in a row bridge without doubt.
  double FrequencyBetween(std::span<const Reading> readings, const SmFrequency& frequency) const {
    constexpr uint64_t kLeastNs = 100'000;
    const double most_ns =
        static_cast<double>(kHalfClockRange) / (frequency.ghz * frequency.doubt) / 2;
    std::vector<Weighted> frequencies;  // by ns
    for (size_t i = 1; i < readings.size(); ++i) {
      const uint64_t silence_ns = readings[i].timer_ns - readings[i - 1].timer_ns;
      const auto ns = static_cast<double>(silence_ns);
      if (silence_ns < kLeastNs || ns > most_ns) continue;
      ClockUnwrapper bridge(frequency.ghz);
      const uint32_t from = ClockAt(readings[i - 1]);
      bridge.Anchor(from, 0);
      const int64_t cycles = bridge.Unwrap(ClockAt(readings[i]), silence_ns) - from;
      frequencies.push_back({static_cast<double>(cycles) / ns, ns});
    }
    return std::clamp(WeightedMedian(std::move(frequencies)).value_or(frequency.ghz), 0.05, 5.0);
  }
  uint32_t ClockAt(const Reading& reading) const {
    const WarpSpan& span = spans_[reading.span];
    return reading.what == Reading::What::kBegin ? span.first_clock : span.end_clock;
  }

  // Places the spans of one SM; returns its clock pairs by cycles.
  std::vector<ClockPair> AlignSm(uint32_t clock, std::span<const uint32_t> members,
                                 const SmFrequency& frequency) {
    std::vector<Reading> readings;
    uint64_t implausible = 0;
    auto add = [&](uint64_t timer_ns, uint32_t span, Reading::What what) {
      if (Plausible(timer_ns)) {
        readings.push_back({timer_ns, span, what});
      } else {
        ++implausible;
      }
    };
    for (uint32_t member : members) {
      const WarpSpan& span = spans_[member];
      if (span.has_begin) add(span.begin_timer_ns, member, Reading::What::kBegin);
      if (span.has_end_timer) add(span.end_timer_ns, member, Reading::What::kEnd);
      if (span.header_end_known) add(span.end_timer_ns, member, Reading::What::kEndBefore);
    }
    std::ranges::sort(readings, [](const Reading& a, const Reading& b) {
      return std::tie(a.timer_ns, a.what, a.span) < std::tie(b.timer_ns, b.what, b.span);
    });

    ClockUnwrapper unwrapper(FrequencyBetween(readings, frequency));
    std::vector<ClockPair> pairs;
    pairs.reserve(readings.size());
    for (const Reading& reading : readings) {
      WarpSpan& span = spans_[reading.span];
      int64_t cycles = 0;
      switch (reading.what) {
        case Reading::What::kBegin:
          cycles = PlaceBegin(span, unwrapper);
          break;
        case Reading::What::kEnd:
          cycles = PlaceEnd(span, unwrapper, frequency);
          break;
        case Reading::What::kEndBefore:
          cycles = PlaceAfterEnd(span, unwrapper);
          break;
      }
      unwrapper.Anchor(cycles, reading.timer_ns);
      pairs.push_back({cycles, static_cast<int64_t>(reading.timer_ns - model_.origin_ns)});
    }
    PlaceByNeighbours(members);
    if (has_syncs_) AddSyncs(members, frequency, pairs);
    const int64_t shift = ShiftAboveZero(members, pairs);
    for (uint32_t member : members) spans_[member].base_cycles += shift;
    for (ClockPair& pair : pairs) pair.cycles += shift;

    std::ranges::sort(pairs, [](const ClockPair& a, const ClockPair& b) {
      return std::tie(a.cycles, a.ns) < std::tie(b.cycles, b.ns);
    });
    model_.clocks[clock].outliers = implausible;
    model_.clocks[clock].wrap_gap = unwrapper.wrap_gap();
    return pairs;
  }

  // The pairs that warps took on the way. Of the timer they have the low word; it never steps back,
  // and the cycles since the pair before tell how often it came around. Where they say that %clock
  // came around unseen as well, the warp's cycles are too few from there on: the rest is left out.
  void AddSyncs(std::span<const uint32_t> members, const SmFrequency& frequency,
                std::vector<ClockPair>& pairs) const {
    for (uint32_t member : members) {
      const WarpSpan& span = spans_[member];
      if (!span.has_begin || span.back_steps != 0 || !Plausible(span.begin_timer_ns)) continue;
      uint64_t timer_ns = span.begin_timer_ns;
      int64_t offset = 0;
      for (uint32_t event = span.first_event; event < span.first_event + span.event_count;
           ++event) {
        const uint32_t declaration = model_.events.declaration[event];
        if (model_.declarations[declaration].kind != EventKind::kSync) continue;
        const auto cycles =
            static_cast<double>(static_cast<int64_t>(model_.events.cycles[event]) - offset);
        const auto low = static_cast<uint32_t>(model_.events.payload[event]);
        const uint32_t step = low - static_cast<uint32_t>(timer_ns);
        const double rounds =
            std::round((cycles / frequency.ghz - step) / static_cast<double>(uint64_t{1} << 32));
        const uint64_t now =
            timer_ns + step + (rounds >= 1 ? static_cast<uint64_t>(rounds) << 32 : 0);
        const double ns = static_cast<double>(now - timer_ns);
        const auto distance = [&](double all) { return std::abs(all - frequency.ghz * ns); };
        if (distance(cycles) > distance(cycles + static_cast<double>(kClockRange))) break;
        constexpr double kLeastGhz = 0.05, kMostGhz = 5, kStepNs = 2000;
        if (cycles > kMostGhz * (ns + kStepNs) || cycles < kLeastGhz * (ns - kStepNs)) break;
        if (!Plausible(now) || (span.has_end_timer && now > span.end_timer_ns)) break;
        timer_ns = now;
        offset = static_cast<int64_t>(model_.events.cycles[event]);
        pairs.push_back(
            {span.base_cycles + offset, static_cast<int64_t>(timer_ns - model_.origin_ns)});
      }
    }
  }

  void Fit(uint32_t clock, std::span<const uint32_t> members, std::span<const ClockPair> pairs,
           double typical_slope) {
    SmClock fit = FitClock(pairs, timer_step_ns_, typical_slope);
    fit.outliers += model_.clocks[clock].outliers;
    fit.wrap_gap = model_.clocks[clock].wrap_gap;
    model_.counters.clock_outliers += fit.outliers;
    if (fit.knots.empty()) {
      // Nothing but cycles: they are shown from the SM's first one on, at the typical frequency.
      ++model_.counters.clocks_missing;
      int64_t first = std::numeric_limits<int64_t>::max();
      for (uint32_t member : members) first = std::min(first, spans_[member].base_cycles);
      fit.knots.push_back({static_cast<uint64_t>(std::max<int64_t>(first, 0)), 0, typical_slope});
    }
    model_.clocks[clock] = std::move(fit);
  }

  static int64_t PlaceBegin(WarpSpan& span, const ClockUnwrapper& unwrapper) {
    span.base_cycles = unwrapper.Unwrap(span.first_clock, span.begin_timer_ns);
    span.placed = true;
    return span.base_cycles;
  }

  // A running warp whose begin is lost: its records follow the last end that the header knows, by
  // less than a wrap at best.
  static int64_t PlaceAfterEnd(WarpSpan& span, const ClockUnwrapper& unwrapper) {
    const int64_t cycles = unwrapper.Unwrap(span.end_clock, span.end_timer_ns);
    if (!span.has_begin && !span.placed) {
      const bool own_lanes = (span.flags & kWarpPartialExit) != 0;
      span.base_cycles = own_lanes
                             ? cycles - static_cast<int64_t>(span.end_clock - span.first_clock)
                             : cycles + static_cast<int64_t>(span.first_clock - span.end_clock);
      span.flags |= kWarpWrapGap;
      span.placed = true;
    }
    return cycles;
  }

  static int64_t PlaceEnd(WarpSpan& span, const ClockUnwrapper& unwrapper,
                          const SmFrequency& frequency) {
    if (!span.placed) {
      const int64_t cycles = unwrapper.Unwrap(span.end_clock, span.end_timer_ns);
      span.base_cycles = cycles - span.end_offset;
      span.placed = true;
      return cycles;
    }
    const uint64_t length = span.end_timer_ns - span.begin_timer_ns;
    if (length > kShortNs) {
      const double expected = static_cast<double>(length) * frequency.ghz;
      const double missing = expected - static_cast<double>(span.end_offset);
      if (missing > static_cast<double>(kHalfClockRange)) span.flags |= kWarpWrapGap;
      // Only what no change of the frequency explains is taken for wraps.
      if ((span.flags & kWarpWrapGap) != 0 && missing > expected * frequency.doubt) {
        const int64_t wraps = std::llround(missing / static_cast<double>(kClockRange));
        span.hidden_wraps = static_cast<uint32_t>(wraps);
        // What is after the end moves with it.
        span.last_offset += wraps * kClockRange;
        span.end_offset += wraps * kClockRange;
      }
    }
    return span.base_cycles + span.end_offset;
  }

  // Spans without any clock pair lie between their neighbours on the ring, as far as is known.
  void PlaceByNeighbours(std::span<const uint32_t> members) {
    auto same_ring = [&](size_t i, size_t j) {
      return spans_[members[i]].ring == spans_[members[j]].ring;
    };
    for (size_t i = 1; i < members.size(); ++i) {
      WarpSpan& span = spans_[members[i]];
      const WarpSpan& before = spans_[members[i - 1]];
      if (span.placed || !same_ring(i, i - 1) || !before.placed) continue;
      span.base_cycles = before.base_cycles + before.last_offset +
                         static_cast<int64_t>(span.first_clock - before.last_clock());
      span.placed = true;
    }
    for (size_t i = members.size(); i-- > 0;) {
      WarpSpan& span = spans_[members[i]];
      if (span.placed) continue;
      if (i + 1 < members.size() && same_ring(i, i + 1) && spans_[members[i + 1]].placed) {
        const WarpSpan& after = spans_[members[i + 1]];
        span.base_cycles = span.has_end
                               ? after.base_cycles - span.end_offset -
                                     static_cast<int64_t>(after.first_clock - span.end_clock)
                               : after.base_cycles - span.last_offset -
                                     static_cast<int64_t>(after.first_clock - span.last_clock());
      } else {
        span.base_cycles = span.first_clock;
      }
      span.placed = true;
    }
  }

  // A multiple of the clock's range after which no span lies below zero and %clock still is the low
  // word.
  int64_t ShiftAboveZero(std::span<const uint32_t> members,
                         std::span<const ClockPair> pairs) const {
    int64_t lowest = std::numeric_limits<int64_t>::max();
    for (uint32_t member : members) {
      const WarpSpan& span = spans_[member];
      lowest = std::min(lowest, span.base_cycles - int64_t{span.back_steps} * kHalfClockRange);
    }
    for (const ClockPair& pair : pairs) lowest = std::min(lowest, pair.cycles);
    return -(lowest >> 32) * kClockRange;
  }

  // Warps that lost their begin may reach back before the first begin: no time shall be negative.
  // By way of the host's clock.
  void JoinGpus() {
    std::optional<HostClock> reference;
    for (uint32_t gpu = 0; gpu < exchanges_of_gpu_.size(); ++gpu) {
      const auto own = HostClockOf(exchanges_of_gpu_[gpu], model_.origin_ns);
      if (!own) continue;
      if (!reference) {
        reference = own;
        continue;
      }
      const auto moved = [&](double ns) { return reference->FromHost(own->ToHost(ns)); };
      for (uint32_t clock = 0; clock < model_.clocks.size(); ++clock) {
        if (gpu_of_clock_[clock] == gpu) model_.clocks[clock].Move(moved);
      }
    }
  }

  void StartAtFirstMoment() {
    double first = 0;
    for (const WarpSpan& span : spans_) {
      first = std::min(first, model_.clocks[ClockOf(span)].NsOf(
                                  static_cast<uint64_t>(std::max<int64_t>(span.base_cycles, 0))));
    }
    const double shift = -std::floor(first);
    for (SmClock& clock : model_.clocks) {
      for (SmClock::Knot& knot : clock.knots) knot.ns += shift;
    }
    model_.origin_ns -= std::min(static_cast<uint64_t>(shift), model_.origin_ns);
  }

  // A warp cannot have ended after the next one of its ring began.
  void CheckEnds(std::span<WarpSpan> ring) {
    for (size_t i = 0; i + 1 < ring.size(); ++i) {
      WarpSpan& span = ring[i];
      const WarpSpan& next = ring[i + 1];
      if (!span.has_end || !next.has_begin) continue;
      if (span.base_cycles + span.end_offset <= next.base_cycles) continue;
      span.has_end = false;
      span.flags |= kWarpEndMissing;
      model_.rings.suspect[span.ring] = 1;
    }
  }

  void MoveSteppedEvents() {
    for (WarpSpan& span : spans_) {
      if (span.back_steps != 0) {
        MoveWithBackSteps(span, model_.events.cycles.data() + span.first_event);
      }
      model_.counters.wrap_gaps += (span.flags & kWarpWrapGap) != 0 ? 1 : 0;
    }
  }

  // A clock that stepped back as often as wraps are missing was silent there, and wrapped.
  // Otherwise nothing is known: time is made to stand still instead of stepping back.
  void MoveWithBackSteps(WarpSpan& span, uint64_t* event) {
    const bool wrapped = span.back_steps == span.hidden_wraps;
    if (!wrapped) {
      model_.counters.backward_clocks += span.back_steps;
      model_.rings.suspect[span.ring] = 1;
    }
    int64_t before = 0;
    int64_t latest = 0;
    int64_t added = 0;
    for (uint32_t i = 0; i < span.event_count; ++i) {
      const int64_t offset = static_cast<int64_t>(event[i]);
      if (wrapped && offset < before) added += kClockRange;
      before = offset;
      latest = std::max(latest, offset + added);
      event[i] = static_cast<uint64_t>(span.base_cycles + latest);
    }
    span.last_offset = std::max(span.last_offset, latest);
    span.end_offset = std::max(span.end_offset, latest);
  }

  std::span<WarpSpan> spans_;
  std::span<const int64_t> host_ns_;
  const SinceLaunch& since_launch_;
  std::span<const uint32_t> clock_of_ring_;
  std::span<const uint32_t> gpu_of_clock_;
  std::span<const double> ghz_of_clock_;
  const std::span<const std::vector<capture::ClockExchange>> exchanges_of_gpu_;
  Model& model_;
  bool has_syncs_ = false;  // some declaration is of kSync
  uint64_t reference_ns_ = 0;
  int64_t timer_step_ns_ = 1;
};

}  // namespace

void AlignClocks(const AlignmentInput& input, Model& model) { Alignment(input, model).Run(); }

}  // namespace iket::trace
