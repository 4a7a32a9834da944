#include "inject/describe_device.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "capture/software_device.h"

namespace iket::inject {
namespace {

std::string NameOf(CUdevice device) {
  char name[256] = {};
  return Real().DeviceGetName(name, sizeof name, device) == CUDA_SUCCESS ? name : "";
}

}  // namespace

bool IsSimulated(CUdevice device) {
  return NameOf(device).starts_with(capture::kSoftwareDeviceName);
}

capture::Device DescribeDevice(CUdevice device) {
  const RealDriver& real = Real();
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    real.DeviceGetAttribute(&value, which, device);
    return static_cast<uint32_t>(value);
  };
  capture::Device row{.index = static_cast<uint32_t>(device)};
  row.name = NameOf(device);
  row.simulated = row.name.starts_with(capture::kSoftwareDeviceName);
  CUuuid uuid{};
  if (real.DeviceGetUuid(&uuid, device) == CUDA_SUCCESS) {
    std::memcpy(row.uuid.data(), uuid.bytes, row.uuid.size());
  }
  row.compute_major =
      static_cast<uint16_t>(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  row.compute_minor =
      static_cast<uint16_t>(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  row.sm_count = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  row.sm_clock_max_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  int version = 0;
  if (real.DriverGetVersion(&version) == CUDA_SUCCESS) {
    row.cuda_version = static_cast<uint32_t>(version);
  }
  size_t bytes = 0;
  if (real.DeviceTotalMem(&bytes, device) == CUDA_SUCCESS) row.memory_bytes = bytes;
  std::FILE* const file = row.simulated ? nullptr : std::fopen("/sys/module/nvidia/version", "re");
  if (file != nullptr) {
    char text[64] = {};
    if (std::fgets(text, sizeof text, file) != nullptr) {
      text[std::strcspn(text, "\n")] = 0;
      row.driver_version = text;
    }
    std::fclose(file);
  }
  return row;
}

}  // namespace iket::inject
