// SPDX-License-Identifier: Apache-2.0
//
// gpu.h over the driver API, with the cubin of attach.cu in the program.
#pragma once

#include <cuda.h>

#include <string>

#include "common/embedded_cubin.h"

#define ATTACH_CHECK(call)                                                \
  do {                                                                    \
    const CUresult result = call;                                         \
    if (result != CUDA_SUCCESS) attach::Failed(#call, ErrorName(result)); \
  } while (false)

namespace attach {

inline const char* ErrorName(CUresult result) {
  const char* name = "an unknown error";
  cuGetErrorName(result, &name);
  return name;
}

inline CUfunction& Function(Kernel kernel) {
  static CUfunction functions[kKernels] = {};
  return functions[kernel];
}

inline void Start() {
  static const char* const kNames[kKernels] = {"Unmarked", "Marked", "Steps",   "Ends",
                                               "Bad",      "Stream", "Compute", "Load"};
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  ATTACH_CHECK(cuInit(0));
  ATTACH_CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  ATTACH_CHECK(cuCtxSetCurrent(context));
  ATTACH_CHECK(cuModuleLoadData(&module, example_cubin));
  for (int kernel = 0; kernel < kKernels; ++kernel) {
    ATTACH_CHECK(
        cuModuleGetFunction(&Function(static_cast<Kernel>(kernel)), module, kNames[kernel]));
  }
}

inline int Attribute(CUdevice_attribute attribute) {
  int value = 0;
  ATTACH_CHECK(cuDeviceGetAttribute(&value, attribute, 0));
  return value;
}
inline int Multiprocessors() { return Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT); }
inline int Kilohertz() { return Attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE); }
inline std::string Name() {
  char name[128] = "";
  ATTACH_CHECK(cuDeviceGetName(name, sizeof name, 0));
  return name;
}
inline int Version() { return CUDA_VERSION; }
inline Memory GetMemory() {
  Memory memory = {};
  ATTACH_CHECK(cuMemGetInfo(&memory.free, &memory.total));
  return memory;
}

template <typename T>
T* Allocate(size_t count) {
  CUdeviceptr memory = 0;
  static_assert(sizeof(T) % sizeof(unsigned) == 0);
  ATTACH_CHECK(cuMemAlloc(&memory, count * sizeof(T)));
  ATTACH_CHECK(cuMemsetD32(memory, 0, count * (sizeof(T) / sizeof(unsigned))));
  return reinterpret_cast<T*>(memory);
}
template <typename T>
T Read(const T* memory) {
  T value;
  ATTACH_CHECK(cuMemcpyDtoH(&value, reinterpret_cast<CUdeviceptr>(memory), sizeof value));
  return value;
}

template <typename... Arguments>
void Launch(Kernel kernel, unsigned grid, unsigned block, Arguments... arguments) {
  void* pointers[] = {&arguments..., nullptr};
  ATTACH_CHECK(
      cuLaunchKernel(Function(kernel), grid, 1, 1, block, 1, 1, 0, nullptr, pointers, nullptr));
}

inline std::string Wait() {
  const CUresult result = cuCtxSynchronize();
  return result == CUDA_SUCCESS ? "" : ErrorName(result);
}

}  // namespace attach
