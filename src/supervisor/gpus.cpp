#include "supervisor/gpus.h"

#include "supervisor/driver.h"

namespace iket::supervisor {

std::string WhyNoGpu(const std::string& driver) {
  const auto opened = Driver::Open(driver);
  return opened ? "" : opened.error().message;
}

Result<GpuList> ListGpus(const std::string& path) {
  const auto driver = Driver::Open(path);
  if (!driver) return tl::unexpected(driver.error());
  GpuList list;
  int version = 0, count = 0;
  if (driver->DriverGetVersion(&version) == CUDA_SUCCESS) {
    list.driver_version = static_cast<uint32_t>(version);
  }
  if (const CUresult result = driver->DeviceGetCount(&count); result != CUDA_SUCCESS) {
    return driver->Failure("cuDeviceGetCount", result);
  }
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    if (driver->DeviceGet(&device, i) != CUDA_SUCCESS) continue;
    const auto attribute = [&](CUdevice_attribute which) {
      int value = 0;
      driver->DeviceGetAttribute(&value, which, device);
      return static_cast<uint32_t>(value);
    };
    list.gpus.push_back({.name = driver->NameOf(device),
                         .simulated = driver->IsSimulated(device),
                         .sm = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                               attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
                         .sm_count = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)});
  }
  return list;
}

}  // namespace iket::supervisor
