// Built with -Xptxas=-O0: its mark is refused, and so must be that of Shared, which it calls.
#include <iket/iket.cuh>
using namespace iket::literals;

__device__ float Shared(float x);

extern "C" __global__ void unoptimised(float* data) {
  iket::mark("unoptimised"_ev);
  data[threadIdx.x] = Shared(data[threadIdx.x]);
}
