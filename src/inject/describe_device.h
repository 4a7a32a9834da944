// describe_device.h: what a capture says of a GPU.
#pragma once

#include "capture/content.h"
#include "inject/driver.h"

namespace iket::inject {

// What the driver does not tell stays empty.
capture::Device DescribeDevice(CUdevice device);
// True of the software device.
bool IsSimulated(CUdevice device);

}  // namespace iket::inject
