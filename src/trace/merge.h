// merge.h: several captures as one model, on one axis of time: the processes of a host, or its
// GPUs.
//
// All are put on the axis of the first, by way of the host's clock: CLOCK_MONOTONIC on one host
// since it was booted, else CLOCK_REALTIME, which hosts agree on as well as they were set. How well
// a moment of one capture is known beside another's is what Uncertainty says of the host's clock.
//
// Launches stand in the order of time, whosever they are; devices, kernels and declarations are
// each capture's own, devices with the process in their name. What was lost is counted together.
//
// Cost: all models and their copy in memory at once.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "trace/model.h"

namespace iket::trace {

struct Named {
  std::string name;  // of its file, for errors
  Model model;
};

// Errors (kUsage): one of them has nothing in common with the host's clock, such as a software
// device's, whose time is a model's; or all together are more than a model holds.
Result<Model> Merge(std::vector<Named> captures);

}  // namespace iket::trace
