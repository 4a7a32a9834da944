// software_device.h: by what a device of iket's own driver is known, to those that ask a driver.
#pragma once

#include <string_view>

namespace iket::capture {

// How its name begins (src/sim/device_model.h).
inline constexpr std::string_view kSoftwareDeviceName = "iket software device";

}  // namespace iket::capture
