// An early exit of some warps, a guarded exit of some lanes, and the last one.
#include <iket/iket.cuh>
using namespace iket::literals;

extern "C" __global__ void exits(int* data, int n) {
  iket::mark("begin"_ev);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  iket::mark("inside"_ev, i);
  if (data[i] < 0) {
    iket::mark("negative"_ev);
    atomicAdd(data, 1);
    return;
  }
  iket::mark("positive"_ev);
  data[i] = __popc(data[i]);
}
