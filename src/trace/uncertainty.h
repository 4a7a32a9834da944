// uncertainty.h: how well a trace knows its times, level by level.
//
// Within an SM moments are cycles, exact. SMs are put on one axis by what each of them read of the
// GPU's timer, and that axis is joined to the host's clock where the two were exchanged; where they
// were not, by launches: no kernel began before it was launched, and none ended after its rings
// were read.
//
// Cost: a pass over clocks and launches.
#pragma once

#include <optional>
#include <string>

#include "trace/model.h"

namespace iket::trace {

struct Uncertainty {
  // Nothing is known of a GPU whose SMs recorded no pair of clocks (a run of another tool): its
  // times are the timer's, in these steps.
  std::optional<double> timer_step_ns{};
  // The length of a cycle where the clock was slowest: the error of a moment within its SM.
  double cycle_ns = 0;
  // Of a moment of one SM on the axis of its GPU: how far pairs lay off their SM's line, at most,
  // and rms of the worst SM. A pair is itself uncertain by the timer's step (32 ns).
  double gpu_max_ns = 0, gpu_rms_ns = 0;
  // Of the host's time of a moment between the trace's beginning and its end, at most. Where clocks
  // were exchanged once it grows by 100 ppm from there; between two exchanges they are taken to go
  // evenly. Nothing: they were not, and no launch, or no reading, is known to the host; or time is
  // a model's.
  std::optional<double> host_ns{};

  // "a cycle (0.51 ns) within an SM, 33 ns (rms 11 ns) among SMs, 1.2 ms to the host's clock":
  // rounded up to two digits, of which none claims more than is known.
  std::string Sentence() const;
};

Uncertainty UncertaintyOf(const Model& model);

}  // namespace iket::trace
