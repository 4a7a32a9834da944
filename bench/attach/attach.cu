// SPDX-License-Identifier: Apache-2.0
//
// The kernels of attach.cpp, and attach.cpp over the CUDA runtime; compiled to a cubin, the kernels
// of attach_driver. How many events each makes is said beside it: a tool's count must be equal.
#include "marks.h"

extern "C" {

__global__ void Unmarked() {}

// 1 a warp.
__global__ void Marked() { ATTACH_MARK(); }

// 1 + 2 * n a warp: a mark, and n ranges.
__global__ void Steps(float* out, int n) {
  ATTACH_MARK();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = static_cast<float>(i);
  for (int j = 0; j < n; ++j) {
    ATTACH_PUSH();
    for (int q = 0; q < 16; ++q) a = a * 1.5f + 1;
    ATTACH_POP();
  }
  out[i] = a;
}

// None: there to have begin and end of its warps recorded. iket does that for kernels with marks,
// run-iket for all, with --warp-trace.
__global__ void Ends(float* out, int n) {
#if !defined(ATTACH_NVIDIA)
  if (n < 0) ATTACH_MARK();
#endif
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = static_cast<float>(i);
  for (int j = 0; j < n; ++j) a = a * 1.5f + 1;
  out[i] = a;
}

// 1 + n a warp, then a fault.
__global__ void Bad(float*, int n) {
  ATTACH_MARK();
#pragma unroll 1
  for (int j = 0; j < n; ++j) ATTACH_MARK();
  *reinterpret_cast<volatile float*>(16 + threadIdx.x * 0ull) = 1;
}

// Marks until each warp has made `marks` (a multiple of 16) or `limit` cycles are over, `gap`
// cycles apart or, with 0, as fast as it can. Adds what each warp made to *marked.
__global__ void Stream(unsigned long long* marked, unsigned marks, unsigned gap, long long limit) {
  const long long begin = clock64();
  unsigned made = 0;
  if (gap == 0) {
    while (made < marks) {
#pragma unroll
      for (int i = 0; i < 16; ++i) ATTACH_MARK();
      made += 16;
      // Not in each round: what is measured is marks.
      if (made % 1024 == 0 && clock64() - begin > limit) break;
    }
  } else {
    // Warps take turns in a gap, so that events come evenly.
    const unsigned long long warps_of_cta = blockDim.x / 32;
    const unsigned long long warp = blockIdx.x * warps_of_cta + threadIdx.x / 32;
    unsigned next = static_cast<unsigned>(clock()) +
                    static_cast<unsigned>(gap * warp / (gridDim.x * warps_of_cta));
    while (made < marks && clock64() - begin <= limit) {
      while (static_cast<int>(static_cast<unsigned>(clock()) - next) < 0) {
      }
      __syncwarp();  // one event a warp
      ATTACH_MARK();
      ++made;
      next += gap;
    }
  }
  if (threadIdx.x % 32 == 0) atomicAdd(marked, static_cast<unsigned long long>(made));
}

// `steps` a warp, each after `inner` FMAs. What draining costs a kernel that computes.
__global__ void Compute(float* out, unsigned steps, unsigned inner) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = static_cast<float>(i);
  for (unsigned step = 0; step < steps; ++step) {
#pragma unroll 16
    for (unsigned j = 0; j < inner; ++j) a = a * 1.5f + 1;
    ATTACH_MARK();
  }
  out[i] = a;
}

// `steps` a warp, each after `inner` loads of 16 bytes a lane. The same for one that reads memory,
// which the reader's copies read too. `words` is a power of two.
__global__ void Load(float* out, const uint4* in, unsigned words, unsigned steps, unsigned inner) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  unsigned sum = 0, at = i;
  for (unsigned step = 0; step < steps; ++step) {
#pragma unroll 8
    for (unsigned j = 0; j < inner; ++j, at += threads) {
      const uint4 four = in[at & (words - 1)];
      sum += four.x + four.y + four.z + four.w;
    }
    ATTACH_MARK();
  }
  out[i] = static_cast<float>(sum);
}

}  // extern "C"

#define ATTACH_RUNTIME 1
#include "attach.cpp"  // NOLINT: one program in two forms
