// SPDX-License-Identifier: Apache-2.0
//
// Barriers of a CTA. Blocks have 128 threads.
#include "corpus.cuh"

CORPUS_KERNEL(bar_count, 3)
o[0] = static_cast<uint32_t>(__syncthreads_count(static_cast<int>(a & 1)));
o[1] = __syncthreads_and(static_cast<int>(b | 1)) != 0 ? 1 : 0;
o[2] = __syncthreads_or(static_cast<int>((c & 127) == 0)) != 0 ? 1 : 0;
CORPUS_END

CORPUS_KERNEL(bar_rounds, 1)
__shared__ uint32_t tile[2][128];
tile[0][threadIdx.x] = a;
for (uint32_t k = 0; k < 8; ++k) {
  __syncthreads();
  tile[(k + 1) & 1][threadIdx.x] =
      tile[k & 1][(threadIdx.x + k + 1) & 127] * 3 + tile[k & 1][threadIdx.x];
}
__syncthreads();
o[0] = tile[0][threadIdx.x];
CORPUS_END

CORPUS_KERNEL(bar_named, 1)
__shared__ uint32_t tile[128];
if (threadIdx.x < 64) {
  tile[threadIdx.x] = a;
  asm volatile("bar.sync 1, 64;" ::: "memory");
  o[0] = tile[63 - threadIdx.x];
  asm volatile("bar.arrive 2, 128;" ::: "memory");
} else {
  asm volatile("bar.sync 2, 128;" ::: "memory");
  o[0] = tile[threadIdx.x - 64] ^ b;
}
CORPUS_END

__device__ void Wait(uint32_t barrier, uint32_t phase) {
  asm volatile(
      "{\n\t.reg .pred done;\n\tWAIT:\n\t"
      "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n\t@!done bra WAIT;\n\t}" ::"r"(barrier),
      "r"(phase)
      : "memory");
}
CORPUS_KERNEL(bar_mbarrier, 1)
__shared__ uint64_t full, empty;
__shared__ uint32_t stage[64];
const auto full_at = static_cast<uint32_t>(__cvta_generic_to_shared(&full));
const auto empty_at = static_cast<uint32_t>(__cvta_generic_to_shared(&empty));
if (threadIdx.x == 0) {
  asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(full_at) : "memory");
  asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(empty_at) : "memory");
}
__syncthreads();
uint32_t x = 0;
for (uint32_t k = 0; k < 6; ++k) {
  if (threadIdx.x < 64) {  // producers
    Wait(empty_at, (k & 1) ^ 1);
    stage[threadIdx.x] = a + k;
    asm volatile("{\n\t.reg .b64 t;\n\tmbarrier.arrive.shared.b64 t, [%0];\n\t}" ::"r"(full_at)
                 : "memory");
    x = b;
  } else {
    Wait(full_at, k & 1);
    x = x * 5 + stage[(threadIdx.x + k) & 63];
    asm volatile("{\n\t.reg .b64 t;\n\tmbarrier.arrive.shared.b64 t, [%0];\n\t}" ::"r"(empty_at)
                 : "memory");
  }
}
o[0] = x;
CORPUS_END

CORPUS_KERNEL(bar_exited_warps, 1)
__shared__ uint32_t tile[128];
o[0] = 0;
if (threadIdx.x >= 96) return;  // a warp that is gone counts no more
tile[threadIdx.x] = a;
asm volatile("bar.sync 0, 96;" ::: "memory");
o[0] = tile[95 - threadIdx.x];
CORPUS_END
