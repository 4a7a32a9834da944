// Kernels that the tests of this room run; results are checked against code of the host.
#include <cassert>
#include <cstdio>

#include "../../src/sim/testing_functions.h"

extern "C" __global__ void ApplyAll(const uint32_t* a, const uint32_t* b, const uint32_t* c,
                                    uint32_t* out, int n, int which) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = testing_functions::Apply(which, a[i], b[i], c[i]);
}

// Words 0..15 of a lane, of one warp.
extern "C" __global__ void WarpPrimitives(const uint32_t* in, uint32_t* out) {
  const unsigned lane = threadIdx.x;
  const uint32_t v = in[lane];
  uint32_t r[16];
  r[0] = __ballot_sync(~0u, v & 1);
  r[1] = __any_sync(~0u, v == 17) | __all_sync(~0u, v < 1u << 31) << 1;
  r[2] = __shfl_sync(~0u, v, lane * 7 & 31);
  r[3] = __shfl_up_sync(~0u, v, 3);
  r[4] = __shfl_down_sync(~0u, v, 5, 16);
  r[5] = __shfl_xor_sync(~0u, v, 9);
  r[6] = __match_any_sync(~0u, v & 7);
  int same;
  r[7] = __match_all_sync(~0u, v >> 31, &same) + same;
  r[8] = __reduce_add_sync(~0u, v);
  r[9] = __reduce_min_sync(~0u, v) ^ __reduce_max_sync(~0u, static_cast<int>(v));
  r[10] = __reduce_and_sync(~0u, v | 0xff) ^ __reduce_or_sync(~0u, v & 0xf0f0) ^
          __reduce_xor_sync(~0u, v);
  r[11] = __popc(v) | __clz(v) << 8 | __ffs(v) << 16;
  r[12] = __brev(v);
  r[13] = __byte_perm(v, lane * 0x01010101u, 0x5140);
  r[14] = __funnelshift_l(v, lane, 5) ^ __funnelshift_r(v, lane, 11);
  r[15] = __shfl_sync(~0u, v, 2, 8);
  for (int i = 0; i < 16; ++i) out[lane * 16 + i] = r[i];
}

// Divergence of several shapes; each lane's answer is that of the plain loop.
extern "C" __global__ void Diverge(const uint32_t* in, uint32_t* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint32_t v = in[i], steps = 0;
  while (v != 1 && steps < 200) {
    if (v & 1) {
      v = 3 * v + 1;
      if (v % 5 == 0) {
        steps += 2;
        continue;
      }
    } else {
      v >>= 1;
    }
    switch (v & 7) {
      case 0:
        steps += 1;
        break;
      case 1:
        steps += 3;
        break;
      case 2:
        steps ^= 5;
        break;
      case 3:
        steps += v & 15;
        break;
      case 4:
        steps += 7;
        break;
      case 5:
        steps += 2;
        break;
      case 6:
        steps ^= 1;
        break;
      default:
        ++steps;
    }
    if (steps > 150 && (v & 3) == 2) break;
  }
  out[i] = steps * 1000003u + v;
}

__device__ __noinline__ uint32_t Recurse(uint32_t n) {
  return n < 2 ? n : Recurse(n - 1) + Recurse(n - 2);
}
extern "C" __global__ void Fibonacci(uint32_t* out) { out[threadIdx.x] = Recurse(threadIdx.x % 9); }

extern "C" __global__ void Atomics(uint32_t* words, float* sum, unsigned long long* wide) {
  __shared__ uint32_t shared[4];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < 4) shared[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&shared[threadIdx.x & 3], i);
  atomicMax(&words[1], i * 7 % 1009);
  atomicMin(reinterpret_cast<int*>(&words[2]), -static_cast<int>(i));
  atomicOr(&words[3], 1u << (i & 31));
  atomicXor(&words[4], i);
  atomicAnd(&words[5], ~(1u << (i & 15)));
  atomicInc(&words[6], 99);
  for (uint32_t old = words[7], seen;; old = seen) {
    seen = atomicCAS(&words[7], old, old + 3);
    if (seen == old) break;
  }
  atomicAdd(sum, 0.5f);
  atomicAdd(wide, static_cast<unsigned long long>(i) << 20);
  __syncthreads();
  if (threadIdx.x < 4) atomicAdd(&words[0], shared[threadIdx.x]);
}

