// SPDX-License-Identifier: Apache-2.0
//
// Who and where a thread is, clocks, and what the driver's own device code does.
#include <cstdio>

#include "corpus.cuh"

CORPUS_KERNEL(special_indices, 6)
o[0] = threadIdx.x | blockIdx.x << 16, o[1] = blockDim.x | gridDim.x << 16;
o[2] = threadIdx.y + threadIdx.z + blockIdx.y + blockIdx.z + blockDim.y + gridDim.z;
uint32_t cluster, sms;
asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(cluster));
asm("mov.u32 %0, %%nsmid;" : "=r"(sms));
o[3] = cluster, o[4] = sms > 0 ? 1 : 0, o[5] = warpSize;
CORPUS_END

CORPUS_KERNEL(special_clocks, 4)
const uint32_t start = static_cast<uint32_t>(clock());
uint64_t timer, later;
asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
uint32_t x = a;
for (uint32_t k = 0; k < 200; ++k) x = x * 5 + b;
asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(later));
const uint32_t end = static_cast<uint32_t>(clock());
const long long wide = clock64();
o[0] = end - start > 0 && end - start < 1'000'000 ? 1 : 0, o[1] = later >= timer ? 1 : 0, o[2] = x;
o[3] = static_cast<uint32_t>(wide) - end < 1'000'000 ? 1 : 0;
CORPUS_END

CORPUS_KERNEL(special_warp, 3)
uint32_t warp, sm, warps;
asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
asm("mov.u32 %0, %%nwarpid;" : "=r"(warps));
o[0] = warp < 64 ? 1 : 0, o[1] = __match_any_sync(0xffffffff, warp) == 0xffffffff ? 1 : 0;
o[2] = sm < 1024 && warps >= 1 ? 1 : 0;
CORPUS_END

CORPUS_KERNEL(special_malloc, 2)
auto* mine = static_cast<uint32_t*>(malloc(64 + (a & 63)));
o[0] = 0, o[1] = 0;
if (mine == nullptr) return;
for (uint32_t k = 0; k < 16; ++k) mine[k] = a + k * b;
uint32_t sum = 0;
for (uint32_t k = 0; k < 16; ++k) sum = sum * 3 + mine[k];
free(mine);
o[0] = sum, o[1] = 1;
CORPUS_END

CORPUS_KERNEL(special_printf, 1)
o[0] = a;
if (i == 5)
  o[0] = static_cast<uint32_t>(printf("thread %u of %u: %s %d %.3f\n", i, n, "corpus", -7, 1.5));
CORPUS_END

CORPUS_KERNEL(special_pmtrig, 1)
asm volatile("pmevent 3;");
o[0] = a ^ 0x55;
CORPUS_END

CORPUS_KERNEL(special_nanosleep, 1)
__nanosleep(100);
o[0] = a + 1;
CORPUS_END
