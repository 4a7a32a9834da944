// driver.h: the real driver, behind our interposed names.
//
// Functions are taken from the libcuda.so.1 that the process has loaded, never by a name that we
// ourselves interpose. Real() may be called from any thread; it never loads the driver into a
// process that does not use it.
#pragma once

#include <cuda.h>

namespace iket::inject {

// glibc's own dlsym.
using DlsymFunction = void* (*)(void*, const char*);
DlsymFunction RealDlsym() noexcept;

// A function of the real driver by its exported name; null if there is no driver or no such
// function.
void* FindReal(const char* exported_name) noexcept;

// What the program finds under a name: the scope of this library begins with itself.
void* FindInProgram(const char* name) noexcept;

// The driver functions that this library calls for itself. Null members are missing in this driver.
struct RealDriver {
  // clang-format off
  decltype(&::cuCtxGetCurrent) CtxGetCurrent;
  decltype(&::cuCtxGetDevice) CtxGetDevice;
  decltype(&::cuCtxGetId) CtxGetId;
  decltype(&::cuCtxPushCurrent_v2) CtxPushCurrent;
  decltype(&::cuCtxPopCurrent_v2) CtxPopCurrent;
  decltype(&::cuCtxSynchronize) CtxSynchronize;
  decltype(&::cuDevicePrimaryCtxGetState) PrimaryCtxGetState;
  decltype(&::cuDevicePrimaryCtxRetain) PrimaryCtxRetain;
  decltype(&::cuDevicePrimaryCtxRelease_v2) PrimaryCtxRelease;
  decltype(&::cuDeviceGetCount) DeviceGetCount;
  decltype(&::cuDeviceGet) DeviceGet;
  decltype(&::cuDeviceGetAttribute) DeviceGetAttribute;
  decltype(&::cuDeviceGetName) DeviceGetName;
  decltype(&::cuDeviceGetUuid_v2) DeviceGetUuid;
  decltype(&::cuDeviceTotalMem_v2) DeviceTotalMem;
  decltype(&::cuDriverGetVersion) DriverGetVersion;
  decltype(&::cuMemCreate) MemCreate;
  decltype(&::cuMemRelease) MemRelease;
  decltype(&::cuMemExportToShareableHandle) MemExport;
  decltype(&::cuMemAddressReserve) MemAddressReserve;
  decltype(&::cuMemAddressFree) MemAddressFree;
  decltype(&::cuMemMap) MemMap;
  decltype(&::cuMemUnmap) MemUnmap;
  decltype(&::cuMemSetAccess) MemSetAccess;
  decltype(&::cuMemsetD8Async) MemsetD8Async;
  decltype(&::cuMemcpyHtoDAsync_v2) MemcpyHtoDAsync;
  decltype(&::cuMemcpyDtoHAsync_v2) MemcpyDtoHAsync;
  decltype(&::cuStreamCreate) StreamCreate;
  decltype(&::cuStreamDestroy_v2) StreamDestroy;
  decltype(&::cuStreamQuery) StreamQuery;
  decltype(&::cuStreamSynchronize) StreamSynchronize;
  decltype(&::cuThreadExchangeStreamCaptureMode) ExchangeCaptureMode;
  decltype(&::cuModuleGetGlobal_v2) ModuleGetGlobal;
  decltype(&::cuLibraryGetGlobal) LibraryGetGlobal;
  decltype(&::cuLinkCreate_v2) LinkCreate;
  decltype(&::cuLinkAddData_v2) LinkAddData;
  decltype(&::cuLinkComplete) LinkComplete;
  decltype(&::cuLinkDestroy) LinkDestroy;
  // Of graphs. The oldest form of cuGraphNodeGetDependencies, which every driver has.
  decltype(&::cuStreamIsCapturing) StreamIsCapturing;
  decltype(&::cuGraphGetNodes) GraphGetNodes;
  CUresult (*GraphNodeGetDependencies)(CUgraphNode, CUgraphNode*, size_t*);
  decltype(&::cuGraphNodeGetType) GraphNodeGetType;
  decltype(&::cuGraphKernelNodeGetParams_v2) GraphKernelGetParams;
  decltype(&::cuGraphKernelNodeGetAttribute) GraphKernelGetAttribute;
  decltype(&::cuGraphChildGraphNodeGetGraph) GraphChildGetGraph;
  // Not in every driver; the first three are for rings in the host's memory.
  decltype(&::cuMemHostRegister_v2) MemHostRegister;
  decltype(&::cuMemHostUnregister) MemHostUnregister;
  decltype(&::cuMemHostGetDevicePointer_v2) MemHostGetDevicePointer;
  decltype(&::cuKernelGetFunction) KernelGetFunction;
  decltype(&::cuFuncGetModule) FuncGetModule;
  decltype(&::cuFuncGetName) FuncGetName;
  decltype(&::cuLibraryGetModule) LibraryGetModule;
  // clang-format on

  // True if all of the second part is there; what is missing of the third is done without.
  bool knows_graphs = false;
  // True if all of the first part, which tracing needs, is there.
  bool usable = false;
};
const RealDriver& Real() noexcept;

// "invalid argument (1)".
const char* NameOf(CUresult result) noexcept;

// While it lives, driver calls of this thread are allowed during a stream capture of the program's,
// and never invalidate it.
class RelaxedCapture {
 public:
  RelaxedCapture() noexcept;
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture();

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// A stream of our own, of no relation to the program's.
class PrivateStream {
 public:
  PrivateStream() { result_ = Real().StreamCreate(&stream_, CU_STREAM_NON_BLOCKING); }
  PrivateStream(const PrivateStream&) = delete;
  PrivateStream& operator=(const PrivateStream&) = delete;
  ~PrivateStream() {
    if (result_ != CUDA_SUCCESS) return;
    // Also after a failure: what was begun before it must not meet memory that is given back.
    Real().StreamSynchronize(stream_);
    Real().StreamDestroy(stream_);
  }
  CUresult result() const { return result_; }
  operator CUstream() const { return stream_; }  // NOLINT: a handle like any other
  CUresult Wait() const { return Real().StreamSynchronize(stream_); }

 private:
  CUstream stream_ = nullptr;
  CUresult result_;
};

}  // namespace iket::inject
