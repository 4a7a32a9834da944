// SPDX-License-Identifier: Apache-2.0
//
// Spaces, widths and atomics. Blocks have 128 threads.
#include "corpus.cuh"

__constant__ uint32_t kTable[64] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3,
                                    2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5};
__device__ uint32_t counters[256];

CORPUS_KERNEL(mem_constant, 2)
o[0] = kTable[a & 63] + kTable[5], o[1] = kTable[threadIdx.x & 31] * b;
CORPUS_END

CORPUS_KERNEL(mem_shared, 2)
__shared__ uint32_t tile[128];
tile[threadIdx.x] = a;
__syncthreads();
o[0] = tile[127 - threadIdx.x];
__syncthreads();
tile[threadIdx.x ^ 33] = b;
__syncthreads();
o[1] = tile[threadIdx.x] + tile[(threadIdx.x * 7) & 127];
CORPUS_END

CORPUS_KERNEL(mem_shared_wide, 4)
__shared__ uint4 tile[128];
tile[threadIdx.x] = make_uint4(a, b, c, d);
__syncthreads();
const uint4 x = tile[(threadIdx.x + 5) & 127];
const uint2 y = reinterpret_cast<const uint2*>(tile)[(threadIdx.x * 3) & 255];
o[0] = x.x + y.x, o[1] = x.y + y.y, o[2] = x.z, o[3] = x.w;
CORPUS_END

CORPUS_KERNEL(mem_shared_bytes, 2)
__shared__ uint8_t bytes[512];
for (uint32_t k = 0; k < 4; ++k)
  bytes[4 * threadIdx.x + k] = static_cast<uint8_t>(a >> (8 * k) ^ b);
__syncthreads();
uint32_t x = 0;
for (uint32_t k = 0; k < 4; ++k) x = x << 8 | bytes[(threadIdx.x + 128 * k) & 511];
o[0] = x,
    o[1] = static_cast<uint32_t>(reinterpret_cast<const int8_t*>(bytes)[threadIdx.x * 3 & 511]) +
           reinterpret_cast<const uint16_t*>(bytes)[threadIdx.x];
CORPUS_END

extern __shared__ uint32_t dynamic[];
CORPUS_KERNEL(mem_shared_dynamic, 1)
dynamic[threadIdx.x] = a;
dynamic[128 + threadIdx.x] = b;
__syncthreads();
o[0] = dynamic[255 - threadIdx.x] ^ dynamic[threadIdx.x];
CORPUS_END

CORPUS_KERNEL(mem_local, 2)
uint32_t array[24];
for (uint32_t k = 0; k < 24; ++k) array[k] = a * k + b;
for (uint32_t k = 0; k < 48; ++k) array[(c >> (k & 15)) % 24] ^= array[k % 24] + d;
uint32_t sum = 0;
for (uint32_t k = 0; k < 24; ++k) sum = sum * 31 + array[k];
o[0] = sum, o[1] = array[a % 24];
CORPUS_END

CORPUS_KERNEL(mem_global_wide, 8)
const uint4 x = reinterpret_cast<const uint4*>(in)[i];
const uint2 y = reinterpret_cast<const uint2*>(in)[2 * i + 1];
reinterpret_cast<uint4*>(o)[0] = make_uint4(x.w, x.z, x.y, x.x);
reinterpret_cast<uint2*>(o)[2] = make_uint2(y.y, y.x);
o[6] = __ldg(in + (a % (4 * n))), o[7] = __ldcg(in + (b % (4 * n)));
CORPUS_END

CORPUS_KERNEL(mem_global_narrow, 4)
const auto* bytes = reinterpret_cast<const uint8_t*>(in);
const auto* halves = reinterpret_cast<const int16_t*>(in);
o[0] = bytes[a % (16 * n)], o[1] = static_cast<uint32_t>(halves[b % (8 * n)]);
auto* to = reinterpret_cast<uint8_t*>(o + 2);
for (uint32_t k = 0; k < 4; ++k) to[k] = static_cast<uint8_t>(c >> (24 - 8 * k));
reinterpret_cast<uint16_t*>(o + 3)[0] = static_cast<uint16_t>(d >> 16);
reinterpret_cast<uint16_t*>(o + 3)[1] = static_cast<uint16_t>(d);
CORPUS_END

