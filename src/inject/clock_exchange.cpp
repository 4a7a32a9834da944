#include "inject/clock_exchange.h"

#include "inject/describe_device.h"
#include "inject/driver.h"

namespace iket::inject {

ClockExchanges ClockExchanges::Begin(CUdevice device) noexcept {
  ClockExchanges exchanges;
  try {
    static const std::optional<probe::DriverCalls> calls = probe::DriverCalls::Find(FindReal);
    if (!calls || IsSimulated(device)) return exchanges;
    const RelaxedCapture relaxed;
    exchanges.probe_ = probe::ClockProbe::Make(*calls);
    exchanges.first_ = exchanges.Make();
  } catch (...) {
    // Out of memory: without, then.
  }
  return exchanges;
}

}  // namespace iket::inject
