// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the oracle: each marks in a way that a recorder could get wrong, and logs what it
// marked. oracle.cpp launches them.
#include <cstdio>
#include <iket/iket.cuh>

#include "oracle_log.cuh"

namespace oracle {

using iket::literals::operator""_ev;

__device__ __forceinline__ void Spin(unsigned cycles) {
  const unsigned start = Clock();
  while (Clock() - start < cycles) {
  }
}

// Two CTAs of 1,024 threads fill a SM: 64 warps, every slot.
extern "C" __global__ void __launch_bounds__(1024, 2) Full(Log memory, int n) {
  WarpLog log = LogOf(memory);
  for (int i = 0; i < n; ++i) {
    log.Around(kTickInt, i, [&] { iket::mark("tick"_ev, i); });
    log.Around(kPushPhase, 0, [] { iket::push("phase"_ev); });
    log.Around(kPop, 0, [] { iket::pop(); });
  }
}

// Marks on both sides of divergent branches.
extern "C" __global__ void Divergent(Log memory, int n) {
  WarpLog log = LogOf(memory);
  const unsigned lane = Lane();
  for (int i = 0; i < n; ++i) {
    if (lane & 1) {
      log.Around(kOdd, lane, [&] { iket::mark("odd lanes"_ev, lane); });
    } else {
      log.Around(kEven, lane, [&] { iket::mark("even lanes"_ev, lane); });
    }
    if ((lane ^ static_cast<unsigned>(i)) < 8) {
      log.Around(kLow, 0, [] { iket::mark("low"_ev); });
    } else if (lane < 20) {
      log.Around(kMiddle, i, [&] { iket::mark("middle"_ev, i); });
    } else {
      const float value = 0.5f * static_cast<float>(lane);
      log.Around(kHigh, value, [&] { iket::mark("high"_ev, value); });
    }
  }
  log.Around(kLast, 0, [] { iket::mark("last"_ev); });
}

// As many laps as the lane says.
extern "C" __global__ void Loops(Log memory, int n) {
  WarpLog log = LogOf(memory);
  const int laps = static_cast<int>(Lane() * 7 % 11) % n;
  for (int i = 0; i < laps; ++i) {
    log.Around(kLoop, i, [&] { iket::mark("loop"_ev, i); });
    for (int k = 0; k < laps - i; k += 3) {
      log.Around(kTick, 0, [] { iket::mark("tick"_ev); });
    }
  }
  log.Around(kLast, 0, [] { iket::mark("last"_ev); });
}

__device__ __noinline__ int Callee(WarpLog& log, int value) {
  log.Around(kCalled, value, [&] { iket::mark("called"_ev, value); });
  return value * 3 + 1;
}

// Marks in a function that is called, by all lanes and by some.
extern "C" __global__ void Calls(Log memory, int n) {
  WarpLog log = LogOf(memory);
  int value = static_cast<int>(threadIdx.x);
  for (int i = 0; i < n; ++i) {
    value = Callee(log, value) % 1000;
    if (Lane() % 3 == 0) value = Callee(log, -value);
    log.Around(kTickInt, value, [&] { iket::mark("tick"_ev, value); });
  }
}

// Lanes leave one after the other, whole warps at once, and some before any mark.
extern "C" __global__ void Exits(Log memory, int n) {
  WarpLog log = LogOf(memory);
  const unsigned lane = Lane();
  if (threadIdx.x >= 96) return;
  if (lane == 5) return;
  for (int i = 0; i < n; ++i) {
    if (lane == static_cast<unsigned>(4 * i)) {
      log.Around(kLeave, lane, [&] { iket::mark("leave"_ev, lane); });
      return;
    }
    log.Around(kStay, i, [&] { iket::mark("stay"_ev, i); });
    if (lane % 7 == static_cast<unsigned>(i)) return;
  }
  log.Around(kLast, 0, [] { iket::mark("last"_ev); });
}

// Who a warp is, in three dimensions.
extern "C" __global__ void Grid3d(Log memory, int n) {
  const unsigned cta = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  WarpLog log(memory, blockIdx, cta, thread, blockDim.x * blockDim.y * blockDim.z);
  for (int i = 0; i < n; ++i) {
    log.Around(kTickUnsigned, blockIdx.z, [&] { iket::mark("tick"_ev, blockIdx.z); });
    log.Around(kTickInt, static_cast<int>(threadIdx.y),
               [&] { iket::mark("tick"_ev, static_cast<int>(threadIdx.y)); });
  }
}

// Values that differ between lanes: that of the first active one counts.
extern "C" __global__ void Payloads(Log memory, int n) {
  WarpLog log = LogOf(memory);
  const unsigned lane = Lane();
  for (int i = 0; i < n; ++i) {
    if ((lane + static_cast<unsigned>(i)) % 5 < 2) continue;
    const int number = i * 1000 - static_cast<int>(lane) * 77;
    const unsigned word = 0xdead0000u + lane * 0x101u + static_cast<unsigned>(i);
    const float real = static_cast<float>(number) * 0.37f;
    log.Around(kTickInt, number, [&] { iket::mark("tick"_ev, number); });
    log.Around(kTick, 0, [] { iket::mark("tick"_ev); });
    log.Around(kTickUnsigned, word, [&] { iket::mark("tick"_ev, word); });
    log.Around(kTickFloat, real, [&] { iket::mark("tick"_ev, real); });
  }
}

// Events of two and three records, on both sides of branches and in loops of which lanes leave at
// different times: each value is that of the first active lane.
extern "C" __global__ void Values(Log memory, int n) {
  WarpLog log = LogOf(memory);
  const unsigned lane = Lane();
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    const int a = i * 1000 - static_cast<int>(lane) * 77;
    const unsigned d = 0xbeef0000u + lane * 0x101u + static_cast<unsigned>(i);
#pragma unroll 1
    for (unsigned k = 0; k < (lane * 7 + static_cast<unsigned>(i)) % 4; ++k) {
      if ((lane + k) % 3 == 0) {
        const float c = static_cast<float>(a) * 0.37f;
        log.Around(kTile, Digest(Bits(a), k, Bits(c), d),
                   [&] { iket::mark("tile"_ev("a"_ev, "k"_ev, "c"_ev, "d"_ev), a, k, c, d); });
      } else {
        const unsigned long long wide = static_cast<unsigned long long>(d) << 20 | k;
        log.Around(kPoint,
                   Digest(static_cast<unsigned>(wide), static_cast<unsigned>(wide >> 32), Bits(a),
                          static_cast<unsigned>(~wide), static_cast<unsigned>(~wide >> 32)),
                   [&] { iket::mark("point"_ev("x"_ev, "a"_ev, "y"_ev), wide, a, ~wide); });
      }
    }
  }
}

