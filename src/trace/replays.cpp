#include "trace/replays.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "trace/conditional.h"
#include "trace/facts.h"

namespace iket::trace {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// %tid.z is kept modulo 32.
constexpr uint32_t kMaxLayers = 32;
// Steps of a search that no program's capture needs.
constexpr uint64_t kMaxSteps = uint64_t{1} << 28;
// Runs listed beyond the warps that are there to match them.
constexpr uint64_t kSpareRuns = 65536;

// One warp of a run: what tells it from the others of that run.
struct Place {
  uint32_t cta_x = 0;
  uint16_t cta_y = 0, cta_z = 0, tid_x = 0, tid_y = 0, tid_z = 0;

  auto operator<=>(const Place&) const = default;
};

struct Warp {
  Place place;
  double begin_ns = 0;
  double end_ns = 0;
  uint32_t span = 0;
};

// The warps at one place, by their begins.
using Occurrences = std::span<const Warp>;

struct Window {
  double begin_ns = kNever;
  double end_ns = -kNever;

  void Add(const Warp& warp) {
    begin_ns = std::min(begin_ns, warp.begin_ns);
    end_ns = std::max(end_ns, warp.end_ns);
  }
};

// Warps of one kernel that are told apart together.
class Recurrence {
 public:
  explicit Recurrence(std::vector<Warp> warps) : warps_(std::move(warps)) {
    std::ranges::sort(warps_, {}, [](const Warp& warp) {
      return std::tuple(warp.place, warp.begin_ns, warp.span);
    });
    for (const Warp& warp : warps_) {
      seen_y_ |= warp.place.cta_y != 0;
      seen_z_ |= warp.place.cta_z != 0;
    }
    for (size_t begin = 0; begin < warps_.size();) {
      size_t end = begin;
      while (end < warps_.size() && warps_[end].place == warps_[begin].place) ++end;
      places_.push_back(Occurrences(warps_).subspan(begin, end - begin));
      begin = end;
    }
  }

  // Places point into the warps, which a move leaves where they are.
  Recurrence(const Recurrence&) = delete;
  Recurrence& operator=(const Recurrence&) = delete;
  Recurrence(Recurrence&&) noexcept = default;
  Recurrence& operator=(Recurrence&&) noexcept = default;

  std::span<const Warp> warps() const { return warps_; }
  std::span<const Occurrences> places() const { return places_; }

  // How many warps at this place a run of the shape has: more than one only in kernels that do not
  // read blockIdx.y or z, whose CTAs all say 0 there.
  uint64_t Times(const Shape& shape, const Place& place) const {
    const bool inside = place.cta_x < shape.grid.x && (place.cta_y < shape.grid.y || !seen_y_) &&
                        (place.cta_z < shape.grid.z || !seen_z_) && place.tid_x < shape.block.x &&
                        place.tid_y < shape.block.y && place.tid_z < shape.block.z;
    if (!inside) return 0;
    return CtasExpected(shape.filter, place.cta_x,
                        seen_y_ ? std::optional<uint32_t>(place.cta_y) : std::nullopt,
                        seen_z_ ? std::optional<uint32_t>(place.cta_z) : std::nullopt,
                        Sizes(shape.grid), Sizes(shape.cluster));
  }

  // Run by run the warps of each, if runs follow one another in this order. Every place must occur
  // as often as the runs have it, or, not `exact`, no oftener. Empty if that is not so.
  std::vector<uint32_t> Assign(std::span<const Run> runs, bool exact) const {
    uint64_t expected = 0;
    for (const Run& run : runs) {
      if (run.shape.block.z > kMaxLayers) return {};
      const uint64_t warps = WarpsOf(run.shape);
      if (__builtin_add_overflow(expected, warps, &expected)) return {};
    }
    if (exact ? expected != warps_.size() : expected < warps_.size()) return {};
    uint64_t steps = 0;
    if (__builtin_mul_overflow(runs.size(), places_.size(), &steps) || steps > kMaxSteps) return {};
    std::vector<uint32_t> run_of_warp;
    run_of_warp.reserve(warps_.size());
    for (const Occurrences& place : places_) {
      size_t left = place.size();
      for (uint32_t run = 0; run < runs.size() && left > 0; ++run) {
        const uint64_t times = std::min<uint64_t>(left, Times(runs[run].shape, place[0].place));
        run_of_warp.insert(run_of_warp.end(), times, run);
        left -= times;
      }
      if (left != 0) return {};
    }
    return run_of_warp;
  }

