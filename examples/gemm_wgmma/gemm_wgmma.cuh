// SPDX-License-Identifier: Apache-2.0
//
// A warp-specialised fp16 GEMM for sm_90a: C = A * B^T (common/gemm.h has the layout).
//
//   producer    one warp; waits for an empty stage ("acquire") and starts the copies of A and B
//   into
//               it ("issue"); B goes to both CTAs of the cluster
//   consumers   two warpgroups of 64 rows; wait for a full stage ("full-wait"), start its WGMMAs
//   and
//               wait for those of the stage before ("mma"), which is empty then
//   epilogue    each consumer warp hands its rows to the copy engine; meanwhile the producer fills
//               the ring for the next tile
//
// Persistent: a cluster takes tile after tile; the ring runs on across tiles.
#pragma once

#include <cuda_fp16.h>

#include <iket/iket.cuh>

#include "common/hopper.cuh"
#include "gemm_wgmma/gemm_wgmma.h"

namespace example::gemm_wgmma {

using Ring = RingPosition<kStages>;

// Registers of a thread: 128 * (40 + 2 * 232) fit the 65,536 of a multiprocessor.
inline constexpr int kProducerRegisters = 40;
inline constexpr int kConsumerRegisters = 232;

__device__ __forceinline__ void Produce(Shared& shared, const CUtensorMap& a_map,
                                        const CUtensorMap& b_map, TileOrder tiles, int cluster,
                                        int clusters, int k_steps) {
  using namespace iket::literals;
  constexpr int kBytes = (kTileM + kTileN) * kTileK * sizeof(uint16_t);
  constexpr int kShareOfB = kTileN / kClusterSize;  // rows
  constexpr uint16_t kWholeCluster = (1 << kClusterSize) - 1;
  const int rank = static_cast<int>(ClusterRank());
  const bool leader = ElectLane();
  Ring ring;
  for (int index = cluster; index < tiles.count(); index += clusters) {
    const Tile tile = tiles.At(index);
    const int a_row = (tile.row * kClusterSize + rank) * kTileM;
    const int b_row = tile.column * kTileN + rank * kShareOfB;
    for (int k = 0; k < k_steps; ++k, ring.Advance()) {
      Barrier& full = shared.full[ring.stage];
      {
        iket::range acquire{"acquire"_ev, k};
        BarrierWait(shared.empty[ring.stage], ring.parity ^ 1);
      }
      iket::range issue{"issue"_ev, k};
      if (leader) {
        BarrierArriveExpectBytes(full, kBytes);
        TmaLoad(shared.a[ring.stage], a_map, k * kTileK, a_row, full);
        TmaLoadMulticast(shared.b[ring.stage] + rank * kShareOfB * kTileK, b_map, k * kTileK, b_row,
                         full, kWholeCluster);
      }
    }
  }
}

// Tells both CTAs that this warp no longer reads the stage: each writes into the other's.
__device__ __forceinline__ void Release(Shared& shared, int stage) {
  const unsigned lane = threadIdx.x % 32;
  if (lane < kClusterSize) BarrierArriveAt(shared.empty[stage], lane);
}

// Stores this warp's 16 x 256 of C, first element at (row, column), from the WGMMA layout.
__device__ __forceinline__ void StoreRows(
    uint16_t (&boxes)[kStoreBoxes][kStoreRows * kStoreColumns], const CUtensorMap& c_map, int row,
    int column, const float (&sum)[128]) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned box_row = lane % 16;
#pragma unroll
  for (int box = 0; box < kTileN / kStoreColumns; ++box) {
    uint16_t* const staged = boxes[box % kStoreBoxes];
    if (lane == 0) TmaStoreWaitRead<kStoreBoxes - 1>();
    __syncwarp();
#pragma unroll
    for (int pair = 0; pair < kStoreColumns / 16; ++pair) {
      const float* const d = &sum[(box * kStoreColumns + pair * 16) / 2];
      const auto pack = [](float low, float high) {
        const __half2 both = __floats2half2_rn(low, high);
        return reinterpret_cast<const uint32_t&>(both);
      };
      // A chunk is 16 bytes; the swizzle moves chunk i of row r to i ^ (r % 8).
      const unsigned chunk = (pair * 2 + lane / 16) ^ (box_row % 8);
      StoreMatrices(SharedAddress(staged) + box_row * 128 + chunk * 16, pack(d[0], d[1]),
                    pack(d[2], d[3]), pack(d[4], d[5]), pack(d[6], d[7]));
    }
    FenceAsyncProxy();
    __syncwarp();
    if (lane == 0) {
      TmaStore(c_map, column + box * kStoreColumns, row, staged);
      TmaStoreCommit();
    }
  }
}

