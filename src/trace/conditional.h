// conditional.h: which launch of its graph a run in the body of a conditional node is of. Private
// to the room.
//
// How often a body runs the host does not know; that each of its runs is within one launch of the
// graph, it does. A run is placed
//   1. in the only launch of the graph that was recorded; else
//   2. between runs of a node that each launch of the graph has once, in which it must stand before
//      or behind: the executable graph never runs beside itself.
// What several such nodes say must agree. What is left has graph and node and no replay.
//
// Cost: a pass over all warps where there are such runs, then a look-up for each run and node.
#pragma once

#include "trace/replays.h"

namespace iket::trace {

void PlaceWithinReplays(const ReplayInput& input, const RunLog& log, Grids& grids);

}  // namespace iket::trace