  // True if the runs, as assigned, do follow one another.
  bool FollowOneAnother(std::span<const uint32_t> run_of_warp, size_t runs) const {
    std::vector<Window> windows(runs);
    for (size_t i = 0; i < run_of_warp.size(); ++i) {
      windows[run_of_warp[i]].Add(warps_[i]);
    }
    double end_ns = -kNever;
    for (const Window& window : windows) {
      if (window.begin_ns < end_ns - kClockDoubtNs) return false;
      end_ns = std::max(end_ns, window.end_ns);
    }
    return true;
  }

  static uint64_t WarpsOf(const Shape& shape) {
    return WarpsExpected(shape.filter, Sizes(shape.grid), Sizes(shape.block), Sizes(shape.cluster));
  }

 private:
  std::vector<Warp> warps_;
  std::vector<Occurrences> places_;
  bool seen_y_ = false, seen_z_ = false;
};

GridRun ToGridRun(const Run& run) {
  return {.found = true,
          .of_log = true,
          .sequence = run.sequence,
          .stream = run.stream,
          .launch = run.launch,
          .graph_launch = run.graph_launch,
          .graph = run.graph,
          .node = run.node,
          .replay = run.replay,
          .ordered = run.ordered,
          .shape = run.shape};
}

// The runs of one launch of the kernel, or of one node in all launches of its graph.
using Source = std::vector<Run>;

// With `changed_is_new` a node that was changed counts as another: whether its %gridid stays is not
// known either.
std::vector<Source> SourcesOf(std::span<const Run> runs, bool changed_is_new) {
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>, Source> sources;
  for (const Run& run : runs) {
    const uint32_t statement = changed_is_new ? run.statement : kNoRow;
    sources[{run.launch, run.graph, run.node, statement}].push_back(run);
  }
  std::vector<Source> list;
  for (auto& [key, source] : sources) list.push_back(std::move(source));
  return list;
}

bool SameShapes(const Source& a, const Source& b) {
  return std::ranges::equal(a, b, {}, &Run::shape, &Run::shape);
}

class Splitting {
 public:
  Splitting(const ReplayInput& input, const RunLog& log, Grids& grids)
      : input_(input), log_(log), grids_(grids) {
    // Of a ring that lost records all is kept that is not older than its oldest warp.
    std::vector<double> oldest_ns(input.lost_of_ring.size(), kNever);
    for (size_t i = input.spans.size(); i-- > 0;) {
      oldest_ns[input.spans[i].ring] = input.times[i].begin_ns;
    }
    for (size_t ring = 0; ring < oldest_ns.size(); ++ring) {
      if (input.lost_of_ring[ring] == 0) continue;
      double& since =
          kept_since_ns_.try_emplace(input.context_of_ring[ring], oldest_ns[ring]).first->second;
      since = std::max(since, oldest_ns[ring]);
    }
  }

  void Run() {
    matched_before_ = grids_.grids.size();
    grids_.runs.resize(grids_.grids.size());
    std::map<std::pair<uint32_t, uint32_t>, std::map<uint32_t, std::vector<Warp>>> kernels;
    for (uint32_t i = 0; i < input_.spans.size(); ++i) {
      const uint32_t number = grids_.grid_of_span[i];
      const Grid& grid = grids_.grids[number];
      if (grid.kernel == kNoRow || !log_.Has(grid.context, grid.kernel)) continue;
      kernels[{grid.context, grid.kernel}][number].push_back(WarpOf(i));
    }
    for (auto& [key, warps_of_grid] : kernels) {
      SplitKernel(key.first, key.second, std::move(warps_of_grid));
    }
    TakeOutEmpty();
    PlaceWithinReplays(input_, log_, grids_);
  }

 private:
  Warp WarpOf(uint32_t span) const {
    const ring::Identity& id = input_.spans[span].identity;
    return {.place = {id.cta_x, id.cta_y, id.cta_z, id.tid_x, id.tid_y, id.tid_z},
            .begin_ns = input_.times[span].begin_ns,
            .end_ns = input_.times[span].end_ns,
            .span = span};
  }

