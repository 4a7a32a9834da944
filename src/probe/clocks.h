// clocks.h: a GPU's timer beside the host's clock.
//
// A kernel of one thread and the host pass a number to and fro through page-locked memory. The host
// notes when it asked and when the answer was there; between the two the kernel read the timer. Of
// sixteen times the shortest is kept: 2 to 3 us wide on an H200, so the timer is known to half of
// that.
//
// Cost: a millisecond for loading the kernel and locking a page, once; 50 us of one SM each time. A
// GPU that does not answer within the patience is left alone: then there is no exchange, nor will
// there be. The kernel ends by itself when nobody asks any more, whatever becomes of this process.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "capture/content.h"
#include "probe/driver_calls.h"
#include "probe/kernels.h"

namespace iket::probe {

// Of one context, which must be current whenever this is used, and when it goes.
class ClockProbe {
 public:
  // Nothing if the context has failed, or the driver cannot.
  static std::optional<ClockProbe> Make(const DriverCalls& calls) noexcept;

  // Its context is for the caller to fill in.
  std::optional<capture::ClockExchange> Ask(
      std::chrono::nanoseconds patience = std::chrono::milliseconds(20)) noexcept;

 private:
  ClockProbe(const DriverCalls& calls, Bench bench) : calls_(calls), bench_(std::move(bench)) {}

  DriverCalls calls_;
  Bench bench_;
  bool lost_ = false;  // a kernel did not answer, and may run still
};

}  // namespace iket::probe
