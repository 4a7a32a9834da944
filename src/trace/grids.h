// grids.h: which grid each warp is of, and which logged launch each grid was. Private to the room.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capture/reader.h"
#include "trace/launches.h"
#include "trace/runs.h"
#include "trace/warp_scan.h"

namespace iket::trace {

// What is known of a grid that a graph ran, or may have run.
struct GridRun {
  bool found = false;   // all that follows comes from the host's log
  bool of_log = false;  // it is one of the runs there, so these are known:
  uint64_t sequence = 0;
  uint64_t stream = 0;
  uint32_t launch = kNoRow;        // row of Capture::launches, or
  uint32_t graph_launch = kNoRow;  // row of Capture::graph_launches
  uint32_t graph = kNoRow;         // kNoRow: none, or not known
  uint32_t node = kNoRow;
  uint32_t replay = kNoRow;
  bool ordered = false;  // as in Run
  // Of the body of a conditional node: it ran within some logged launch of `graph`, and the log
  // does not say how often.
  bool conditional = false;
  Shape shape{};
};

struct Grids {
  // As FindGrids makes them they are sorted; behind `identified` of them one for each context that
  // has warps without an identity and no other home for them.
  std::vector<Grid> grids;
  size_t identified = 0;          // grids without those
  std::vector<uint32_t> matches;  // of each grid: index in the capture's launches, or kNoRow
  Column<uint32_t> grid_of_span;  // index into `grids`
  std::vector<GridRun> runs;      // of each grid; made by replays.h

  // Grids that were matched; and those of them that the log promises.
  uint64_t Matched() const;
  uint64_t Promised() const;
};

// `context_of_ring` is Model::rings.context. A warp that lost its begin is of the kernel that
// others of its %gridid name; one that lost its identity as well is of the context's only launch,
// if the log has just one.
Grids FindGrids(std::span<const WarpSpan> spans, std::span<const uint32_t> context_of_ring,
                const LaunchLog& log);

}  // namespace iket::trace
