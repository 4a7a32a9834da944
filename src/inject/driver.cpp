#include "inject/driver.h"

#include <dlfcn.h>

#include <atomic>
#include <type_traits>

namespace iket::inject {
namespace {

void* DriverLibrary() noexcept {
  static std::atomic<void*> found{nullptr};
  void* library = found.load(std::memory_order_relaxed);
  if (library == nullptr) {
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    found.store(library, std::memory_order_relaxed);
  }
  return library;
}

RealDriver LoadReal() noexcept {
  RealDriver real{};
  bool missing = false;
  const auto find = [&missing](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(FindReal(name));
    if (function == nullptr) missing = true;
  };
  find(real.CtxGetCurrent, "cuCtxGetCurrent");
  find(real.CtxGetDevice, "cuCtxGetDevice");
  find(real.CtxGetId, "cuCtxGetId");
  find(real.CtxPushCurrent, "cuCtxPushCurrent_v2");
  find(real.CtxPopCurrent, "cuCtxPopCurrent_v2");
  find(real.CtxSynchronize, "cuCtxSynchronize");
  find(real.PrimaryCtxGetState, "cuDevicePrimaryCtxGetState");
  find(real.PrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  find(real.PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  find(real.DeviceGetCount, "cuDeviceGetCount");
  find(real.DeviceGet, "cuDeviceGet");
  find(real.DeviceGetAttribute, "cuDeviceGetAttribute");
  find(real.DeviceGetName, "cuDeviceGetName");
  find(real.DeviceGetUuid, "cuDeviceGetUuid_v2");
  find(real.DeviceTotalMem, "cuDeviceTotalMem_v2");
  find(real.DriverGetVersion, "cuDriverGetVersion");
  find(real.MemCreate, "cuMemCreate");
  find(real.MemRelease, "cuMemRelease");
  find(real.MemExport, "cuMemExportToShareableHandle");
  find(real.MemAddressReserve, "cuMemAddressReserve");
  find(real.MemAddressFree, "cuMemAddressFree");
  find(real.MemMap, "cuMemMap");
  find(real.MemUnmap, "cuMemUnmap");
  find(real.MemSetAccess, "cuMemSetAccess");
  find(real.MemsetD8Async, "cuMemsetD8Async");
  find(real.MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  find(real.MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  find(real.StreamCreate, "cuStreamCreate");
  find(real.StreamDestroy, "cuStreamDestroy_v2");
  find(real.StreamQuery, "cuStreamQuery");
  find(real.StreamSynchronize, "cuStreamSynchronize");
  find(real.ExchangeCaptureMode, "cuThreadExchangeStreamCaptureMode");
  find(real.ModuleGetGlobal, "cuModuleGetGlobal_v2");
  find(real.LibraryGetGlobal, "cuLibraryGetGlobal");
  find(real.LinkCreate, "cuLinkCreate_v2");
  find(real.LinkAddData, "cuLinkAddData_v2");
  find(real.LinkComplete, "cuLinkComplete");
  find(real.LinkDestroy, "cuLinkDestroy");
  real.usable = !missing;
  missing = false;
  find(real.StreamIsCapturing, "cuStreamIsCapturing");
  find(real.GraphGetNodes, "cuGraphGetNodes");
  find(real.GraphNodeGetDependencies, "cuGraphNodeGetDependencies");
  find(real.GraphNodeGetType, "cuGraphNodeGetType");
  find(real.GraphKernelGetParams, "cuGraphKernelNodeGetParams_v2");
  find(real.GraphKernelGetAttribute, "cuGraphKernelNodeGetAttribute");
  find(real.GraphChildGetGraph, "cuGraphChildGraphNodeGetGraph");
  real.knows_graphs = !missing;
  find(real.MemHostRegister, "cuMemHostRegister_v2");
  find(real.MemHostUnregister, "cuMemHostUnregister");
  find(real.MemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2");
  find(real.KernelGetFunction, "cuKernelGetFunction");
  find(real.FuncGetModule, "cuFuncGetModule");
  find(real.FuncGetName, "cuFuncGetName");
  find(real.LibraryGetModule, "cuLibraryGetModule");
  return real;
}

}  // namespace

void* FindReal(const char* exported_name) noexcept {
  void* library = DriverLibrary();
  return library != nullptr && RealDlsym() != nullptr ? RealDlsym()(library, exported_name)
                                                      : nullptr;
}

void* FindInProgram(const char* name) noexcept {
  static void* const kProgram = dlopen(nullptr, RTLD_NOW);
  return kProgram != nullptr && RealDlsym() != nullptr ? RealDlsym()(kProgram, name) : nullptr;
}

const RealDriver& Real() noexcept {
  static const RealDriver kReal = LoadReal();
  return kReal;
}

const char* NameOf(CUresult result) noexcept {
  static const auto kGet =
      reinterpret_cast<decltype(&::cuGetErrorName)>(FindReal("cuGetErrorName"));
  const char* name = nullptr;
  if (kGet == nullptr || kGet(result, &name) != CUDA_SUCCESS || name == nullptr) return "an error";
  return name;
}

RelaxedCapture::RelaxedCapture() noexcept {
  if (Real().ExchangeCaptureMode != nullptr) Real().ExchangeCaptureMode(&mode_);
}

RelaxedCapture::~RelaxedCapture() {
  if (Real().ExchangeCaptureMode != nullptr) Real().ExchangeCaptureMode(&mode_);
}

}  // namespace iket::inject
