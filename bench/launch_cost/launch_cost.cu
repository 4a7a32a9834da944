// SPDX-License-Identifier: Apache-2.0
//
// What tracing costs a launch on the host: time of cuLaunchKernel for an unmarked empty kernel and
// for a marked one, in a program that has both; and the device memory that is gone. Prints one JSON
// object a measurement.
//
// Launches go in batches that fit into the driver's queue, and the GPU is idle before each, so that
// no call waits for it.
#include <cuda.h>

#include <chrono>
#include <iket/iket.cuh>

#include "gpu_bench.h"

namespace {

using namespace iket::literals;

constexpr int kBatch = 400;
constexpr int kBatches = 101;

__global__ void Unmarked() {}
__global__ void Marked() { iket::mark("m"_ev); }

double FreeMegabytes() {
  size_t free = 0, total = 0;
  GPU_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<double>(free) / (1 << 20);
}

CUfunction FunctionOf(void (*kernel)()) {
  cudaFunction_t function;
  GPU_CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(kernel)));
  return function;
}

void Launch(CUfunction function) {
  if (cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr) != CUDA_SUCCESS) {
    std::fprintf(stderr, "cuLaunchKernel failed\n");
    std::exit(1);
  }
}

void Measure(const char* name, CUfunction function) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> batches;
  for (int batch = 0; batch < kBatches; ++batch) {
    GPU_CHECK(cudaDeviceSynchronize());
    const auto begin = Clock::now();
    for (int i = 0; i < kBatch; ++i) Launch(function);
    batches.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() /
                      kBatch);
  }
  GPU_CHECK(cudaDeviceSynchronize());
  std::printf("{\"launch\":\"%s\",\"ns\":%.1f,\"least_ns\":%.1f}\n", name,
              gpu_bench::Median(batches), *std::min_element(batches.begin(), batches.end()));
}

void PrintFree(const char* when) {
  std::printf("{\"free\":\"%s\",\"mib\":%.1f}\n", when, FreeMegabytes());
}

}  // namespace

int main() {
  GPU_CHECK(cudaFree(nullptr));  // makes the context
  gpu_bench::PrintDevice();
  PrintFree("context made");
  const CUfunction unmarked = FunctionOf(Unmarked), marked = FunctionOf(Marked);
  PrintFree("kernels loaded");
  Launch(marked);
  Launch(unmarked);
  GPU_CHECK(cudaDeviceSynchronize());
  PrintFree("after the first launches");
  Measure("unmarked", unmarked);
  Measure("marked", marked);
  PrintFree("after all launches");
  return 0;
}
