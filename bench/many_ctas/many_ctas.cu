// SPDX-License-Identifier: Apache-2.0
//
// Many short CTAs: what it costs that the begin and the end of every warp are recorded. 8,448 CTAs
// of 256 threads, 200 launches back to back, mean time of a launch, least of five repeats. Prints
// one JSON object a measurement; each kernel runs without and with marks.
//
// The FMA kernels never reach their mark: it is there so that begin and end are recorded.
#include <iket/iket.cuh>

#include "gpu_bench.h"

namespace {

using namespace iket::literals;

constexpr int kLaunches = 200;
constexpr int kRepeats = 5;
constexpr unsigned kCtas = 8448;
constexpr unsigned kThreads = 256;

// `n` times a range around 16 FMAs, and a mark before.
template <bool kMarked>
__global__ void Ranges(float* out, int n) {
  if constexpr (kMarked) iket::mark("m"_ev);
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = static_cast<float>(i);
  for (int j = 0; j < n; ++j) {
    if constexpr (kMarked) iket::push("r"_ev);
#pragma unroll
    for (int q = 0; q < 16; ++q) a = a * 1.5f + 1;
    if constexpr (kMarked) iket::pop();
  }
  out[i] = a;
}

template <bool kMarked>
__global__ void Fma(float* out, int n) {
  if constexpr (kMarked) {
    if (n < 0) iket::mark("never"_ev);
  }
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = static_cast<float>(i);
  for (int j = 0; j < n; ++j) a = a * 1.5f + 1;
  out[i] = a;
}

template <typename Launch>
void Measure(const char* name, bool marked, Launch launch) {
  gpu_bench::Timer timer;
  for (int i = 0; i < 5; ++i) launch();
  GPU_CHECK(cudaDeviceSynchronize());
  double best = 1e30;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    best = std::min(best, timer.Microseconds([&] {
      for (int i = 0; i < kLaunches; ++i) launch();
    }) / kLaunches);
  }
  std::printf("{\"kernel\":\"%s\",\"marked\":%s,\"us\":%.3f}\n", name, marked ? "true" : "false",
              best);
}

template <typename Launch>
void MeasureBoth(const char* name, Launch launch) {
  Measure(name, false, [&] { launch(std::false_type{}); });
  Measure(name, true, [&] { launch(std::true_type{}); });
}

}  // namespace

int main() {
  gpu_bench::PrintDevice();
  float* out;
  GPU_CHECK(cudaMalloc(&out, size_t{kCtas} * kThreads * sizeof(float)));
  MeasureBoth("empty, one mark",
              [&](auto marked) { Ranges<marked.value><<<kCtas, kThreads>>>(out, 0); });
  MeasureBoth("10 x 16 FMA, 21 marks",
              [&](auto marked) { Ranges<marked.value><<<kCtas, kThreads>>>(out, 10); });
  for (int n : {0, 16, 160, 800}) {
    char name[32];
    std::snprintf(name, sizeof name, "%d FMA", n);
    MeasureBoth(name, [&](auto marked) { Fma<marked.value><<<kCtas, kThreads>>>(out, n); });
  }
  MeasureBoth("<<<1, 32>>>", [&](auto marked) { Ranges<marked.value><<<1, 32>>>(out, 1); });
  return 0;
}