// Calls into the driver's own device code between marks.
extern "C" __global__ void Driver(Log memory, int n) {
  WarpLog log = LogOf(memory);
  for (int i = 0; i < n; ++i) {
    log.Around(kTickInt, i, [&] { iket::mark("tick"_ev, i); });
    if (Lane() == 3) printf("cta %u warp %u step %d\n", blockIdx.x, threadIdx.x / 32, i);
    log.Around(kPushStep, i, [&] { iket::push("step"_ev, i); });
    int* const numbers = static_cast<int*>(malloc(64));
    if (numbers != nullptr) numbers[0] = i;
    log.Around(kPop, 0, [] { iket::pop(); });
    free(numbers);
    log.Around(kTick, 0, [] { iket::mark("tick"_ev); });
  }
}

// Ranges in ranges, of both kinds.
extern "C" __global__ void Ranges(Log memory, int n) {
  WarpLog log = LogOf(memory);
  for (int i = 0; i < n; ++i) {
    AroundEnd outer_end(log, kOuterEnd);
    unsigned active = __activemask(), before = Clock();
    iket::range outer{"outer"_ev};
    log.Add(kOuterBegin, 0, active, before, Clock());
    BeforeEnd before_outer_end(outer_end);

    log.Around(kPushStep, i, [&] { iket::push("step"_ev, i); });
    for (int k = 0; k < 2; ++k) {
      AroundEnd inner_end(log, kInnerEnd);
      active = __activemask(), before = Clock();
      iket::range inner{
          "a range with quite a long name, as templates make them: inner<float, 128, 64>"_ev, k};
      log.Add(kInnerBegin, Bits(k), active, before, Clock());
      BeforeEnd before_inner_end(inner_end);
      log.Around(kTick, 0, [] { iket::mark("tick"_ev); });
    }
    log.Around(kPop, 0, [] { iket::pop(); });
  }
}

// Events without end, for rings that go round and for kernels that last.
extern "C" __global__ void Long(Log memory, int n, unsigned pause) {
  WarpLog log = LogOf(memory);
  for (int i = 0; i < n; ++i) {
    log.Around(kTickInt, i, [&] { iket::mark("tick"_ev, i); });
    if (pause != 0) Spin(pause);
  }
}

// A neighbour that wants the GPU too; nothing is marked.
extern "C" __global__ void Neighbour(unsigned cycles) { Spin(cycles); }

}  // namespace oracle