  void SplitKernel(uint32_t context, uint32_t kernel,
                   std::map<uint32_t, std::vector<Warp>> warps_of_grid) {
    std::vector<Warp> all;
    std::vector<Recurrence> groups;
    std::vector<uint32_t> numbers;
    for (auto& [number, warps] : warps_of_grid) {
      all.insert(all.end(), warps.begin(), warps.end());
      groups.emplace_back(std::move(warps));
      numbers.push_back(number);
    }
    const Recurrence together(std::move(all));
    const KernelRuns log = log_.Runs(context, kernel, together.warps().size() + kSpareRuns);
    if (log.uncounted) {
      SplitUncounted(context, together, groups, log);
      return;
    }
    const bool stated = !log_.Unstated(context);
    if (stated && log.shapes.size() == 1) {
      for (uint32_t number : numbers) grids_.runs[number] = OfShape(log.shapes[0]);
    }
    const bool lossless = stated && !kept_since_ns_.contains(context);
    if (log.in_a_row && (SplitInOrder(together, log.runs, true) ||
                         (lossless && SplitInOrder(together, log.runs, false)))) {
      return;
    }
    if (!log.in_a_row && (SplitByGrid(groups, SourcesOf(log.runs, false)) ||
                          SplitByGrid(groups, SourcesOf(log.runs, true)))) {
      return;
    }
    if (log.in_a_row && stated && !lossless && log_.ended()) SplitNewest(together, context, log);
  }

  // Nobody knows how many runs there are: each place says so itself, if all say the same. Each
  // %gridid by itself, where together the warps are not runs of one shape.
  void SplitUncounted(uint32_t context, const Recurrence& together,
                      std::span<const Recurrence> groups, const KernelRuns& log) {
    const bool lossless = !kept_since_ns_.contains(context);
    if (log_.Unstated(context) || log.at_most != 0 || !(lossless || log_.ended())) return;
    if (SplitEqually(together, log.uncounted_nodes) || !lossless) return;
    for (const Recurrence& group : groups) SplitEqually(group, log.uncounted_nodes);
  }

  // As many runs, one after the other, as each place occurs; of the node whose shape they have.
  bool SplitEqually(const Recurrence& warps, std::span<const UncountedNode> nodes) {
    std::vector<uint32_t> run_of_warp;
    GridRun known;
    for (const UncountedNode& node : nodes) {
      if (!run_of_warp.empty() && node.shape == known.shape) {
        known.node = kNoRow;
        known.ordered &= node.ordered;
        known.conditional &= node.conditional;
        if (node.graph != known.graph) known.graph = kNoRow;
        continue;
      }
      std::vector<uint32_t> fits = RunsOfEqualPlaces(warps, node.shape);
      if (fits.empty()) continue;
      if (!run_of_warp.empty()) return false;
      run_of_warp = std::move(fits);
      known = {.found = true,
               .graph = node.graph,
               .node = node.node,
               .ordered = node.ordered,
               .conditional = node.conditional,
               .shape = node.shape};
    }
    if (run_of_warp.empty()) return false;
    Move(warps, run_of_warp, [&](uint32_t) { return known; });
    return true;
  }

  std::vector<uint32_t> RunsOfEqualPlaces(const Recurrence& warps, const Shape& shape) const {
    const uint64_t expected = Recurrence::WarpsOf(shape);
    if (expected == 0 || warps.warps().size() % expected != 0) return {};
    for (const Warp& warp : warps.warps()) {
      if ((input_.spans[warp.span].flags & kWarpRunning) != 0) return {};
    }
    const uint64_t runs = warps.warps().size() / expected;
    if (runs > kSpareRuns) return {};
    const std::vector<trace::Run> equal(runs, trace::Run{.shape = shape});
    std::vector<uint32_t> run_of_warp = warps.Assign(equal, true);
    if (!run_of_warp.empty() && !warps.FollowOneAnother(run_of_warp, runs)) run_of_warp.clear();
    return run_of_warp;
  }

  static GridRun OfShape(const ShapeRuns& runs) {
    return {.found = true, .graph = runs.graph, .node = runs.node, .shape = runs.shape};
  }

  bool SplitInOrder(const Recurrence& warps, std::span<const trace::Run> runs, bool exact) {
    const std::vector<uint32_t> run_of_warp = warps.Assign(runs, exact);
    if (run_of_warp.empty() || !warps.FollowOneAnother(run_of_warp, runs.size())) return false;
    Move(warps, run_of_warp, [&](uint32_t run) { return ToGridRun(runs[run]); });
    return true;
  }

