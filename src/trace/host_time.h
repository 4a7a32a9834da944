// host_time.h: the host's clock (CLOCK_MONOTONIC) on the trace's axis. Private to the room.
//
// The two are joined where the GPU exchanged clocks with the host (host_clock.h); else by the
// launch that began soonest after its call: too late by what that launch took to begin, some
// microseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "capture/reader.h"
#include "trace/model.h"
#include "trace/strings.h"

namespace iket::trace {

// Fills Model::host_clock and read_ns; `read_host_ns` is when the rings were read, 0 unknown.
// Launches must be summed up.
void JoinHost(const capture::Capture& facts, int64_t read_host_ns, Model& model);

// The exchanges of all contexts of a GPU.
std::vector<capture::ClockExchange> ExchangesOf(const capture::Capture& facts, uint32_t device);

// Fills Model::host_marks, once the host was joined.
void PlaceHostMarks(const capture::Capture& facts, StringInterner& strings, Model& model);

}  // namespace iket::trace
