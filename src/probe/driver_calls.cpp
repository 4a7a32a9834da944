#include "probe/driver_calls.h"

#include <type_traits>

namespace iket::probe {

std::optional<DriverCalls> DriverCalls::Find(const std::function<void*(const char*)>& symbol) {
  DriverCalls calls;
  bool all = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol(name));
    all = all && function != nullptr;
  };
  find(calls.CtxGetDevice, "cuCtxGetDevice");
  find(calls.DeviceGetAttribute, "cuDeviceGetAttribute");
  find(calls.ModuleLoadData, "cuModuleLoadData");
  find(calls.ModuleUnload, "cuModuleUnload");
  find(calls.ModuleGetFunction, "cuModuleGetFunction");
  find(calls.FuncSetAttribute, "cuFuncSetAttribute");
  find(calls.LaunchKernelEx, "cuLaunchKernelEx");
  find(calls.MemHostAlloc, "cuMemHostAlloc");
  find(calls.MemFreeHost, "cuMemFreeHost");
  find(calls.StreamCreate, "cuStreamCreate");
  find(calls.StreamQuery, "cuStreamQuery");
  find(calls.StreamDestroy, "cuStreamDestroy_v2");
  return all ? std::optional(calls) : std::nullopt;
}

}  // namespace iket::probe
