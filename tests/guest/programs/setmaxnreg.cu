// A warp-specialised kernel: the first warpgroup gives registers away, the others take them.
// sm_90a.
#include "shape.cuh"

using namespace iket::literals;

extern "C" __global__ void __launch_bounds__(384, 1) Run(unsigned* out, unsigned n) {
  __shared__ unsigned stage[384];
  iket::mark("start"_ev);
  const unsigned group = threadIdx.x / 128;
  unsigned value = Thread();
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    for (unsigned k = 0; k < n; ++k) {
      iket::range produce{"produce"_ev, k};
      value = Opaque(value * 3 + k);
    }
    stage[threadIdx.x] = value;
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    unsigned values[180];
#pragma unroll
    for (unsigned i = 0; i < 180; ++i) values[i] = Opaque(value + i);
    for (unsigned k = 0; k < n; ++k) {
      iket::range consume{"consume"_ev, k};
#pragma unroll
      for (unsigned i = 0; i < 180; ++i) values[i] = Opaque(values[i] * 5 + values[(i + 7) % 180]);
    }
#pragma unroll
    for (unsigned i = 0; i < 180; ++i) value += values[i];
    stage[threadIdx.x] = value;
    iket::mark("consumed"_ev, value);
  }
  __syncthreads();
  out[Thread()] = stage[(threadIdx.x + 128) % 384];
}
