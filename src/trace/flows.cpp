#include "trace/flows.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "trace/replays.h"

namespace iket::trace {
namespace {

constexpr size_t kLookedAhead = 64;

struct Moment {
  uint32_t launch;
  std::array<uint32_t, 3> cluster;
  StringId name;
  uint64_t id;
  double ns;
  uint32_t event;
  uint16_t sm;
  bool out;

  auto Key() const { return std::tie(launch, cluster, name, id); }
};

Column<Moment> MomentsOf(const Model& model) {
  Column<Moment> moments;
  for (const uint32_t event : model.marks.event) {
    const Declaration& declaration = model.declarations[model.events.declaration[event]];
    const bool out = declaration.kind == EventKind::kFlowOut;
    const uint32_t warp = model.events.warp[event];
    if ((!out && declaration.kind != EventKind::kFlowIn) ||
        (model.warps.flags[warp] & kWarpOrphan) != 0) {
      continue;
    }
    moments.push_back({.launch = model.warps.launch[warp],
                       .cluster = model.ClusterOf(warp),
                       .name = declaration.name,
                       .id = model.events.payload[event],
                       .ns = model.NsOfWarp(warp, model.events.cycles[event]),
                       .event = event,
                       .sm = model.warps.sm[warp],
                       .out = out});
  }
  return moments;
}

}  // namespace

void LinkFlows(Model& model) {
  Column<Moment> moments = MomentsOf(model);
  std::ranges::sort(moments, [](const Moment& a, const Moment& b) {
    return std::tuple(a.Key(), a.ns, !a.out, a.event) < std::tuple(b.Key(), b.ns, !b.out, b.event);
  });
  Column<std::pair<uint32_t, uint32_t>> links;  // to, from
  const Moment* last_out = nullptr;             // of this key
  for (size_t i = 0; i < moments.size(); ++i) {
    const Moment& in = moments[i];
    if (last_out != nullptr && last_out->Key() != in.Key()) last_out = nullptr;
    if (in.out) {
      last_out = &in;
      continue;
    }
    const Moment* source = last_out;
    // The SMs' clocks may have put it behind.
    for (size_t j = i + 1; source == nullptr && j < std::min(moments.size(), i + kLookedAhead) &&
                           moments[j].Key() == in.Key() && moments[j].ns <= in.ns + kClockDoubtNs;
         ++j) {
      if (moments[j].out && moments[j].sm != in.sm) source = &moments[j];
    }
    if (source != nullptr) {
      links.emplace_back(in.event, source->event);
    } else if (model.launches[in.launch].completeness == Completeness::kComplete) {
      ++model.counters.flows_unmatched;
    }
  }
  std::ranges::sort(links);
  for (const auto& [to, from] : links) {
    model.flows.to.push_back(to);
    model.flows.from.push_back(from);
  }
}

}  // namespace iket::trace
