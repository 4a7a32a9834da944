// SPDX-License-Identifier: Apache-2.0
//
// What the <<<>>> form of an example needs: arrays in GPU memory and a timer. gpu_driver.h has the
// same for the driver-API form. An error ends the program with 1.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace example {

inline void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s failed: error %d, %s\n", what, static_cast<int>(error),
               cudaGetErrorString(error));
  std::exit(1);
}
#define EXAMPLE_CHECK(call) ::example::Check(call, #call)

// Of the current GPU.
inline int Multiprocessors() {
  int device = 0, count = 0;
  EXAMPLE_CHECK(cudaGetDevice(&device));
  EXAMPLE_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

// `size()` elements of T in GPU memory.
template <typename T>
class Array {
 public:
  explicit Array(const std::vector<T>& host) : size_(host.size()) {
    EXAMPLE_CHECK(cudaMalloc(&data_, size_ * sizeof(T)));
    EXAMPLE_CHECK(cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Array() { EXAMPLE_CHECK(cudaFree(data_)); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  T* data() const { return data_; }
  std::vector<T> ToHost() const {
    std::vector<T> host(size_);
    EXAMPLE_CHECK(cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

// Calls `launch` `warmup` times, then `iterations` times; the mean time of the latter in us.
template <typename Launch>
double TimeLaunches(int warmup, int iterations, Launch launch) {
  cudaEvent_t begin, end;
  EXAMPLE_CHECK(cudaEventCreate(&begin));
  EXAMPLE_CHECK(cudaEventCreate(&end));
  const auto checked_launch = [&] {
    launch();
    EXAMPLE_CHECK(cudaGetLastError());
  };
  for (int i = 0; i < warmup; ++i) checked_launch();
  EXAMPLE_CHECK(cudaEventRecord(begin));
  for (int i = 0; i < iterations; ++i) checked_launch();
  EXAMPLE_CHECK(cudaEventRecord(end));
  EXAMPLE_CHECK(cudaEventSynchronize(end));
  float ms = 0;
  EXAMPLE_CHECK(cudaEventElapsedTime(&ms, begin, end));
  EXAMPLE_CHECK(cudaEventDestroy(begin));
  EXAMPLE_CHECK(cudaEventDestroy(end));
  return 1000.0 * ms / iterations;
}

}  // namespace example
