// SPDX-License-Identifier: Apache-2.0
//
// What kernel and host code of the mma.sync GEMM agree on: plain C++.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/gemm.h"
#include "common/tile_order.h"

namespace example::gemm_mma {

// A CTA computes 128 x 256 of C in steps of 64 along k; sizes are multiples of these.
inline constexpr int kTileM = 128;
inline constexpr int kTileN = 256;
inline constexpr int kTileK = 64;
inline constexpr int kStages = 4;

// Consumer warps compute 64 x 64 each, 2 below one another and 4 side by side.
inline constexpr int kWarpTile = 64;
inline constexpr int kWarpsAlongN = kTileN / kWarpTile;
inline constexpr int kConsumerWarps = kTileM / kWarpTile * kWarpsAlongN;
inline constexpr int kProducerWarps = 4;
inline constexpr int kProducerThreads = 32 * kProducerWarps;
inline constexpr int kThreads = 32 * kConsumerWarps + kProducerThreads;

struct Shared {
  alignas(128) uint16_t a[kStages][kTileM * kTileK];
  alignas(128) uint16_t b[kStages][kTileN * kTileK];
  uint64_t full[kStages], empty[kStages];  // barriers
};
static_assert(sizeof(Shared) <= 227 * 1024, "more shared memory than an sm_90 CTA can have");

EXAMPLE_HOST_DEVICE inline TileOrder Tiles(int m, int n) { return {m / kTileM, n / kTileN}; }

// One CTA a multiprocessor, unless there are fewer tiles.
inline unsigned GridSize(int m, int n, int multiprocessors) {
  return static_cast<unsigned>(std::min(multiprocessors, Tiles(m, n).count()));
}

}  // namespace example::gemm_mma
