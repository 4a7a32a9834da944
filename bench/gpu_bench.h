// SPDX-License-Identifier: Apache-2.0
//
// What the GPU benchmarks share: error checks, medians, event timers, one JSON line a measurement.
// A benchmark measures in whatever way it is run; whether its marks are collected is decided by
// `iket profile` around it. Its script runs it both ways and makes the table.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace gpu_bench {

inline void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s failed: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
#define GPU_CHECK(call) ::gpu_bench::Check(call, #call)

inline unsigned Multiprocessors() {
  int count = 0;
  GPU_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return static_cast<unsigned>(count);
}

// The upper median; `values` is not empty.
inline double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Microseconds between two points of the default stream, as the GPU's clock has it.
class Timer {
 public:
  Timer() {
    GPU_CHECK(cudaEventCreate(&begin_));
    GPU_CHECK(cudaEventCreate(&end_));
  }
  template <typename Work>
  double Microseconds(Work work) {
    GPU_CHECK(cudaEventRecord(begin_));
    work();
    GPU_CHECK(cudaEventRecord(end_));
    GPU_CHECK(cudaEventSynchronize(end_));
    GPU_CHECK(cudaGetLastError());
    float ms = 0;
    GPU_CHECK(cudaEventElapsedTime(&ms, begin_, end_));
    return 1000.0 * ms;
  }

 private:
  cudaEvent_t begin_, end_;
};

// Launches a loop of `iterations` that stores how many cycles it took, one number a warp, into
// `cycles` on the device; prints what a warp takes for an iteration, as one JSON line.
template <typename Launch>
void PrintLoop(const char* mode, unsigned warps_per_sm, int launches, int iterations,
               const long long* cycles, Launch launch) {
  const unsigned sms = Multiprocessors();
  std::vector<double> medians;
  std::vector<long long> host(static_cast<size_t>(sms) * warps_per_sm);
  for (int i = 0; i < launches; ++i) {
    launch(sms, warps_per_sm * 32);
    GPU_CHECK(cudaGetLastError());
    GPU_CHECK(
        cudaMemcpy(host.data(), cycles, host.size() * sizeof(long long), cudaMemcpyDeviceToHost));
    medians.push_back(Median({host.begin(), host.end()}) / iterations);
  }
  std::printf("{\"mode\":\"%s\",\"warps_per_sm\":%u,\"cycles\":%.3f}\n", mode, warps_per_sm,
              Median(medians));
}

// {"device":"..."} first, so that a table can say where it was made.
inline void PrintDevice() {
  cudaDeviceProp properties;
  GPU_CHECK(cudaGetDeviceProperties(&properties, 0));
  int driver = 0;
  GPU_CHECK(cudaDriverGetVersion(&driver));
  std::printf("{\"device\":\"%s\",\"multiprocessors\":%d,\"cuda_driver\":%d}\n", properties.name,
              properties.multiProcessorCount, driver);
}

}  // namespace gpu_bench
