// driver_calls.h: the functions of a driver that the probe calls.
#pragma once

#include <cuda.h>

#include <functional>
#include <optional>

namespace iket::probe {

struct DriverCalls {
  // By their exported names; nothing if this driver lacks one.
  static std::optional<DriverCalls> Find(const std::function<void*(const char*)>& symbol);

  // clang-format off
  decltype(&::cuCtxGetDevice) CtxGetDevice = nullptr;
  decltype(&::cuDeviceGetAttribute) DeviceGetAttribute = nullptr;
  decltype(&::cuModuleLoadData) ModuleLoadData = nullptr;
  decltype(&::cuModuleUnload) ModuleUnload = nullptr;
  decltype(&::cuModuleGetFunction) ModuleGetFunction = nullptr;
  decltype(&::cuFuncSetAttribute) FuncSetAttribute = nullptr;
  decltype(&::cuLaunchKernelEx) LaunchKernelEx = nullptr;
  decltype(&::cuMemHostAlloc) MemHostAlloc = nullptr;
  decltype(&::cuMemFreeHost) MemFreeHost = nullptr;
  decltype(&::cuStreamCreate) StreamCreate = nullptr;
  decltype(&::cuStreamQuery) StreamQuery = nullptr;
  decltype(&::cuStreamDestroy_v2) StreamDestroy = nullptr;
  // clang-format on
};

}  // namespace iket::probe
