#include "analyze/standstill.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

namespace iket::analyze {
namespace {

using trace::kNoRow;
using trace::Model;

// What equal states have in common.
struct State {
  std::vector<uint32_t> open;
  uint32_t last_event = kNoRow;
  bool last_closes = false;

  auto operator<=>(const State&) const = default;
};

// A warp's state, and the payload that goes with its last event.
struct Standing {
  State state;
  uint64_t payload = 0;
};

Standing StandingOf(const Model& model, uint32_t warp) {
  Standing standing;
  const trace::Ranges& ranges = model.ranges;
  const uint32_t first = model.warps.first_range[warp];
  const uint32_t end = first + model.warps.range_count[warp];
  for (uint32_t i = first; i < end; ++i) {
    if ((ranges.flags[i] & (trace::kRangeUnclosed | trace::kRangeCut)) == trace::kRangeUnclosed) {
      standing.state.open.push_back(ranges.declaration[i]);
    }
  }
  if (model.warps.event_count[warp] == 0) return standing;
  const uint32_t last = model.warps.first_event[warp] + model.warps.event_count[warp] - 1;
  standing.state.last_event = model.events.declaration[last];
  standing.payload = model.events.payload[last];
  standing.state.last_closes = trace::Closes(model.declarations[standing.state.last_event].kind);
  if (!standing.state.last_closes) return standing;
  for (uint32_t i = end; i-- > first;) {
    if (ranges.end_event[i] != last) continue;
    standing.state.last_event = ranges.declaration[i];
    standing.payload = ranges.payload[i];
    break;
  }
  return standing;
}

class Launch {
 public:
  Launch(const Model& model, uint32_t launch) : model_(model) { result_.launch = launch; }

  void Add(uint32_t warp) {
    const trace::Warps& warps = model_.warps;
    result_.newest_ns = std::max(result_.newest_ns, warps.end_ns[warp]);
    if ((warps.flags[warp] & trace::kWarpRunning) == 0) {
      ++result_.ended;
      return;
    }
    ++result_.running;
    const Standing standing = StandingOf(model_, warp);
    const double moment = warps.end_ns[warp];
    const auto [found, is_new] = groups_.try_emplace(standing.state);
    StandstillGroup& group = found->second;
    if (is_new) {
      group.open = standing.state.open;
      group.last_event = standing.state.last_event;
      group.last_closes = standing.state.last_closes;
      group.first_ns = group.last_ns = moment;
    }
    group.first_ns = std::min(group.first_ns, moment);
    group.last_ns = std::max(group.last_ns, moment);
    group.may_be_deeper |=
        (warps.flags[warp] & (trace::kWarpBeginMissing | trace::kWarpHoled)) != 0;
    group.warps.push_back(warp);
    if (HasPayload(group.last_event)) group.payloads.push_back(standing.payload);
  }

  StandstillLaunch Take() {
    const uint64_t expected = model_.launches[result_.launch].warps_expected;
    const uint64_t seen = result_.running + result_.ended;
    result_.not_seen = expected > seen ? expected - seen : 0;
    for (auto& [state, group] : groups_) result_.groups.push_back(std::move(group));
    std::ranges::stable_sort(result_.groups, std::greater(),
                             [](const StandstillGroup& group) { return group.warps.size(); });
    return std::move(result_);
  }

  bool any_running() const { return result_.running != 0; }

 private:
  bool HasPayload(uint32_t declaration) const {
    return declaration != kNoRow &&
           model_.declarations[declaration].payload != trace::PayloadType::kNone;
  }

  const Model& model_;
  StandstillLaunch result_;
  std::map<State, StandstillGroup> groups_;
};

}  // namespace

std::vector<StandstillLaunch> FindStandstill(const Model& model) {
  std::vector<StandstillLaunch> launches;
  for (uint32_t row = 0; row < model.launches.size(); ++row) {
    const trace::Launch& of = model.launches[row];
    Launch launch(model, row);
    for (uint32_t warp = of.first_warp; warp < of.first_warp + of.warp_count; ++warp) {
      launch.Add(warp);
    }
    if (launch.any_running()) launches.push_back(launch.Take());
  }
  return launches;
}

}  // namespace iket::analyze
