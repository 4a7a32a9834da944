// SPDX-License-Identifier: Apache-2.0
//
// A warp-specialised fp16 GEMM of sm_80 instructions: C = A * B^T (common/gemm.h has the layout).
//
//   producers   four warps; wait for an empty stage ("acquire") and start its cp.async copies
//               ("issue"), whose end arrives at the stage's barrier
//   consumers   eight warps; wait for a full stage ("full-wait"), then ldmatrix and mma.sync
//   ("mma") epilogue    each consumer warp stores its part of C; meanwhile the producers fill the
//   ring for
//               the next tile
//
// Persistent: a CTA takes tile after tile; the ring runs on across tiles.
#pragma once

#include <cuda_fp16.h>

#include <iket/iket.cuh>

#include "common/ampere.cuh"
#include "gemm_mma/gemm_mma.h"

namespace example::gemm_mma {

using Ring = RingPosition<kStages>;

// Shared memory holds rows of 64 fp16, which are 8 chunks of 16 bytes. Chunk i of row r lies at
// i ^ (r % 8), so that a column of chunks touches all banks.
inline constexpr int kRowBytes = kTileK * sizeof(uint16_t);
inline constexpr int kChunkBytes = 16;
inline constexpr int kChunks = kRowBytes / kChunkBytes;

__device__ __forceinline__ uint32_t SwizzledOffset(int row, int chunk) {
  return static_cast<uint32_t>(row * kRowBytes + (chunk ^ (row % 8)) * kChunkBytes);
}

// Starts the copy of kRows rows of `source`, which lie `pitch` elements apart. `thread` counts
// the producers' threads.
template <int kRows>
__device__ __forceinline__ void CopyRows(uint32_t shared, const uint16_t* source, int pitch,
                                         int thread) {
  constexpr int kRowsAtOnce = kProducerThreads / kChunks;
  static_assert(kRowsAtOnce % 8 == 0, "the swizzle must be the same in every step");
  const int row = thread / kChunks, chunk = thread % kChunks;
  const uint16_t* from = source + size_t(row) * pitch + chunk * (kTileK / kChunks);
  const uint32_t to = shared + SwizzledOffset(row, chunk);
#pragma unroll
  for (int i = 0; i < kRows; i += kRowsAtOnce) {
    CopyAsync16(to + i * kRowBytes, from);
    from += size_t(kRowsAtOnce) * pitch;
  }
}

__device__ __forceinline__ void Produce(Shared& shared, const uint16_t* a, const uint16_t* b,
                                        TileOrder tiles, int k_steps, int thread) {
  using namespace iket::literals;
  const int pitch = k_steps * kTileK;
  Ring ring;
  for (int index = static_cast<int>(blockIdx.x); index < tiles.count();
       index += static_cast<int>(gridDim.x)) {
    const Tile tile = tiles.At(index);
    const uint16_t* const a_rows = a + size_t(tile.row) * kTileM * pitch;
    const uint16_t* const b_rows = b + size_t(tile.column) * kTileN * pitch;
    for (int k = 0; k < k_steps; ++k, ring.Advance()) {
      {
        iket::range acquire{"acquire"_ev, k};
        BarrierWait(shared.empty[ring.stage], ring.parity ^ 1);
      }
      iket::range issue{"issue"_ev, k};
      CopyRows<kTileM>(SharedAddress(shared.a[ring.stage]), a_rows + k * kTileK, pitch, thread);
      CopyRows<kTileN>(SharedAddress(shared.b[ring.stage]), b_rows + k * kTileK, pitch, thread);
      BarrierArriveAfterCopies(shared.full[ring.stage]);
    }
  }
}

// The sum of one warp: 4 x 8 fragments of 16 x 8.
inline constexpr int kFragmentsM = kWarpTile / 16;
inline constexpr int kFragmentsN = kWarpTile / 8;
using Sum = float[kFragmentsM][kFragmentsN][4];

// sum += A * B^T over 64 along k. `a` and `b` are what this lane loads first: LaneOffsetA() and
// LaneOffsetB() into a stage.
__device__ __forceinline__ void Multiply(Sum& sum, uint32_t a, uint32_t b) {
#pragma unroll
  for (int k = 0; k < kTileK / 16; ++k) {
    // On by 16 along k is on by two chunks; in the swizzle that is an exclusive or.
    const uint32_t a_k = a ^ (k * 2 * kChunkBytes), b_k = b ^ (k * 2 * kChunkBytes);
    uint32_t b_fragments[kFragmentsN / 2][4];  // two fragments of 8 columns each
#pragma unroll
    for (int j = 0; j < kFragmentsN / 2; ++j) {
      LoadMatrices(b_fragments[j], b_k + j * 16 * kRowBytes);
    }
    uint32_t a_fragments[2][4];  // one in use, one on its way
    LoadMatrices(a_fragments[0], a_k);
#pragma unroll
    for (int i = 0; i < kFragmentsM; ++i) {
      if (i + 1 < kFragmentsM) {
        LoadMatrices(a_fragments[(i + 1) % 2], a_k + (i + 1) * 16 * kRowBytes);
      }
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j) {
        Mma16x8x16(sum[i][j], a_fragments[i % 2], b_fragments[j / 2][j % 2 * 2],
                   b_fragments[j / 2][j % 2 * 2 + 1]);
      }
    }
  }
}

