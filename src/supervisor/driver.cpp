#include "supervisor/driver.h"

#include <dlfcn.h>

#include <cstring>
#include <type_traits>

#include "capture/software_device.h"

namespace iket::supervisor {

Result<Driver> Driver::Open(const std::string& path) {
  void* library = dlopen(path.empty() ? "libcuda.so.1" : path.c_str(), RTLD_NOW);
  if (library == nullptr) {
    return Fail(ErrorKind::kSystem, "no NVIDIA driver on this machine: {}", dlerror());
  }
  Driver driver;
  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && missing == nullptr) missing = name;
  };
  find(driver.Init, "cuInit");
  find(driver.DeviceGetCount, "cuDeviceGetCount");
  find(driver.DeviceGet, "cuDeviceGet");
  find(driver.DriverGetVersion, "cuDriverGetVersion");
  find(driver.DeviceGetName, "cuDeviceGetName");
  find(driver.DeviceGetAttribute, "cuDeviceGetAttribute");
  find(driver.DeviceGetUuid, "cuDeviceGetUuid_v2");
  find(driver.PrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  find(driver.PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  find(driver.CtxSetCurrent, "cuCtxSetCurrent");
  find(driver.MemImport, "cuMemImportFromShareableHandle");
  find(driver.MemAddressReserve, "cuMemAddressReserve");
  find(driver.MemAddressFree, "cuMemAddressFree");
  find(driver.MemMap, "cuMemMap");
  find(driver.MemUnmap, "cuMemUnmap");
  find(driver.MemRelease, "cuMemRelease");
  find(driver.MemSetAccess, "cuMemSetAccess");
  find(driver.MemcpyDtoH, "cuMemcpyDtoH_v2");
  find(driver.MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  find(driver.MemHostAlloc, "cuMemHostAlloc");
  find(driver.MemFreeHost, "cuMemFreeHost");
  find(driver.StreamCreate, "cuStreamCreate");
  find(driver.StreamSynchronize, "cuStreamSynchronize");
  find(driver.StreamDestroy, "cuStreamDestroy_v2");
  find(driver.GetErrorString, "cuGetErrorString");
  driver.probe =
      probe::DriverCalls::Find([library](const char* name) { return dlsym(library, name); });
  if (missing != nullptr) {
    return Fail(ErrorKind::kSystem,
                "the NVIDIA driver is too old: it has no {}; update it to 525 or "
                "later",
                missing);
  }
  if (const CUresult result = driver.Init(0); result != CUDA_SUCCESS) {
    return driver.Failure("cuInit", result);
  }
  return driver;
}

Result<CUdevice> Driver::FindDevice(const std::array<uint8_t, 16>& uuid) const {
  int count = 0;
  if (const CUresult result = DeviceGetCount(&count); result != CUDA_SUCCESS) {
    return Failure("cuDeviceGetCount", result);
  }
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    CUuuid found{};
    if (DeviceGet(&device, i) != CUDA_SUCCESS || DeviceGetUuid(&found, device) != CUDA_SUCCESS) {
      continue;
    }
    if (std::memcmp(found.bytes, uuid.data(), uuid.size()) == 0) return device;
  }
  return Fail(ErrorKind::kSystem,
              "the program's GPU is not visible to iket: is CUDA_VISIBLE_DEVICES "
              "set inside the program?");
}

std::string Driver::NameOf(CUdevice device) const {
  char name[256] = {};
  return DeviceGetName(name, sizeof name, device) == CUDA_SUCCESS ? name : "";
}

bool Driver::IsSimulated(CUdevice device) const {
  return NameOf(device).starts_with(capture::kSoftwareDeviceName);
}

tl::unexpected<Error> Driver::Failure(const char* call, CUresult result) const {
  const char* text = nullptr;
  if (GetErrorString == nullptr || GetErrorString(result, &text) != CUDA_SUCCESS) text = nullptr;
  return Fail(ErrorKind::kSystem, "{}: {} ({})", call, text != nullptr ? text : "unknown error",
              static_cast<int>(result));
}

}  // namespace iket::supervisor
