// clock_exchange.h: the timer of a traced context's GPU beside the host's clock (probe/clocks.h),
// for the capture.
//
// Done when a context gets its rings and when they are read here: between the two the axes of GPU
// and host are a line. Not on the software device, whose time is a model's. What it takes is never
// given back while the context lives: a driver that gives memory back has GPUs drop what they know
// of all addresses, and the program's next loads would wait for that.
#pragma once

#include <cuda.h>

#include <optional>

#include "capture/content.h"
#include "probe/clocks.h"

namespace iket::inject {

class ClockExchanges {
 public:
  // Of the current context, on this device; the first exchange is made.
  static ClockExchanges Begin(CUdevice device) noexcept;

  // With the context current. Nothing if the driver cannot, or the GPU is busy.
  std::optional<capture::ClockExchange> Make() noexcept {
    return probe_ ? probe_->Ask() : std::nullopt;
  }
  const std::optional<capture::ClockExchange>& first() const { return first_; }

 private:
  std::optional<probe::ClockProbe> probe_;
  std::optional<capture::ClockExchange> first_;
};

}  // namespace iket::inject
