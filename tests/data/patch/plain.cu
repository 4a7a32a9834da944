// Marks without payload, and a kernel that has none.
#include <iket/iket.cuh>
using namespace iket::literals;

extern "C" __global__ void plain(float* data, float factor) {
  iket::range all("plain: all"_ev);
  iket::mark("loaded"_ev);
  data[blockIdx.x * blockDim.x + threadIdx.x] *= factor;
}

extern "C" __global__ void unmarked(float* data) { data[threadIdx.x] += 1; }
