// SPDX-License-Identifier: Apache-2.0
//
// What kernel and host code of the WGMMA GEMM agree on, and its launch: plain C++.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "common/gemm.h"
#include "common/tile_order.h"

namespace example::gemm_wgmma {

// A CTA computes 128 x 256 of C in steps of 64 along k. The two CTAs of a cluster lie one below the
// other: they need the same rows of B, so each loads half of them for both.
inline constexpr int kTileM = 128;
inline constexpr int kTileN = 256;
inline constexpr int kTileK = 64;
inline constexpr int kClusterSize = 2;
inline constexpr int kStages = 4;

// One warpgroup moves data, two compute 64 rows each.
inline constexpr int kConsumerGroups = 2;
inline constexpr int kThreads = 128 * (1 + kConsumerGroups);
inline constexpr int kConsumerWarps = 4 * kConsumerGroups;

// A warp hands its 16 rows of C to the copy engine in boxes of 64 columns, two in flight.
inline constexpr int kStoreRows = 16;
inline constexpr int kStoreColumns = 64;
inline constexpr int kStoreBoxes = 2;

struct Shared {
  alignas(1024) uint16_t a[kStages][kTileM * kTileK];
  alignas(1024) uint16_t b[kStages][kTileN * kTileK];
  alignas(1024) uint16_t c[kConsumerWarps][kStoreBoxes][kStoreRows * kStoreColumns];
  uint64_t full[kStages], empty[kStages];  // barriers
};
static_assert(sizeof(Shared) <= 227 * 1024, "more shared memory than an sm_90 CTA can have");

// The tiles of clusters: 256 x 256 of C.
EXAMPLE_HOST_DEVICE inline TileOrder Tiles(int m, int n) {
  constexpr int kClusterM = kClusterSize * kTileM;
  return {(m + kClusterM - 1) / kClusterM, (n + kTileN - 1) / kTileN};
}

// One CTA a multiprocessor, unless there are fewer tiles.
inline unsigned GridSize(int m, int n, int multiprocessors) {
  return static_cast<unsigned>(kClusterSize *
                               std::min(multiprocessors / kClusterSize, Tiles(m, n).count()));
}

// What the copy engine knows of the three matrices.
struct TensorMaps {
  CUtensorMap a, b, c;
};

// Rows of 16 bytes at least: k and n are multiples of 8. `encode` is cuTensorMapEncodeTiled.
inline TensorMaps MakeTensorMaps(decltype(&cuTensorMapEncodeTiled) encode, const void* a,
                                 const void* b, const void* c, GemmShape shape) {
  // A row-major matrix, moved in boxes whose rows are 128 bytes in the 128-byte swizzle of WGMMA.
  const auto make = [&](const void* matrix, int rows, int columns, int box_rows, int box_columns) {
    CUtensorMap map;
    const cuuint64_t extents[] = {cuuint64_t(columns), cuuint64_t(rows)};
    const cuuint64_t row_bytes[] = {columns * sizeof(uint16_t)};
    const cuuint32_t box[] = {cuuint32_t(box_columns), cuuint32_t(box_rows)};
    const cuuint32_t steps[] = {1, 1};
    const CUresult result =
        encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, const_cast<void*>(matrix), extents,
               row_bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) {
      std::fprintf(stderr, "cuTensorMapEncodeTiled failed: error %d\n", static_cast<int>(result));
      std::exit(1);
    }
    return map;
  };
  return {make(a, shape.m, shape.k, kTileM, kTileK),
          make(b, shape.n, shape.k, kTileN / kClusterSize, kTileK),
          make(c, shape.m, shape.n, kStoreRows, kStoreColumns)};
}

}  // namespace example::gemm_wgmma
