// SPDX-License-Identifier: Apache-2.0
//
// What one event costs a warp: a loop of 64 dependent FMAs with one event (or pair) in it, against
// the same loop without, at 1 to 32 warps a SM. Prints one JSON object a measurement: cycles of an
// iteration, the median over all warps, of that the median over launches.
#include <iket/iket.cuh>

#include "gpu_bench.h"

namespace {

using namespace iket::literals;

constexpr int kIterations = 2000;
constexpr int kFmas = 64;
constexpr int kLaunches = 7;

enum class Mode {
  kClean,
  kMark,
  kMarkPayload,
  kMarkPayload64,
  kMarkTwo,
  kMarkFour,
  kGroup,
  kGroupSilent,
  kFlow,
  kPushPop,
  kRangePayload,
  kToken,
  kTokenPayload,
  kClockLog
};
constexpr const char* kModeNames[] = {"clean",           "mark",          "mark_payload",
                                      "mark_payload_64", "mark_two",      "mark_four",
                                      "group",           "group_silent",  "flow",
                                      "push_pop",        "range_payload", "token",
                                      "token_payload",   "clock64_log"};

// What people write by hand: clock and id of an event into an array of the warp's own.
struct LogEntry {
  long long clock;
  unsigned long long id;
};

template <Mode kMode>
__global__ void __launch_bounds__(1024)
    Loop(long long* cycles, float* sink, LogEntry* log, float a, float b) {
  const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const bool first_lane = threadIdx.x % 32 == 0;
  [[maybe_unused]] LogEntry* next = log + static_cast<size_t>(warp) * kIterations;
  float x = static_cast<float>(threadIdx.x);
  // A register of its own: an FMA with a uniform operand issues every second cycle only, and events
  // would hide in the gaps.
  const float factor = a + x * b;
  [[maybe_unused]] const auto group = [&] {
    if constexpr (kMode == Mode::kGroup) {
      return iket::group{"all"_ev, first_lane};
    } else if constexpr (kMode == Mode::kGroupSilent) {
      return iket::group{"all"_ev, a == 0.0f};  // nobody
    } else {
      return 0;
    }
  }();
  const long long begin = clock64();
#pragma unroll 1
  for (int i = 0; i < kIterations; ++i) {
    const auto body = [&] {
#pragma unroll
      for (int k = 0; k < kFmas; ++k) x = x * factor + 0.5f;
    };
    if constexpr (kMode == Mode::kMark) iket::mark("m"_ev);
    if constexpr (kMode == Mode::kMarkPayload) iket::mark("m"_ev, i);
    if constexpr (kMode == Mode::kMarkPayload64) iket::mark("m"_ev, (1LL << 32) + i);
    if constexpr (kMode == Mode::kMarkTwo) iket::mark("m"_ev("i"_ev, "j"_ev), i, warp);
    if constexpr (kMode == Mode::kMarkFour) {
      iket::mark("m"_ev("i"_ev, "j"_ev, "k"_ev, "l"_ev), i, warp, x, blockDim.x);
    }
    if constexpr (kMode == Mode::kGroup || kMode == Mode::kGroupSilent) iket::mark(group, "m"_ev);
    if constexpr (kMode == Mode::kFlow) iket::flow_out("f"_ev, i);
    if constexpr (kMode == Mode::kClockLog) {
      if (first_lane) *next++ = LogEntry{clock64(), 1};
    }
    if constexpr (kMode == Mode::kPushPop) {
      iket::push("r"_ev);
      body();
      iket::pop();
    } else if constexpr (kMode == Mode::kRangePayload) {
      iket::range range{"r"_ev, i};
      body();
    } else if constexpr (kMode == Mode::kToken) {
      const auto token = iket::start("t"_ev);
      body();
      iket::end(token);
    } else if constexpr (kMode == Mode::kTokenPayload) {
      const auto token = iket::start("t"_ev, i);
      body();
      iket::end(token, i);
    } else {
      body();
    }
  }
  const long long end = clock64();
  if (first_lane) cycles[warp] = end - begin;
  if (x == 0.12345f) *sink = x;
}

template <Mode kMode>
void Measure(unsigned warps_per_sm, long long* cycles, float* sink, LogEntry* log) {
  gpu_bench::PrintLoop(kModeNames[static_cast<int>(kMode)], warps_per_sm, kLaunches, kIterations,
                       cycles, [&](unsigned ctas, unsigned threads) {
                         Loop<kMode><<<ctas, threads>>>(cycles, sink, log, 1.0f, 0.001f);
                       });
}

}  // namespace

int main() {
  gpu_bench::PrintDevice();
  const size_t warps = static_cast<size_t>(gpu_bench::Multiprocessors()) * 32;
  long long* cycles;
  float* sink;
  LogEntry* log;
  GPU_CHECK(cudaMalloc(&cycles, warps * sizeof(long long)));
  GPU_CHECK(cudaMalloc(&sink, sizeof(float)));
  GPU_CHECK(cudaMalloc(&log, warps * kIterations * sizeof(LogEntry)));
  for (unsigned n : {1u, 4u, 8u, 16u, 32u}) {
    Measure<Mode::kClean>(n, cycles, sink, log);
    Measure<Mode::kMark>(n, cycles, sink, log);
    Measure<Mode::kMarkPayload>(n, cycles, sink, log);
    Measure<Mode::kMarkPayload64>(n, cycles, sink, log);
    Measure<Mode::kMarkTwo>(n, cycles, sink, log);
    Measure<Mode::kMarkFour>(n, cycles, sink, log);
    Measure<Mode::kGroup>(n, cycles, sink, log);
    Measure<Mode::kGroupSilent>(n, cycles, sink, log);
    Measure<Mode::kFlow>(n, cycles, sink, log);
    Measure<Mode::kPushPop>(n, cycles, sink, log);
    Measure<Mode::kRangePayload>(n, cycles, sink, log);
    Measure<Mode::kToken>(n, cycles, sink, log);
    Measure<Mode::kTokenPayload>(n, cycles, sink, log);
    Measure<Mode::kClockLog>(n, cycles, sink, log);
  }
  return 0;
}
