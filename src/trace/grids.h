// grids.h: which grid each warp is of, and which logged launch each grid was. Private to the room.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capture/reader.h"
#include "trace/launches.h"
#include "trace/warp_scan.h"

namespace iket::trace {

struct Grids {
  // Sorted; behind `identified` of them one for each context that has warps without an identity and
  // no other home for them.
  std::vector<Grid> grids;
  size_t identified = 0;
  std::vector<uint32_t> matches;       // of each grid: index in the capture's launches, or kNoRow
  std::vector<uint32_t> grid_of_span;  // index into `grids`

  // Grids that were matched.
  uint64_t Matched() const;
};

// `context_of_ring` is Model::rings.context. A warp that lost its begin is of the kernel that
// others of its %gridid name; one that lost its identity as well is of the context's only launch,
// if the log has just one.
Grids FindGrids(std::span<const WarpSpan> spans, std::span<const uint32_t> context_of_ring,
                const LaunchLog& log);

}  // namespace iket::trace
