// SPDX-License-Identifier: Apache-2.0
//
// Barriers in shared memory (PTX mbarrier) and the ring that producer and consumer warps walk
// around. sm_90.
#pragma once

#include <cstdint>

namespace example {

__device__ __forceinline__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

using Barrier = uint64_t;  // of shared memory

// A phase of the barrier completes after `arrivals` arrivals.
__device__ __forceinline__ void BarrierInit(Barrier& barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(SharedAddress(&barrier)), "r"(arrivals));
}

__device__ __forceinline__ void BarrierArrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(SharedAddress(&barrier)) : "memory");
}

// Waits until the phase of this parity is complete. A fresh barrier is in phase 0: waiting for
// parity 1 returns at once.
__device__ __forceinline__ void BarrierWait(Barrier& barrier, unsigned parity) {
  unsigned done;
  do {
    asm volatile(
        "{\n\t.reg .pred p;\n\t"
        "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(SharedAddress(&barrier)), "r"(parity)
        : "memory");
  } while (done == 0);
}

// A stage of a ring and the parity of the current lap.
template <int kStages>
struct RingPosition {
  int stage = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void Advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace example
