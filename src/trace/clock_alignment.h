// clock_alignment.h: puts the warps of all rings on the axis of their SM, and the SMs on one axis.
//
// Of a warp's begin the rings have the low words of both clocks; of a ring's last end the header
// has the whole timer. From there the timers of a ring are widened backwards: a warp began at the
// latest time that fits, or a multiple of 2^32 ns (4.3 s) before it where its own cycles, the time
// of its reading or the host's launches ask for that. In the order of the timer the pairs then tell
// how often %clock wrapped; within a warp its own records do. Where that does not add up the warp
// was silent for longer than the clock's range: it is flagged, and its events are moved only where
// the records leave no choice.
//
// Of several GPUs each has a timer: those that exchanged clocks with the host are put on the axis
// of the first that did. Others are taken to agree with it.
#pragma once

#include <span>
#include <vector>

#include "capture/content.h"
#include "trace/model.h"
#include "trace/timer_widening.h"
#include "trace/warp_scan.h"

namespace iket::trace {

struct AlignmentInput {
  std::span<WarpSpan> spans;                // ring by ring, oldest first
  std::span<const int64_t> host_ns;         // of each span's launch, by the host's clock; 0 unknown
  SinceLaunch since_launch;                 // where that is not known
  std::span<const uint32_t> clock_of_ring;  // row of Model::clocks
  std::span<const uint32_t> gpu_of_clock;   // a number for each clock's GPU
  std::span<const double> ghz_of_clock;     // and its nominal frequency
  // By GPU: where its timer and the host's clock met. Each has a timer of its own.
  std::span<const std::vector<capture::ClockExchange>> exchanges_of_gpu{};
};

// Fills the spans' last fields, Model::clocks, origin_ns, and Model::rings.suspect where a ring's
// clock contradicts itself. Of the events those of warps whose clock stepped back are put on their
// SM's axis; row_order.h does it for the others.
void AlignClocks(const AlignmentInput& input, Model& model);

}  // namespace iket::trace
