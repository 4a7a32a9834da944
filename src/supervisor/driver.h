// driver.h: the few functions of libcuda.so.1 that the supervisor calls, found at run time.
//
// The supervising process opens the driver only after the guest has told it of rings, so that a
// machine without a driver can still run every other command.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "probe/driver_calls.h"

namespace iket::supervisor {

class Driver {
 public:
  // Opens a driver, the system's if `library` is empty, and initialises it. Errors (kSystem) say
  // what is missing.
  static Result<Driver> Open(const std::string& library);

  // The device with this UUID.
  Result<CUdevice> FindDevice(const std::array<uint8_t, 16>& uuid) const;
  // "cuMemMap: invalid argument (1)" as an error of kind kSystem.
  tl::unexpected<Error> Failure(const char* call, CUresult result) const;

  // Empty if the driver does not say it.
  std::string NameOf(CUdevice device) const;
  bool IsSimulated(CUdevice device) const;

  // What the probe calls; not in every driver.
  std::optional<probe::DriverCalls> probe{};

  // clang-format off
  decltype(&::cuInit) Init = nullptr;
  decltype(&::cuDeviceGetCount) DeviceGetCount = nullptr;
  decltype(&::cuDeviceGet) DeviceGet = nullptr;
  decltype(&::cuDriverGetVersion) DriverGetVersion = nullptr;
  decltype(&::cuDeviceGetName) DeviceGetName = nullptr;
  decltype(&::cuDeviceGetAttribute) DeviceGetAttribute = nullptr;
  decltype(&::cuDeviceGetUuid_v2) DeviceGetUuid = nullptr;
  decltype(&::cuDevicePrimaryCtxRetain) PrimaryCtxRetain = nullptr;
  decltype(&::cuDevicePrimaryCtxRelease_v2) PrimaryCtxRelease = nullptr;
  decltype(&::cuCtxSetCurrent) CtxSetCurrent = nullptr;
  decltype(&::cuMemImportFromShareableHandle) MemImport = nullptr;
  decltype(&::cuMemAddressReserve) MemAddressReserve = nullptr;
  decltype(&::cuMemAddressFree) MemAddressFree = nullptr;
  decltype(&::cuMemMap) MemMap = nullptr;
  decltype(&::cuMemUnmap) MemUnmap = nullptr;
  decltype(&::cuMemRelease) MemRelease = nullptr;
  decltype(&::cuMemSetAccess) MemSetAccess = nullptr;
  decltype(&::cuMemcpyDtoH_v2) MemcpyDtoH = nullptr;
  decltype(&::cuMemcpyDtoHAsync_v2) MemcpyDtoHAsync = nullptr;
  decltype(&::cuMemHostAlloc) MemHostAlloc = nullptr;
  decltype(&::cuMemFreeHost) MemFreeHost = nullptr;
  decltype(&::cuStreamCreate) StreamCreate = nullptr;
  decltype(&::cuStreamSynchronize) StreamSynchronize = nullptr;
  decltype(&::cuStreamDestroy_v2) StreamDestroy = nullptr;
  decltype(&::cuGetErrorString) GetErrorString = nullptr;
  // clang-format on
};

}  // namespace iket::supervisor