// Sums through pointers whose space only the launch knows; shared memory has no such sums.
extern "C" __global__ void GenericSums(float* sum, unsigned long long* wide, int in_shared) {
  __shared__ float shared;
  __shared__ unsigned long long shared_wide;
  if (threadIdx.x == 0) shared = 0, shared_wide = 0;
  __syncthreads();
  atomicAdd(in_shared != 0 ? &shared : sum, 0.5f);
  atomicAdd(in_shared != 0 ? &shared_wide : wide, 1ull << 33);
  __syncthreads();
  if (threadIdx.x == 0 && in_shared != 0) *sum = shared, *wide = shared_wide;
}

// cp.async of the first `bytes` bytes of 16, zeros behind them.
extern "C" __global__ void CopyPart(const uint4* in, uint4* out, int bytes) {
  __shared__ uint4 shared[32];
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(&shared[threadIdx.x]));
  shared[threadIdx.x] = make_uint4(~0u, ~0u, ~0u, ~0u);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(in + threadIdx.x),
               "r"(bytes));
  asm volatile("cp.async.wait_all;");
  out[threadIdx.x] = shared[threadIdx.x];
}

// A reduction over the block with barriers, and a spin lock that one lane at a time holds.
extern "C" __global__ void Barriers(const uint32_t* in, uint32_t* out, uint32_t* lock) {
  __shared__ uint32_t data[256];
  const unsigned t = threadIdx.x;
  data[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (unsigned half = 128; half > 0; half >>= 1) {
    if (t < half) data[t] += data[t + half];
    __syncthreads();
  }
  const int many = __syncthreads_count(in[blockIdx.x * 256 + t] & 1);
  const int any = __syncthreads_or(t == 77), all = __syncthreads_and(t < 256);
  if (t == 0) out[blockIdx.x] = data[0] + many + any + all;
  if (t % 32 == 5) {  // one lane a warp: lanes of a warp that wait for each other reconverge
    while (atomicCAS(lock, 0u, 1u) != 0) {
    }
    __threadfence();
    *reinterpret_cast<volatile uint32_t*>(lock + 1) += 1;
    __threadfence();
    atomicExch(lock, 0u);
  }
}

__constant__ uint32_t constant_table[64];
__device__ uint32_t device_table[64];
extern "C" __global__ void Constants(uint32_t* out) {
  out[threadIdx.x] = constant_table[threadIdx.x ^ 5] + device_table[63 - threadIdx.x];
}

extern "C" __global__ void Hello(int n) {
  if (threadIdx.x == 3) printf("hello %d %s %.3f %lld\n", n, "world", 1.5, 1ll << 40);
}

extern "C" __global__ void Misbehave(int how, uint32_t* address) {
  if (how == 0 && blockIdx.x == 1 && threadIdx.x == 37) *address = 1;
  if (how == 1 && threadIdx.x == 3) __trap();
  assert(how != 2);
  if (how == 3) {
    for (;;) __nanosleep(100);
  }
}

// Uses about 32 bytes of stack for each of `depth` calls.
__device__ __noinline__ uint32_t Deep(uint32_t depth, uint32_t x) {
  volatile uint32_t kept = x;
  return depth == 0 ? kept : Deep(depth - 1, x * 3 + depth) + kept;
}
extern "C" __global__ void Descend(uint32_t* out, uint32_t depth) {
  out[threadIdx.x] = Deep(depth, threadIdx.x);
}

// How many pieces of `bytes` malloc gives, up to `most`; writes into each.
extern "C" __global__ void Hoard(uint32_t* out, uint32_t bytes, uint32_t most) {
  uint32_t count = 0;
  for (; count < most; ++count) {
    char* const piece = static_cast<char*>(malloc(bytes));
    if (piece == nullptr) break;
    piece[bytes - 1] = 1;
  }
  out[threadIdx.x] = count;
}

extern "C" __global__ void Chatter(int lines) {
  for (int i = 0; i < lines; ++i) printf("line %04d\n", i);
}