// ldmatrix takes four matrices of 8 x 8 and the address of row i % 8 of matrix i / 8 from lane i.
// For A they are the upper and lower half of 16 rows, first for 8 along k, then for the next 8.
__device__ __forceinline__ uint32_t LaneOffsetA(int first_row, int lane) {
  return SwizzledOffset(first_row + lane % 16, lane / 16);
}
// For B, 8 rows (columns of C) for 16 along k, then the next 8 rows.
__device__ __forceinline__ uint32_t LaneOffsetB(int first_row, int lane) {
  return SwizzledOffset(first_row + lane / 16 * 8 + lane % 8, lane / 8 % 2);
}

// Stores the warp's part of C; its first element is *c, rows lie `pitch` elements apart.
__device__ __forceinline__ void Store(uint16_t* c, int pitch, const Sum& sum) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i) {
    uint16_t* const row = c + size_t(i * 16 + lane / 4) * pitch + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) {
      *reinterpret_cast<__half2*>(row + j * 8) = __floats2half2_rn(sum[i][j][0], sum[i][j][1]);
      *reinterpret_cast<__half2*>(row + size_t(8) * pitch + j * 8) =
          __floats2half2_rn(sum[i][j][2], sum[i][j][3]);
    }
  }
}

__device__ __forceinline__ void Consume(Shared& shared, uint16_t* c, TileOrder tiles, int n,
                                        int k_steps, int warp) {
  using namespace iket::literals;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp / kWarpsAlongN * kWarpTile, column = warp % kWarpsAlongN * kWarpTile;
  const uint32_t a = SharedAddress(shared.a) + LaneOffsetA(row, lane);
  const uint32_t b = SharedAddress(shared.b) + LaneOffsetB(column, lane);
  Ring ring;
  for (int index = static_cast<int>(blockIdx.x); index < tiles.count();
       index += static_cast<int>(gridDim.x)) {
    Sum sum = {};
    for (int k = 0; k < k_steps; ++k, ring.Advance()) {
      {
        iket::range full_wait{"full-wait"_ev, k};
        BarrierWait(shared.full[ring.stage], ring.parity);
      }
      iket::range mma{"mma"_ev, k};
      Multiply(sum, a + ring.stage * sizeof(shared.a[0]), b + ring.stage * sizeof(shared.b[0]));
      __syncwarp();
      if (lane == 0) BarrierArrive(shared.empty[ring.stage]);
    }

    iket::range epilogue{"epilogue"_ev, index};
    const Tile tile = tiles.At(index);
    Store(c + size_t(tile.row * kTileM + row) * n + tile.column * kTileN + column, n, sum);
  }
}

// A grid of GridSize() CTAs with sizeof(Shared) bytes of dynamic shared memory; k > 0.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    GemmMma(const uint16_t* a, const uint16_t* b, uint16_t* c, int m, int n, int k) {
  extern __shared__ __align__(128) unsigned char shared_bytes[];
  Shared& shared = *reinterpret_cast<Shared*>(shared_bytes);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      BarrierInit(shared.full[stage], kProducerThreads);
      BarrierInit(shared.empty[stage], kConsumerWarps);
    }
  }
  __syncthreads();

  // Through a shuffle, so that the compiler knows it to be the same in all lanes.
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
  if (warp >= kConsumerWarps) {
    Produce(shared, a, b, Tiles(m, n), k / kTileK,
            static_cast<int>(threadIdx.x) - 32 * kConsumerWarps);
  } else {
    Consume(shared, c, Tiles(m, n), n, k / kTileK, warp);
  }
}

}  // namespace example::gemm_mma
