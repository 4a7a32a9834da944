// SPDX-License-Identifier: Apache-2.0
//
// The form of a corpus kernel: thread i of n reads in[4 * i .. 4 * i + 3] and writes `words` words
// (corpus.txt) from out[words * i] on. What it computes does not matter as long as each step's
// result reaches the output; it must not depend on which warp comes first. With IKET_ENABLE each
// warp marks once, with its first thread's number; with CORPUS_FOREIGN it does so as NVIDIA's IKET
// would (docs/design/compat.md), by ExtendedNativeDump.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <iket/iket.cuh>

#ifdef CORPUS_FOREIGN
struct ForeignEvent {
  uint32_t size, id, method, payload, position, range, length;
  char name[32];
};
static_assert(sizeof(ForeignEvent) == 60);
// An id a line, of those that extended events may have.
#define CORPUS_DECLARE(name)                                                                  \
  extern "C" __device__ __attribute__((used)) ForeignEvent __iket_evt_decl_##name##_attrs = { \
      60, 64 + __LINE__, 5, 6, 0, 0, sizeof(#name) - 1, #name};
#define CORPUS_MARK(name, i)                                                       \
  asm volatile(                                                                    \
      "{.reg .b32 r, t, m; .reg .pred p; activemask.b32 m; elect.sync _|p, m; "    \
      "mov.b32 r, %%cluster_ctarank; mov.u32 t, %%globaltimer_lo; "                \
      "mad.lo.u32 r, r, 0x1000000, 0x3f0; @p st.weak.shared.v2.u32 [r], {t, %0}; " \
      "@p st.weak.shared.b32 [r+8], %1; pmevent.mask %0;}" ::"n"(64 + __LINE__),   \
      "r"(i)                                                                       \
      : "memory")
#else
#define CORPUS_DECLARE(name)
#define CORPUS_MARK(name, i) IKET_MARK(#name, i)
#endif

// Opens a kernel: i is the thread, a, b, c, d are its four input words, o its output.
#define CORPUS_KERNEL(name, words)                                                         \
  CORPUS_DECLARE(name)                                                                     \
  extern "C" __global__ void name(const uint32_t* in, uint32_t* out, uint32_t n) {         \
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;                              \
    if (i >= n) return;                                                                    \
    const uint32_t a = in[4 * i], b = in[4 * i + 1], c = in[4 * i + 2], d = in[4 * i + 3]; \
    uint32_t* const o = out + (words) * i;                                                 \
    CORPUS_MARK(name, i);                                                                  \
    (void)a, (void)b, (void)c, (void)d;

// Closes it.
#define CORPUS_END }

__device__ inline float F(uint32_t bits) { return __uint_as_float(bits); }
__device__ inline uint32_t U(float value) { return __float_as_uint(value); }
__device__ inline uint32_t Lo(uint64_t value) { return static_cast<uint32_t>(value); }
__device__ inline uint32_t Hi(uint64_t value) { return static_cast<uint32_t>(value >> 32); }
__device__ inline uint64_t Join(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }
__device__ inline double D(uint32_t low, uint32_t high) {
  return __longlong_as_double(static_cast<long long>(Join(low, high)));
}
__device__ inline void Put(uint32_t* o, double value) {
  const auto bits = static_cast<uint64_t>(__double_as_longlong(value));
  o[0] = Lo(bits), o[1] = Hi(bits);
}
__device__ inline __half2 H2(uint32_t bits) { return *reinterpret_cast<const __half2*>(&bits); }
__device__ inline uint32_t U(__half2 value) { return *reinterpret_cast<const uint32_t*>(&value); }
__device__ inline __nv_bfloat162 B2(uint32_t bits) {
  return *reinterpret_cast<const __nv_bfloat162*>(&bits);
}
__device__ inline uint32_t U(__nv_bfloat162 value) {
  return *reinterpret_cast<const uint32_t*>(&value);
}
