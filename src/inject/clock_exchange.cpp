#include "inject/clock_exchange.h"

#include "inject/describe_device.h"
#include "inject/driver.h"

namespace iket::inject {

ClockExchanges ClockExchanges::Begin(CUdevice device) noexcept {
  try {
    ClockExchanges exchanges;
    static const std::optional<probe::DriverCalls> kCalls = probe::DriverCalls::Find(FindReal);
    if (!kCalls || IsSimulated(device)) return exchanges;
    const RelaxedCapture relaxed;
    exchanges.probe_ = probe::ClockProbe::Make(*kCalls);
    exchanges.first_ = exchanges.Make();
    return exchanges;
  } catch (...) {
    return {};  // out of memory
  }
}

}  // namespace iket::inject
