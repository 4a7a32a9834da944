// host_time.h: the host's clock (CLOCK_MONOTONIC) on the trace's axis. Private to the room.
//
// The two are joined by the launch that began soonest after its call: too late by what that launch
// took to begin, some microseconds.
#pragma once

#include <optional>

#include "capture/reader.h"
#include "trace/model.h"
#include "trace/strings.h"

namespace iket::trace {

// Trace time 0 on the host's clock; nothing where no launch is known to the host.
std::optional<double> HostOrigin(const Model& model);

// Fills Model::host_marks. Launches must be summed up.
void PlaceHostMarks(const capture::Capture& facts, StringInterner& strings, Model& model);

}  // namespace iket::trace
