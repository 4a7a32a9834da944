// SPDX-License-Identifier: Apache-2.0
//
// Stands in for libcuda.so while the driver forms are linked: the driver itself is there only on a
// machine with a GPU, and not every toolkit ships NVIDIA's own link stub. It is never loaded.
#define NAME(name) \
  void name(void); \
  void name(void) {}

NAME(cuCtxGetDevice)
NAME(cuCtxSetCurrent)
NAME(cuCtxSetLimit)
NAME(cuCtxSynchronize)
NAME(cuDeviceGet)
NAME(cuDeviceGetAttribute)
NAME(cuDeviceGetName)
NAME(cuDevicePrimaryCtxReset_v2)
NAME(cuDevicePrimaryCtxRetain)
NAME(cuEventCreate)
NAME(cuEventDestroy_v2)
NAME(cuEventElapsedTime)
NAME(cuEventElapsedTime_v2)
NAME(cuEventRecord)
NAME(cuEventSynchronize)
NAME(cuFuncSetAttribute)
NAME(cuGetErrorName)
NAME(cuGetErrorString)
NAME(cuInit)
NAME(cuLaunchKernel)
NAME(cuLibraryGetKernel)
NAME(cuLibraryLoadData)
NAME(cuMemAlloc_v2)
NAME(cuMemFree_v2)
NAME(cuMemHostAlloc)
NAME(cuMemHostGetDevicePointer_v2)
NAME(cuMemcpyDtoH_v2)
NAME(cuMemcpyHtoD_v2)
NAME(cuModuleGetFunction)
NAME(cuModuleLoad)
NAME(cuModuleLoadData)
NAME(cuStreamCreate)
NAME(cuStreamQuery)
NAME(cuTensorMapEncodeTiled)
