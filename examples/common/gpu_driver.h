// SPDX-License-Identifier: Apache-2.0
//
// What the driver-API form of an example needs: a context, a module, arrays in GPU memory, a
// launch, a timer. gpu_runtime.h has the same for the <<<>>> form. An error ends the program
// with 1.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace example {

inline void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  cuGetErrorString(result, &text);
  std::fprintf(stderr, "%s failed: error %d, %s\n", what, static_cast<int>(result),
               text != nullptr ? text : "unknown");
  std::exit(1);
}
#define EXAMPLE_CHECK(call) ::example::Check(call, #call)

// The first GPU with its primary context, current in this thread.
class Gpu {
 public:
  Gpu() {
    EXAMPLE_CHECK(cuInit(0));
    EXAMPLE_CHECK(cuDeviceGet(&device_, 0));
    CUcontext context;
    EXAMPLE_CHECK(cuDevicePrimaryCtxRetain(&context, device_));
    EXAMPLE_CHECK(cuCtxSetCurrent(context));
  }
  int Multiprocessors() const {
    int count = 0;
    EXAMPLE_CHECK(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device_));
    return count;
  }

 private:
  CUdevice device_ = 0;
};

// A kernel of a loaded cubin. Arguments must have the exact types of the kernel's parameters.
class Kernel {
 public:
  Kernel(CUmodule module, const char* name, int dynamic_shared_bytes = 0)
      : dynamic_shared_bytes_(dynamic_shared_bytes) {
    EXAMPLE_CHECK(cuModuleGetFunction(&function_, module, name));
    if (dynamic_shared_bytes > 0) {
      EXAMPLE_CHECK(cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       dynamic_shared_bytes));
    }
  }
  struct Extent {
    unsigned x = 1, y = 1;
  };
  template <typename... Arguments>
  void Launch(Extent grid, Extent block, const Arguments&... arguments) const {
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
    EXAMPLE_CHECK(cuLaunchKernel(function_, grid.x, grid.y, 1, block.x, block.y, 1,
                                 static_cast<unsigned>(dynamic_shared_bytes_), nullptr, pointers,
                                 nullptr));
  }

 private:
  CUfunction function_ = nullptr;
  int dynamic_shared_bytes_;
};

inline CUmodule LoadModule(const unsigned char* image) {
  CUmodule module;
  EXAMPLE_CHECK(cuModuleLoadData(&module, image));
  return module;
}

// `size()` elements of T in GPU memory.
template <typename T>
class Array {
 public:
  explicit Array(const std::vector<T>& host) : size_(host.size()) {
    EXAMPLE_CHECK(cuMemAlloc(&address_, size_ * sizeof(T)));
    EXAMPLE_CHECK(cuMemcpyHtoD(address_, host.data(), size_ * sizeof(T)));
  }
  ~Array() { EXAMPLE_CHECK(cuMemFree(address_)); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  T* data() const { return reinterpret_cast<T*>(address_); }
  std::vector<T> ToHost() const {
    std::vector<T> host(size_);
    EXAMPLE_CHECK(cuMemcpyDtoH(host.data(), address_, size_ * sizeof(T)));
    return host;
  }

 private:
  CUdeviceptr address_ = 0;
  size_t size_;
};

// On iket's software device a time is a model's: says so before it is printed.
inline void SayIfNoMeasurement() {
  CUdevice device = 0;
  char name[128] = "";
  EXAMPLE_CHECK(cuCtxGetDevice(&device));
  EXAMPLE_CHECK(cuDeviceGetName(name, sizeof name, device));
  if (std::strstr(name, "software device") != nullptr) {
    std::printf("%s: what follows is no measurement\n", name);
  }
}

// Calls `launch` `warmup` times, then `iterations` times; the mean time of the latter in us.
template <typename Launch>
double TimeLaunches(int warmup, int iterations, Launch launch) {
  SayIfNoMeasurement();
  CUevent begin, end;
  EXAMPLE_CHECK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
  EXAMPLE_CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
  for (int i = 0; i < warmup; ++i) launch();
  EXAMPLE_CHECK(cuEventRecord(begin, nullptr));
  for (int i = 0; i < iterations; ++i) launch();
  EXAMPLE_CHECK(cuEventRecord(end, nullptr));
  EXAMPLE_CHECK(cuEventSynchronize(end));
  float ms = 0;
  EXAMPLE_CHECK(cuEventElapsedTime(&ms, begin, end));
  EXAMPLE_CHECK(cuEventDestroy(begin));
  EXAMPLE_CHECK(cuEventDestroy(end));
  return 1000.0 * ms / iterations;
}

}  // namespace example