__device__ __noinline__ uint32_t Load(const uint32_t* from) { return *from; }
CORPUS_KERNEL(mem_generic, 2)
__shared__ uint32_t tile[128];
uint32_t mine[2] = {a ^ 1, b ^ 2};
tile[threadIdx.x] = c;
__syncthreads();
const uint32_t* from = (a & 3) == 0   ? tile + (b & 127)
                       : (a & 3) == 1 ? mine + (b & 1)
                                      : in + (b % n);
o[0] = Load(from), o[1] = Load(mine) + Load(tile + threadIdx.x);
CORPUS_END

CORPUS_KERNEL(mem_atomic_shared, 2)
__shared__ uint32_t bins[16];
__shared__ unsigned long long wide;
if (threadIdx.x < 16) bins[threadIdx.x] = 0;
if (threadIdx.x == 0) wide = 0;
__syncthreads();
atomicAdd(&bins[a & 7], b & 0xff), atomicMax(&bins[8], c), atomicMin(&bins[9], d),
    atomicOr(&bins[10], a);
atomicXor(&bins[11], b), atomicAnd(&bins[12], c), atomicInc(&bins[13], 50);
atomicAdd(&wide, static_cast<unsigned long long>(d));
__syncthreads();
o[0] = bins[threadIdx.x & 15], o[1] = Lo(wide) ^ Hi(wide);
CORPUS_END

CORPUS_KERNEL(mem_atomic_global, 1)
o[0] = 0;
__syncthreads();
uint32_t* const block = out + blockIdx.x * blockDim.x;
atomicAdd(&block[0], a & 0xff), atomicMax(&block[1], b),
    atomicMax(reinterpret_cast<int*>(&block[2]), static_cast<int>(c));
atomicXor(&block[3], d), atomicOr(&block[4], 1u << (a & 31)), atomicSub(&block[5], b);
atomicInc(&block[6], 1000), atomicDec(&block[7], 1000),
    atomicAdd(reinterpret_cast<float*>(&block[8]), static_cast<float>(a & 15));
atomicMin(&block[9], c), atomicAnd(&block[10], d);
atomicAdd(reinterpret_cast<unsigned long long*>(&block[12]), static_cast<unsigned long long>(a)
                                                                 << 8);
CORPUS_END

CORPUS_KERNEL(mem_atomic_results, 1)
__shared__ uint32_t next, sum;
if (threadIdx.x == 0) next = 0, sum = 0;
__syncthreads();
const uint32_t mine = atomicAdd(&next, 1);  // a permutation of 0..127
atomicAdd(&sum, mine* mine);
__syncthreads();
o[0] = sum + next;
CORPUS_END

CORPUS_KERNEL(mem_compare_and_swap, 1)
__shared__ uint32_t lock, total;
if (threadIdx.x == 0) lock = 0, total = 0;
__syncthreads();
bool done = false;
while (!done) {
  if (atomicCAS(&lock, 0, 1) == 0) {
    __threadfence_block();
    auto* const shown = static_cast<volatile uint32_t*>(&total);
    *shown = *shown + (a & 0xff);
    __threadfence_block();
    atomicExch(&lock, 0);
    done = true;
  }
}
__syncthreads();
o[0] = total;
CORPUS_END

CORPUS_KERNEL(mem_copy_async, 4)
__shared__ uint4 tile[128];
const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(&tile[threadIdx.x]));
asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + 4 * i) : "memory");
asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
__syncthreads();
const uint4 x = tile[threadIdx.x ^ 1];
o[0] = x.x, o[1] = x.y, o[2] = x.z, o[3] = x.w;
CORPUS_END

CORPUS_KERNEL(mem_copy_async_part, 2)
__shared__ uint32_t tile[256];
tile[2 * threadIdx.x] = 1, tile[2 * threadIdx.x + 1] = 2;
__syncthreads();
const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(&tile[2 * threadIdx.x]));
asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(in + 4 * i),
             "r"((a & 2) * 4)
             : "memory");
asm volatile("cp.async.wait_all;" ::: "memory");
__syncthreads();
o[0] = tile[2 * (threadIdx.x ^ 3)], o[1] = tile[2 * threadIdx.x + 1];
CORPUS_END

CORPUS_KERNEL(mem_module_global, 1)
if (i < 256) counters[i] = a;
o[0] = i < 256 ? counters[i] + 1 : b;
CORPUS_END
