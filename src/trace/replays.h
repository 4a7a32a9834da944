// replays.h: which run each warp of a graph's kernel is of. Private to the room.
//
// All replays of a node have one %gridid, and whether two nodes have the same one is not known. So
// the warps of a kernel that some graph runs are told apart by recurrence: one warp of a run is its
// CTA and its place in the CTA, each run has it once, and runs that follow one another are in the
// order of time. Matched are, for each kernel and context,
//   1. all warps, in the order of the host's log, where the runs follow one another (one stream,
//      one executable graph, nodes that depend on each other) and the log explains every warp:
//      each occurs as often as its runs. If nothing of the context was overwritten it may occur
//      less often: the program ended too soon, and the first runs are those that are here;
//   2. else, where runs may overlap, each %gridid by itself, if the log explains all of them
//      exactly. Nodes of one graph that are equal in all that can be seen share a replay's number
//      and have no node's; equal nodes of several graphs have neither.
// Of nodes in the body of a conditional node nobody knows how often they ran; where all places
// occur equally often, one run after the other, each is a run of its own, and conditional.h says in
// which launch of the graph, where that is certain. So are runs of graphs that the device may
// launch. After a loss the newest runs are told apart where none of their warps can be missing, and
// which replays they were is unknown. What is left stays one row of unknown completeness: a wrong
// number would be worse.
//
// Cost: a sort of the warps of such kernels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capture/reader.h"
#include "trace/grids.h"
#include "trace/runs.h"
#include "trace/warp_scan.h"

namespace iket::trace {

// Moments of two SMs that are closer than this may be in the other order: the error of the fit that
// puts them on one axis. Runs follow one another a microsecond apart.
inline constexpr double kClockDoubtNs = 500;

// When a span was on the SM, trace time.
struct SpanTime {
  double begin_ns = 0;
  double end_ns = 0;
};

struct ReplayInput {
  std::span<const WarpSpan> spans;
  std::span<const SpanTime> times;            // of the spans
  std::span<const uint32_t> context_of_ring;  // Model::rings.context
  std::span<const uint64_t> lost_of_ring;     // Model::rings.lost
};

// Takes grids of kernels that graphs run apart: a run's warps get a grid of their own, with its
// `run`. Grids without a warp are taken out.
void SplitReplays(const ReplayInput& input, const RunLog& log, Grids& grids);

}  // namespace iket::trace