  // Each group is the runs of one source, and the other way round.
  bool SplitByGrid(std::span<const Recurrence> groups, std::span<const Source> sources) {
    if (sources.size() != groups.size()) return false;
    std::vector<std::vector<uint32_t>> classes;  // of sources that look alike
    for (uint32_t i = 0; i < sources.size(); ++i) {
      auto alike = std::ranges::find_if(classes, [&](const std::vector<uint32_t>& members) {
        return SameShapes(sources[members[0]], sources[i]);
      });
      if (alike == classes.end()) alike = classes.insert(alike, std::vector<uint32_t>());
      alike->push_back(i);
    }
    if (classes.size() * groups.size() > kSpareRuns) return false;
    std::vector<std::vector<uint32_t>> members(classes.size());  // groups
    std::vector<std::vector<uint32_t>> assigned(groups.size());
    for (uint32_t group = 0; group < groups.size(); ++group) {
      bool fits = false;
      for (size_t i = 0; i < classes.size(); ++i) {
        const Source& source = sources[classes[i][0]];
        std::vector<uint32_t> run_of_warp = groups[group].Assign(source, true);
        if (run_of_warp.empty() || !groups[group].FollowOneAnother(run_of_warp, source.size())) {
          continue;
        }
        if (fits) return false;
        fits = true;
        members[i].push_back(group);
        assigned[group] = std::move(run_of_warp);
      }
      if (!fits) return false;
    }
    for (size_t i = 0; i < classes.size(); ++i) {
      if (members[i].size() != classes[i].size()) return false;
    }
    for (size_t i = 0; i < classes.size(); ++i) {
      for (size_t j = 0; j < members[i].size(); ++j) {
        MoveClass(groups[members[i][j]], assigned[members[i][j]], sources, classes[i], j);
      }
    }
    return true;
  }

  // A group is one of the sources of a class, of which nothing more tells which.
  void MoveClass(const Recurrence& group, std::span<const uint32_t> run_of_warp,
                 std::span<const Source> sources, std::span<const uint32_t> alike,
                 size_t position) {
    const auto all = [&](auto&& holds) {
      return std::ranges::all_of(alike, [&](uint32_t i) { return holds(sources[i][0]); });
    };
    const trace::Run& first = sources[alike[0]][0];
    const bool launches = all([](const trace::Run& run) { return run.launch != kNoRow; });
    const bool one_graph = all(
        [&](const trace::Run& run) { return run.launch == kNoRow && run.graph == first.graph; });
    Move(group, run_of_warp, [&](uint32_t run) {
      // Launches of the kernel itself have %gridids in the order of the calls, as these groups do.
      if (alike.size() == 1 || launches) {
        return ToGridRun(sources[alike[launches ? position : 0]][run]);
      }
      GridRun known = ToGridRun(sources[alike[0]][run]);
      if (one_graph) {
        known.node = kNoRow;
        return known;
      }
      return GridRun{.found = true, .shape = known.shape};
    });
  }

  // The newest runs after a loss. Of a run that began when everything was kept already all warps
  // are here, behind those of the runs before it; so its shape is one that fits the newest warps,
  // and it is the run's if no other does. All shapes have the first place: where that occurs once
  // more before, and was kept, the run did begin after the loss.
  void SplitNewest(const Recurrence& warps, uint32_t context, const KernelRuns& log) {
    const double kept_since_ns = kept_since_ns_.at(context);
    const std::span<const Occurrences> places = warps.places();
    if (warps.warps().empty() || places[0][0].place != Place()) return;
    for (const Warp& warp : warps.warps()) {
      if ((input_.spans[warp.span].flags & kWarpRunning) != 0) return;
    }
    std::vector<std::vector<uint32_t>> places_of_shape;
    for (const ShapeRuns& runs : log.shapes) {
      std::optional<std::vector<uint32_t>> inside = PlacesOf(warps, runs.shape);
      if (!inside) return;
      places_of_shape.push_back(std::move(*inside));
    }
    std::vector<size_t> left;
    for (const Occurrences& place : places) left.push_back(place.size());
    double next_ns = kNever;
    uint64_t steps = 0;
    while (left[0] > 1 && places[0][left[0] - 2].begin_ns > kept_since_ns) {
      steps += places.size() * log.shapes.size();
      if (steps > kMaxSteps) return;
      std::optional<size_t> fits;
      Window window;
      for (size_t i = 0; i < log.shapes.size(); ++i) {
        const std::optional<Window> found = Newest(warps, places_of_shape[i], left);
        if (!found || found->end_ns > next_ns + kClockDoubtNs) continue;
        if (fits) return;
        fits = i;
        window = *found;
      }
      if (!fits) return;
      next_ns = window.begin_ns;
      const uint32_t number = AddGrid(warps.warps()[0].span);
      grids_.runs[number] = OfShape(log.shapes[*fits]);
      for (uint32_t place : places_of_shape[*fits]) {
        grids_.grid_of_span[places[place][--left[place]].span] = number;
      }
    }
  }