__device__ __forceinline__ void Consume(Shared& shared, const CUtensorMap& c_map, TileOrder tiles,
                                        int cluster, int clusters, int k_steps, int warp) {
  using namespace iket::literals;
  const int rank = static_cast<int>(ClusterRank());
  const int group = warp / 4;
  float sum[128];
  Ring ring;
  for (int index = cluster; index < tiles.count(); index += clusters) {
    int previous = 0;  // stage of the k-step before
    for (int k = 0; k < k_steps; ++k, ring.Advance()) {
      {
        iket::range full_wait{"full-wait"_ev, k};
        BarrierWait(shared.full[ring.stage], ring.parity);
      }
      iket::range mma{"mma"_ev, k};
      const uint64_t a = WgmmaDescriptor(shared.a[ring.stage] + group * 64 * kTileK);
      const uint64_t b = WgmmaDescriptor(shared.b[ring.stage]);
      WgmmaPin(sum);
      WgmmaFence();
#pragma unroll
      for (int i = 0; i < kTileK / 16; ++i) {
        Wgmma64x256x16(sum, a + i * kWgmmaDescriptorStep, b + i * kWgmmaDescriptorStep, k + i != 0);
      }
      WgmmaCommit();
      WgmmaWait<1>();  // the tensor cores always have work: this k-step's stays in flight
      WgmmaPin(sum);
      if (k != 0) Release(shared, previous);
      previous = ring.stage;
    }
    WgmmaWait<0>();
    WgmmaPin(sum);
    Release(shared, previous);

    iket::range epilogue{"epilogue"_ev, index};
    const Tile tile = tiles.At(index);
    StoreRows(shared.c[warp], c_map, (tile.row * kClusterSize + rank) * kTileM + warp * kStoreRows,
              tile.column * kTileN, sum);
  }
  TmaStoreWaitRead<0>();  // shared memory must outlive its readers
}

// A grid of GridSize() CTAs with sizeof(Shared) bytes of dynamic shared memory; k > 0.
extern "C" __global__ void __cluster_dims__(kClusterSize, 1, 1) __launch_bounds__(kThreads, 1)
    GemmWgmma(const __grid_constant__ TensorMaps maps, int m, int n, int k) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  Shared& shared = *reinterpret_cast<Shared*>(shared_bytes);
  // Through a shuffle, so that the compiler knows it to be the same in all lanes.
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      BarrierInit(shared.full[stage], 1);
      BarrierInit(shared.empty[stage], kClusterSize * kConsumerWarps);
    }
    FenceBarrierInit();
    TmaPrefetchMap(maps.a);
    TmaPrefetchMap(maps.b);
    TmaPrefetchMap(maps.c);
  }
  ClusterSync();

  const TileOrder tiles = Tiles(m, n);
  const int cluster = static_cast<int>(blockIdx.x) / kClusterSize;
  const int clusters = static_cast<int>(gridDim.x) / kClusterSize;
  const int k_steps = (k + kTileK - 1) / kTileK;
  if (warp >= kConsumerWarps) {
    GiveRegisters<kProducerRegisters>();
    if (warp == kConsumerWarps) {
      Produce(shared, maps.a, maps.b, tiles, cluster, clusters, k_steps);
    }
  } else {
    TakeRegisters<kConsumerRegisters>();
    Consume(shared, maps.c, tiles, cluster, clusters, k_steps, warp);
  }
  ClusterSync();  // the other CTA may still write to this one's shared memory
}

}  // namespace example::gemm_wgmma
