// pair.h: from events to ranges and marks.
//
// A warp has one stack. A push opens a range and a pop closes the innermost pushed one; the begin
// of a scoped range opens one and its end, which has the same name, closes the innermost of that
// name. A close that finds others on top of its range closes its own and leaves the others open:
// the lane groups of a divergent warp take turns in one ring. It is counted, and all of them carry
// kRangeCrossed. What two groups cannot tell apart is two nameless pops: name such ranges.
//
// A token opens a range beside the stack, and its end names it: by the name and the clock of the
// begin, which the end has recorded. The first end of a range counts: later ones, of other lanes or
// of a token that is kept after its end, are counted (Counters::tokens_again). The end of a
// sentinel, a token of no range, is no fault.
//
// A token of another tool (kTokenEither) has one event for both ends: they take turns. Once records
// of a warp are lost, which is which is not known: all of them are unmatched then.
//
// Lanes that leave a scope at different times each end its range: as long as no other is opened the
// last end counts (Counters::closed_again).
//
// Where records of a warp's middle were lost (Model::holes) all that is open ends and is kRangeCut.
//
// What of events that are left out (Declaration::left_out) was recorded all the same takes part
// here so that every pop closes its own push, and is not in the model then: neither such events,
// nor the pops that close such pushes. Depths, crossings and what is counted are those of the
// others.
//
// A close without its open is kept in Model::unmatched_ends and counted. A range without its close
// ends at its warp's last moment and carries kRangeUnclosed.
//
// Cost: two passes over the events, no allocation an event.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "trace/model.h"

namespace iket::trace {

// Ranges open at once on the stack of a warp. Deeper ones are counted in depth_overflows and left
// out: they come of a push in a loop whose pop is missing, and would make the search for a name
// long.
inline constexpr uint32_t kMaxDepth = 1024;

// Fills Model::ranges, marks, unmatched_ends and their counters, and of each warp first_range,
// range_count, first_mark, mark_count. Needs all other columns of warps and events but `warp`.
// Takes events that are left out away (drop_events.h).
void PairRanges(Model& model);

// The same of events that are not there yet: `make` puts those of a warp where they belong, just
// before they are looked at, while they are in the cache. `declarations`: Events::declaration, in
// any order.
void PairRanges(Model& model, std::span<const uint32_t> declarations,
                const std::function<void(uint32_t warp)>& make);

}  // namespace iket::trace
