// SPDX-License-Identifier: Apache-2.0
//
// gpu.h over the CUDA runtime. Kernels are loaded when they are first launched.
#pragma once

#include <cuda_runtime.h>

#include <string>

#define ATTACH_CHECK(call)                                                      \
  do {                                                                          \
    const cudaError_t error = call;                                             \
    if (error != cudaSuccess) attach::Failed(#call, cudaGetErrorString(error)); \
  } while (false)

namespace attach {

inline void Start() { ATTACH_CHECK(cudaFree(nullptr)); }

inline int Attribute(cudaDeviceAttr attribute) {
  int value = 0;
  ATTACH_CHECK(cudaDeviceGetAttribute(&value, attribute, 0));
  return value;
}
inline int Multiprocessors() { return Attribute(cudaDevAttrMultiProcessorCount); }
inline int Kilohertz() { return Attribute(cudaDevAttrClockRate); }
inline std::string Name() {
  cudaDeviceProp properties;
  ATTACH_CHECK(cudaGetDeviceProperties(&properties, 0));
  return properties.name;
}
inline int Version() {
  int version = 0;
  ATTACH_CHECK(cudaDriverGetVersion(&version));
  return version;
}
inline Memory GetMemory() {
  Memory memory = {};
  ATTACH_CHECK(cudaMemGetInfo(&memory.free, &memory.total));
  return memory;
}

// Zeroed.
template <typename T>
T* Allocate(size_t count) {
  void* memory = nullptr;
  ATTACH_CHECK(cudaMalloc(&memory, count * sizeof(T)));
  ATTACH_CHECK(cudaMemset(memory, 0, count * sizeof(T)));
  return static_cast<T*>(memory);
}
template <typename T>
T Read(const T* memory) {
  T value;
  ATTACH_CHECK(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

// Arguments have the exact types of the kernel's parameters.
template <typename... Arguments>
void Launch(Kernel kernel, unsigned grid, unsigned block, Arguments... arguments) {
  static const void* const kPointers[kKernels] = {
      reinterpret_cast<const void*>(Unmarked), reinterpret_cast<const void*>(Marked),
      reinterpret_cast<const void*>(Steps),    reinterpret_cast<const void*>(Ends),
      reinterpret_cast<const void*>(Bad),      reinterpret_cast<const void*>(Stream),
      reinterpret_cast<const void*>(Compute),  reinterpret_cast<const void*>(Load)};
  void* pointers[] = {&arguments..., nullptr};
  ATTACH_CHECK(cudaLaunchKernel(kPointers[kernel], dim3(grid), dim3(block), pointers, 0, nullptr));
}

// Until all is done: "" or the error's name.
inline std::string Wait() {
  const cudaError_t error = cudaDeviceSynchronize();
  return error == cudaSuccess ? "" : cudaGetErrorName(error);
}

}  // namespace attach