  // The places that a run of the shape has. Nothing if a place may occur in it more than once;
  // empty if not all of them are here.
  static std::optional<std::vector<uint32_t>> PlacesOf(const Recurrence& warps,
                                                       const Shape& shape) {
    if (shape.block.z > kMaxLayers) return std::nullopt;
    std::vector<uint32_t> inside;
    for (uint32_t i = 0; i < warps.places().size(); ++i) {
      const uint64_t times = warps.Times(shape, warps.places()[i][0].place);
      if (times > 1) return std::nullopt;
      if (times == 1) inside.push_back(i);
    }
    if (inside.size() != Recurrence::WarpsOf(shape)) inside.clear();
    return inside;
  }

  // The newest warps at these places of those that are left, if they begin when all others left
  // have ended.
  static std::optional<Window> Newest(const Recurrence& warps, std::span<const uint32_t> inside,
                                      std::span<const size_t> left) {
    if (inside.empty()) return std::nullopt;
    Window window, rest;
    size_t next = 0;
    for (uint32_t i = 0; i < left.size(); ++i) {
      size_t others = left[i];
      if (next < inside.size() && inside[next] == i) {
        ++next;
        if (others == 0) return std::nullopt;
        window.Add(warps.places()[i][--others]);
      }
      if (others > 0) rest.Add(warps.places()[i][others - 1]);
    }
    return rest.end_ns <= window.begin_ns + kClockDoubtNs ? std::optional(window) : std::nullopt;
  }

  // Gives each run that has warps a grid of its own.
  template <typename Describe>
  void Move(const Recurrence& warps, std::span<const uint32_t> run_of_warp,
            const Describe& describe) {
    std::map<uint32_t, uint32_t> grid_of_run;
    for (size_t i = 0; i < run_of_warp.size(); ++i) {
      const uint32_t span = warps.warps()[i].span;
      const auto [grid, is_new] = grid_of_run.try_emplace(run_of_warp[i], 0);
      if (is_new) {
        grid->second = AddGrid(span);
        grids_.runs[grid->second] = describe(run_of_warp[i]);
        grids_.matches[grid->second] = grids_.runs[grid->second].launch;
      }
      grids_.grid_of_span[span] = grid->second;
    }
  }

  // One more grid, called as the one that the span is of.
  uint32_t AddGrid(uint32_t span) {
    grids_.grids.push_back(Grid(grids_.grids[grids_.grid_of_span[span]]));
    grids_.matches.push_back(kNoRow);
    grids_.runs.emplace_back();
    return static_cast<uint32_t>(grids_.grids.size() - 1);
  }

  void TakeOutEmpty() {
    std::vector<uint32_t> moved(grids_.grids.size(), kNoRow);
    for (uint32_t grid : grids_.grid_of_span) moved[grid] = 0;
    uint32_t kept = 0;
    size_t identified = 0;
    for (uint32_t i = 0; i < moved.size(); ++i) {
      if (moved[i] == kNoRow) continue;
      identified += i < grids_.identified || i >= matched_before_ ? 1 : 0;
      moved[i] = kept;
      grids_.grids[kept] = grids_.grids[i];
      grids_.matches[kept] = grids_.matches[i];
      grids_.runs[kept] = grids_.runs[i];
      ++kept;
    }
    grids_.grids.resize(kept);
    grids_.matches.resize(kept);
    grids_.runs.resize(kept);
    grids_.identified = identified;
    for (uint32_t& grid : grids_.grid_of_span) grid = moved[grid];
  }

  const ReplayInput& input_;
  const RunLog& log_;
  Grids& grids_;
  size_t matched_before_ = 0;                 // grids there were
  std::map<uint32_t, double> kept_since_ns_;  // contexts that lost records: whole from then on
};

}  // namespace

void SplitReplays(const ReplayInput& input, const RunLog& log, Grids& grids) {
  Splitting(input, log, grids).Run();
}

}  // namespace iket::trace
