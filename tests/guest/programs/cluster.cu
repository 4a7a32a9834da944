// A kernel of clusters: each CTA reads its neighbour's shared memory.
#include <cooperative_groups.h>

#include "shape.cuh"

using namespace iket::literals;

extern "C" __global__ void __cluster_dims__(2) Run(unsigned* out, unsigned n) {
  __shared__ unsigned values[256];
  const auto cluster = cooperative_groups::this_cluster();
  unsigned value = Thread();
  for (unsigned k = 0; k < n; ++k) {
    iket::range round{"round"_ev, k};
    values[threadIdx.x] = value;
    cluster.sync();
    value = value * 3 + cluster.map_shared_rank(values, cluster.block_rank() ^ 1)[threadIdx.x];
    cluster.sync();
  }
  out[Thread()] = value;
}
