// Payloads of each type, in a loop and on both sides of a divergent branch; reads blockIdx.y.
#include <iket/iket.cuh>
using namespace iket::literals;

extern "C" __global__ void payloads(float* data, int rounds) {
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < rounds; ++i) {
    iket::range round("round"_ev, i);
    if (threadIdx.x & 1) {
      iket::mark("odd"_ev, sum);
      sum += sinf(data[i + threadIdx.x]);
    } else {
      iket::mark("even"_ev, blockIdx.y);
      sum *= sqrtf(data[i]);
    }
  }
  iket::push("store"_ev, rounds);
  data[threadIdx.x] = sum;
  iket::pop();
}
