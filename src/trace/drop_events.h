// drop_events.h: takes events out of a model, as if they had never been recorded.
//
// For what was recorded and is not to be shown: the rest keeps its order and its times; rows of
// events are numbered anew wherever the model refers to them. What refers to an event that is
// dropped must not: ranges, marks and unmatched ends of such events are not made in the first
// place.
//
// Cost: one pass over the events.
#pragma once

#include <vector>

#include "trace/model.h"

namespace iket::trace {

// `dropped`: by row of Model::events. Counts them in Counters::events_left_out.
void DropEvents(const std::vector<bool>& dropped, Model& model);

}  // namespace iket::trace
