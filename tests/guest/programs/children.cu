// Dynamic parallelism: marked kernels that a marked kernel launches. Events: two a warp of the
// parent, and n a block of the parent: one a child.
#include "shape.cuh"

using namespace iket::literals;

extern "C" __global__ void Child(unsigned* out, unsigned k) {
  iket::mark("child"_ev, k);
  atomicAdd(&out[threadIdx.x], k * 7 + 1);
}

extern "C" __global__ void Run(unsigned* out, unsigned n) {
  iket::mark("parent"_ev);
  if (threadIdx.x == 0) {
    for (unsigned k = 0; k < n; ++k) Child<<<1, 32>>>(out + blockIdx.x * blockDim.x, k);
  }
  iket::mark("launched"_ev);
}
