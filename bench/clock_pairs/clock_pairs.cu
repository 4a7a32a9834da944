// SPDX-License-Identifier: Apache-2.0
//
// Long-lived warps on an SM whose clock changes: what iket::sync() is for. One CTA a SM works and
// rests in turns, and its first warp marks each millisecond with the timer that it read: so it is
// known when that was. The first kernel has no pairs of clocks on the way, the second one each
// millisecond. clock_pairs.py looks at what became of the marks.
#include <iket/iket.cuh>

#include "gpu_bench.h"

namespace {

using namespace iket::literals;

constexpr unsigned kMarks = 600;
constexpr unsigned kTurn = 100;  // marks

__device__ unsigned long long Timer() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

template <bool kWithPairs>
__device__ void Work(float* sink) {
  float x = static_cast<float>(threadIdx.x), y = x + 1;
  const unsigned long long begin = Timer();
  for (unsigned i = 0; i < kMarks; ++i) {
    const unsigned long long until = begin + (i + 1ull) * 1'000'000;
    if (threadIdx.x < 32) {
      iket::mark("now"_ev, Timer());
      if constexpr (kWithPairs) iket::sync();
    }
    while (Timer() < until) {
      if (i / kTurn % 2 == 1) {
        __nanosleep(20'000);
        continue;
      }
      for (int k = 0; k < 2000; ++k) {
        x = x * 1.0001f + 0.5f;
        y = y * 0.9999f + 0.5f;
      }
    }
  }
  if (x + y == 0.12345f) *sink = x;
}

__global__ void __launch_bounds__(1024) WithoutPairs(float* sink) { Work<false>(sink); }
__global__ void __launch_bounds__(1024) WithPairs(float* sink) { Work<true>(sink); }

}  // namespace

int main() {
  float* sink;
  GPU_CHECK(cudaMalloc(&sink, sizeof(float)));
  WithoutPairs<<<gpu_bench::Multiprocessors(), 1024>>>(sink);
  WithPairs<<<gpu_bench::Multiprocessors(), 1024>>>(sink);
  GPU_CHECK(cudaDeviceSynchronize());
  return 0;
}
