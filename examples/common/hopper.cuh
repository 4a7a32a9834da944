// SPDX-License-Identifier: Apache-2.0
//
// The PTX of a Hopper GEMM (sm_90a): clusters, the bulk tensor copy engine (TMA), warpgroup MMA.
#pragma once

#include <cuda.h>  // CUtensorMap

#include <cstdint>

#include "common/mbarrier.cuh"

namespace example {

// --- Warps and clusters

// One lane of a converged warp, the same at every call.
__device__ __forceinline__ bool ElectLane() {
  unsigned elected;
  asm volatile(
      "{\n\t.reg .pred p;\n\t"
      "elect.sync _|p, 0xffffffff;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(elected));
  return elected != 0;
}

__device__ __forceinline__ unsigned ClusterRank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// All threads of the cluster; what they wrote before is visible after.
__device__ __forceinline__ void ClusterSync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n\t"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

// Fewer registers for this warpgroup, or more: what one gives up another takes.
template <int kRegisters>
__device__ __forceinline__ void GiveRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void TakeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// --- Barriers across a cluster

// Makes BarrierInit visible to the cluster and to the copy engine; a ClusterSync must follow.
__device__ __forceinline__ void FenceBarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and lets the phase wait for `bytes` more bytes from the copy engine.
__device__ __forceinline__ void BarrierArriveExpectBytes(Barrier& barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(SharedAddress(&barrier)),
               "r"(bytes)
               : "memory");
}

// Arrives at the same barrier of the CTA with this rank. Relaxed: it says that a stage has been
// read, and those reads are over (WgmmaWait); a release to the cluster would cost a memory fence.
__device__ __forceinline__ void BarrierArriveAt(Barrier& barrier, unsigned rank) {
  asm volatile(
      "{\n\t.reg .b32 remote;\n\t"
      "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [remote];\n\t}" ::"r"(
          SharedAddress(&barrier)),
      "r"(rank)
      : "memory");
}

// --- The bulk tensor copy engine. One thread calls; x is the column (fastest), y the row.

__device__ __forceinline__ void TmaPrefetchMap(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// A box of the tensor to `destination` in shared memory; its bytes count at `full`.
__device__ __forceinline__ void TmaLoad(void* destination, const CUtensorMap& map, int x, int y,
                                        Barrier& full) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(SharedAddress(destination)),
      "l"(&map), "r"(SharedAddress(&full)), "r"(x), "r"(y)
      : "memory");
}

// The same to every CTA of `cta_mask`: to the same place there, counted at the same barrier there.
__device__ __forceinline__ void TmaLoadMulticast(void* destination, const CUtensorMap& map, int x,
                                                 int y, Barrier& full, uint16_t cta_mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(SharedAddress(destination)),
      "l"(&map), "r"(SharedAddress(&full)), "r"(x), "r"(y), "h"(cta_mask)
      : "memory");
}

// A box from shared memory to the tensor; parts outside the tensor are left out.
__device__ __forceinline__ void TmaStore(const CUtensorMap& map, int x, int y, const void* source) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
      "r"(SharedAddress(source)), "r"(x), "r"(y)
      : "memory");
}
// Ends a group of stores; waits until at most kPending groups still read shared memory.
__device__ __forceinline__ void TmaStoreCommit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void TmaStoreWaitRead() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

// Orders this thread's ordinary stores to shared memory before what the copy engine or the tensor
// cores read later.
__device__ __forceinline__ void FenceAsyncProxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Four 8x8 matrices of fp16 to shared memory; lane i gives the address of row i % 8 of matrix i
// / 8.
__device__ __forceinline__ void StoreMatrices(uint32_t shared, uint32_t m0, uint32_t m1,
                                              uint32_t m2, uint32_t m3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
               "r"(m0), "r"(m1), "r"(m2), "r"(m3)
               : "memory");
}

// --- Warpgroup MMA: four warps together, operands in shared memory, the sum in registers.

// Describes an operand to WGMMA: rows of 64 fp16 (128 bytes, K-major) in the 128-byte swizzle that
// the copy engine writes; groups of 8 rows lie 1024 bytes apart. `tile` is aligned to 1024 bytes.
// Adding kWgmmaDescriptorStep moves on by 16 along k.
__device__ __forceinline__ uint64_t WgmmaDescriptor(const void* tile) {
  const uint64_t address = (SharedAddress(tile) & 0x3ffff) >> 4;
  return address | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}
inline constexpr uint64_t kWgmmaDescriptorStep = 16 * sizeof(uint16_t) >> 4;

// Before the first WGMMA, and after other code has touched the sum's registers.
__device__ __forceinline__ void WgmmaFence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void WgmmaCommit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most kPending groups are still running.
template <int kPending>
__device__ __forceinline__ void WgmmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Keeps the compiler from moving the sum's registers across this point.
template <int kCount>
__device__ __forceinline__ void WgmmaPin(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// d = a * b (+ d if `accumulate`): 64x16 times 16x256 fp16, fp32 sum. Warp w of the group holds
// rows 16w .. 16w + 15; d[4j], d[4j + 1] are columns 8j + 2(lane % 4) and the next of row lane / 4,
// d[4j + 2], d[4j + 3] those of the row 8 below.
#define EXAMPLE_D8(i)                                                                         \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define EXAMPLE_D32(i) EXAMPLE_D8(i), EXAMPLE_D8(i + 8), EXAMPLE_D8(i + 16), EXAMPLE_D8(i + 24)
__device__ __forceinline__ void Wgmma64x256x16(float (&d)[128], uint64_t a, uint64_t b,
                                               bool accumulate) {
  asm volatile(
      "{\n\t.reg .pred p;\n\t"
      "setp.ne.b32 p, %130, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "
      "%127"
      "}, %128, %129, p, 1, 1, 0, 0;\n\t}"
      : EXAMPLE_D32(0), EXAMPLE_D32(32), EXAMPLE_D32(64), EXAMPLE_D32(96)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}
#undef EXAMPLE_D8
#undef EXAMPLE_D32

}  // namespace example
