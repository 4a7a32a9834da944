// SPDX-License-Identifier: Apache-2.0
//
// Ten algorithms of CUB in kernels of their own, each phase in a range, as somebody would mark them
// who looks for where a block's time goes. register_cost.py compiles this with marks and without.
#include <cub/block/block_shuffle.cuh>
#include <cub/cub.cuh>
#include <iket/iket.cuh>

using namespace iket::literals;

namespace {
constexpr int kThreads = 256, kItems = 8;
using Load = cub::BlockLoad<unsigned, kThreads, kItems, cub::BLOCK_LOAD_TRANSPOSE>;
using Store = cub::BlockStore<unsigned, kThreads, kItems, cub::BLOCK_STORE_TRANSPOSE>;

// Loads tiles, gives them to `Work`, stores them, a range around each.
template <typename Algorithm, typename Work>
__device__ __forceinline__ void Tiles(const unsigned* in, unsigned* out, int tiles, Work work) {
  __shared__ union {
    typename Load::TempStorage load;
    typename Algorithm::TempStorage work;
    typename Store::TempStorage store;
  } shared;
  unsigned items[kItems];
  for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
    const size_t first = static_cast<size_t>(tile) * kThreads * kItems;
    {
      iket::range range{"load"_ev, tile};
      Load(shared.load).Load(in + first, items);
      __syncthreads();
    }
    {
      iket::range range{"work"_ev, tile};
      work(shared.work, items);
      __syncthreads();
    }
    {
      iket::range range{"store"_ev, tile};
      Store(shared.store).Store(out + first, items);
      __syncthreads();
    }
  }
}
}  // namespace

#define BLOCK_KERNEL(name, algorithm, ...)                                                         \
  extern "C" __global__ void __launch_bounds__(kThreads)                                           \
      name(const unsigned* in, unsigned* out, int tiles) {                                         \
    using Algorithm = algorithm;                                                                   \
    Tiles<Algorithm>(in, out, tiles, [&](auto& shared, unsigned(&items)[kItems]) { __VA_ARGS__ }); \
  }
#define ALGORITHM(...) __VA_ARGS__

using Reduce = cub::BlockReduce<unsigned, kThreads>;
using Scan = cub::BlockScan<unsigned, kThreads>;
using RadixSort = cub::BlockRadixSort<unsigned, kThreads, kItems>;
using MergeSort = cub::BlockMergeSort<unsigned, kThreads, kItems>;
using Histogram = cub::BlockHistogram<unsigned, kThreads, kItems, 256>;
using Exchange = cub::BlockExchange<unsigned, kThreads, kItems>;
using Difference = cub::BlockAdjacentDifference<unsigned, kThreads>;
using Discontinuity = cub::BlockDiscontinuity<unsigned, kThreads>;
using Shuffle = cub::BlockShuffle<unsigned, kThreads>;
using WarpScan = cub::WarpScan<unsigned>;

BLOCK_KERNEL(block_reduce, Reduce, items[0] += Reduce(shared).Sum(items);)
BLOCK_KERNEL(block_scan, Scan, Scan(shared).InclusiveSum(items, items);)
BLOCK_KERNEL(block_radix_sort, RadixSort, RadixSort(shared).Sort(items);)
BLOCK_KERNEL(block_merge_sort, MergeSort,
             MergeSort(shared).Sort(items, [](unsigned a, unsigned b) { return a < b; });)
BLOCK_KERNEL(block_exchange, Exchange, Exchange(shared).StripedToBlocked(items, items);)
BLOCK_KERNEL(block_difference, Difference,
             Difference(shared).SubtractLeft(items, items,
                                             [](unsigned a, unsigned b) { return a - b; });)
BLOCK_KERNEL(block_discontinuity, Discontinuity, unsigned flags[kItems];
             Discontinuity(shared).FlagHeads(flags, items,
                                             [](unsigned a, unsigned b) { return a != b; });
             for (int i = 0; i < kItems; ++i) items[i] += flags[i];)
BLOCK_KERNEL(block_shuffle, Shuffle, Shuffle(shared).Up(items, items);)

extern "C" __global__ void __launch_bounds__(kThreads)
    block_histogram(const unsigned* in, unsigned* out, int tiles) {
  __shared__ unsigned bins[256];
  Tiles<Histogram>(in, out, tiles, [&](auto& shared, unsigned(&items)[kItems]) {
    for (unsigned& item : items) item &= 255;
    Histogram(shared).Histogram(items, bins);
    __syncthreads();
    for (unsigned& item : items) item = bins[item];
  });
}

extern "C" __global__ void __launch_bounds__(kThreads)
    warp_scan(const unsigned* in, unsigned* out, int n) {
  __shared__ typename WarpScan::TempStorage shared[kThreads / 32];
  for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) {
    iket::range range{"scan"_ev, i};
    unsigned item = in[i];
    WarpScan(shared[threadIdx.x / 32]).InclusiveSum(item, item);
    out[i] = item;
  }
}
