// flows.h: which flow_out each flow_in was of.
//
// Both have a name and an id, their payload. What came is what went out last before it, by that
// name and id, in the same cluster (without clusters: the CTA) of the launch. One that went out may
// come to several. Moments of two SMs are taken to be as exact as kClockDoubtNs (replays.h): what
// seems to go out later than it comes by less is its source all the same.
//
// Cost: a sort of the events of flows.
#pragma once

#include "trace/model.h"

namespace iket::trace {

// Fills Model::flows and Counters::flows_unmatched. Needs launches that are summed up.
void LinkFlows(Model& model);

}  // namespace iket::trace
