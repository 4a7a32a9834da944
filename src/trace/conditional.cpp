#include "trace/conditional.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace iket::trace {
namespace {

// A run on the axis of time.
struct Placed {
  uint32_t replay = kNoRow;
  SpanTime time;
};

// The runs of one node in each launch of its graph, in order.
struct Anchor {
  uint32_t node = kNoRow;
  bool ordered = true;
  std::vector<Placed> runs;
};

// What is known of the launches of one graph in one context.
struct Launched {
  std::vector<Run> replays;
  std::vector<Anchor> anchors;
};

std::vector<SpanTime> TimesOfGrids(const ReplayInput& input, const Grids& grids) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<SpanTime> times(grids.grids.size(), {kNever, -kNever});
  for (size_t i = 0; i < input.spans.size(); ++i) {
    SpanTime& time = times[grids.grid_of_span[i]];
    time.begin_ns = std::min(time.begin_ns, input.times[i].begin_ns);
    time.end_ns = std::max(time.end_ns, input.times[i].end_ns);
  }
  return times;
}

// Those of `anchors` that each of `replays` has once, one after the other.
std::vector<Anchor> Whole(std::map<uint32_t, Anchor> anchors, const std::vector<Run>& replays) {
  std::vector<Anchor> whole;
  for (auto& [node, anchor] : anchors) {
    std::vector<Placed>& runs = anchor.runs;
    std::ranges::sort(runs, {}, &Placed::replay);
    bool fits = std::ranges::equal(runs, replays, {}, &Placed::replay, &Run::replay);
    for (size_t i = 1; fits && i < runs.size(); ++i) {
      fits = runs[i - 1].time.end_ns <= runs[i].time.begin_ns + kClockDoubtNs;
    }
    if (fits) whole.push_back(std::move(anchor));
  }
  return whole;
}

// Index of the replay in whose launch the body's run must be, as far as this anchor tells.
std::optional<size_t> PlaceBy(const Anchor& anchor, const GridRun& body, const SpanTime& time) {
  const auto& runs = anchor.runs;
  if (body.ordered && anchor.node < body.node) {
    // Behind the anchor's run in its launch, and before that in the next.
    const auto next = std::ranges::upper_bound(runs, time.begin_ns, {},
                                               [](const Placed& run) { return run.time.begin_ns; });
    if (next == runs.begin()) return std::nullopt;
    const auto before = std::prev(next);
    if (before->time.end_ns > time.begin_ns + kClockDoubtNs) return std::nullopt;
    return static_cast<size_t>(before - runs.begin());
  }
  if (anchor.ordered && anchor.node > body.node) {
    const auto behind = std::ranges::lower_bound(
        runs, time.end_ns - kClockDoubtNs, {}, [](const Placed& run) { return run.time.begin_ns; });
    if (behind == runs.end()) return std::nullopt;
    return static_cast<size_t>(behind - runs.begin());
  }
  return std::nullopt;
}

std::optional<size_t> Place(const Launched& launched, const GridRun& body, const SpanTime& time) {
  if (launched.replays.size() == 1) return 0;
  if (body.node == kNoRow) return std::nullopt;
  std::optional<size_t> found;
  for (const Anchor& anchor : launched.anchors) {
    const std::optional<size_t> one = PlaceBy(anchor, body, time);
    if (one && found && *one != *found) return std::nullopt;
    if (one) found = one;
  }
  return found;
}

}  // namespace

void PlaceWithinReplays(const ReplayInput& input, const RunLog& log, Grids& grids) {
  const auto is_body = [](const GridRun& run) {
    return run.found && !run.of_log && run.conditional && run.graph != kNoRow;
  };
  if (std::ranges::none_of(grids.runs, is_body)) return;
  const std::vector<SpanTime> times = TimesOfGrids(input, grids);
  using Key = std::pair<uint32_t, uint32_t>;  // context, graph
  std::map<Key, std::map<uint32_t, Anchor>> anchors;
  for (size_t i = 0; i < grids.runs.size(); ++i) {
    const GridRun& run = grids.runs[i];
    if (!run.of_log || run.graph == kNoRow || run.node == kNoRow) continue;
    Anchor& anchor = anchors[{grids.grids[i].context, run.graph}][run.node];
    anchor.node = run.node;
    anchor.ordered &= run.ordered;
    anchor.runs.push_back({run.replay, times[i]});
  }
  std::map<Key, Launched> known;
  for (size_t i = 0; i < grids.runs.size(); ++i) {
    GridRun& run = grids.runs[i];
    if (!is_body(run)) continue;
    const Key key(grids.grids[i].context, run.graph);
    const auto [launched, is_new] = known.try_emplace(key);
    if (is_new) {
      launched->second.replays = log.Replays(key.first, key.second);
      launched->second.anchors = Whole(std::move(anchors[key]), launched->second.replays);
    }
    const auto place = Place(launched->second, run, times[i]);
    if (!place) continue;
    const Run& replay = launched->second.replays[*place];
    run.of_log = true;
    run.sequence = replay.sequence;
    run.stream = replay.stream;
    run.graph_launch = replay.graph_launch;
    run.replay = replay.replay;
  }
}

}  // namespace iket::trace
