// SPDX-License-Identifier: Apache-2.0
//
// What an event of NVIDIA's contract costs a warp, by whoever collects it: a loop of 64 dependent
// FMAs with one event (or pair) in it, against the same loop without, at 1 to 32 warps a SM. Prints
// one JSON object a measurement, as event_cost does.
#include "foreign_marks.cuh"
#include "gpu_bench.h"

namespace {

constexpr int kIterations = 512;  // few enough that run-iket's buffers hold them
constexpr int kFmas = 64;
constexpr int kLaunches = 5;

enum class Mode { kClean, kMark, kMarkPayload, kPushPop };
constexpr const char* kModeNames[] = {"clean", "mark", "mark_payload", "push_pop"};

template <Mode kMode>
__global__ void __launch_bounds__(1024) Loop(long long* cycles, float* sink, float a, float b) {
  const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  float x = static_cast<float>(threadIdx.x);
  // A register of its own: an FMA with a uniform operand issues every second cycle only, and events
  // would hide in the gaps.
  const float factor = a + x * b;
  const long long begin = clock64();
#pragma unroll 1
  for (int i = 0; i < kIterations; ++i) {
    if constexpr (kMode == Mode::kMark) foreign::Mark<foreign::kMark>();
    if constexpr (kMode == Mode::kMarkPayload) foreign::Mark<foreign::kPayloadMark>(i);
    if constexpr (kMode == Mode::kPushPop) foreign::Mark<foreign::kRange>();
#pragma unroll
    for (int k = 0; k < kFmas; ++k) x = x * factor + 0.5f;
    if constexpr (kMode == Mode::kPushPop) foreign::Mark<foreign::kPop>();
  }
  const long long end = clock64();
  if (threadIdx.x % 32 == 0) cycles[warp] = end - begin;
  if (x == 0.12345f) *sink = x;
}

template <Mode kMode>
void Measure(unsigned warps_per_sm, long long* cycles, float* sink) {
  gpu_bench::PrintLoop(kModeNames[static_cast<int>(kMode)], warps_per_sm, kLaunches, kIterations,
                       cycles, [&](unsigned ctas, unsigned threads) {
                         Loop<kMode><<<ctas, threads>>>(cycles, sink, 1.0f, 0.001f);
                       });
}

}  // namespace

int main() {
  gpu_bench::PrintDevice();
  const size_t warps = static_cast<size_t>(gpu_bench::Multiprocessors()) * 32;
  long long* cycles;
  float* sink;
  GPU_CHECK(cudaMalloc(&cycles, warps * sizeof(long long)));
  GPU_CHECK(cudaMalloc(&sink, sizeof(float)));
  for (unsigned n : {1u, 4u, 8u, 16u, 32u}) {
    Measure<Mode::kClean>(n, cycles, sink);
    Measure<Mode::kMark>(n, cycles, sink);
    Measure<Mode::kMarkPayload>(n, cycles, sink);
    Measure<Mode::kPushPop>(n, cycles, sink);
  }
  return 0;
}
