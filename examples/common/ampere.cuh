// SPDX-License-Identifier: Apache-2.0
//
// The PTX of a GEMM in the style of sm_80: asynchronous copies, ldmatrix, mma.sync.
#pragma once

#include <cstdint>

#include "common/mbarrier.cuh"

namespace example {

// Copies 16 bytes from global to shared memory, past L1, in the background.
__device__ __forceinline__ void CopyAsync16(uint32_t shared, const void* global) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared), "l"(global)
               : "memory");
}

// Arrives at the barrier once all copies that this thread has started are done.
__device__ __forceinline__ void BarrierArriveAfterCopies(Barrier& barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(SharedAddress(&barrier))
               : "memory");
}

// Four 8x8 matrices of fp16 from shared memory; lane i gives the address of row i % 8 of matrix
// i / 8.
__device__ __forceinline__ void LoadMatrices(uint32_t (&matrices)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(shared)
               : "memory");
}

// d += a * b for 16x16 and 16x8 fp16, fp32 sum.
__device__ __forceinline__ void Mma16x8x16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                           uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace example
