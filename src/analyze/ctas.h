// ctas.h: the CTAs of a launch, each as the warps of it that are kept.
//
// Cost: a pass over the warps of the launch, 32 bytes a CTA.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trace/model.h"

namespace iket::analyze {

// What is kept of one CTA on one SM. Where launches of a graph cannot be told apart, or a CTA was
// moved, one place of the grid has several of these, one a SM.
struct Cta {
  uint32_t launch = 0;  // row of Model::launches
  std::array<uint32_t, 3> place = {};
  uint16_t sm = 0;
  // Rows of Model::warps among which its own are: see IsOf.
  uint32_t first_warp = 0, warp_count = 0;
  uint32_t warps = 0;   // its own
  uint64_t events = 0;  // kept events of these

  bool IsOf(const trace::Model& model, uint32_t warp) const {
    return model.warps.sm[warp] == sm && (model.warps.flags[warp] & trace::kWarpOrphan) == 0;
  }
};

// By place (x outermost, as the model has them), then SM. Pieces of warps of which nobody knows the
// CTA are in none.
std::vector<Cta> CtasOf(const trace::Model& model, uint32_t launch);

}  // namespace iket::analyze
