#include "analyze/ctas.h"

#include <map>

namespace iket::analyze {
namespace {

std::array<uint32_t, 3> PlaceOf(const trace::Warps& warps, uint32_t warp) {
  return {warps.cta_x[warp], warps.cta_y[warp], warps.cta_z[warp]};
}

}  // namespace

std::vector<Cta> CtasOf(const trace::Model& model, uint32_t launch) {
  std::vector<Cta> ctas;
  const trace::Warps& warps = model.warps;
  const uint32_t end = model.launches[launch].first_warp + model.launches[launch].warp_count;
  for (uint32_t first = model.launches[launch].first_warp; first < end;) {
    const auto place = PlaceOf(warps, first);
    uint32_t last = first;
    std::map<uint16_t, Cta> by_sm;
    for (; last < end && PlaceOf(warps, last) == place; ++last) {
      if ((warps.flags[last] & trace::kWarpOrphan) != 0) continue;
      Cta& cta = by_sm[warps.sm[last]];
      ++cta.warps;
      cta.events += warps.event_count[last];
    }
    for (const auto& [sm, cta] : by_sm) {
      ctas.push_back({launch, place, sm, first, last - first, cta.warps, cta.events});
    }
    first = last;
  }
  return ctas;
}

}  // namespace iket::analyze
