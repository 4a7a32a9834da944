// A marked device function in a section of its own (-rdc=true), and two kernels that may reach it.
#include <iket/iket.cuh>
using namespace iket::literals;

__device__ __noinline__ float Marked(float x) {
  iket::range r("marked"_ev);
  return x * x + 1;
}

extern "C" __global__ void calls(float* data) {
  iket::mark("calls"_ev);
  data[threadIdx.x] = Marked(data[threadIdx.x]);
}

extern "C" __global__ void calls_unmarked(float* data) { data[threadIdx.x] = Marked(1); }
