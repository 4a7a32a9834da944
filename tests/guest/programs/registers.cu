// A kernel that has all 255 registers and spills.
#include "shape.cuh"

using namespace iket::literals;

extern "C" __global__ void __launch_bounds__(128) Run(unsigned* out, unsigned n) {
  constexpr unsigned kLive = 280;
  unsigned values[kLive];
#pragma unroll
  for (unsigned i = 0; i < kLive; ++i) values[i] = Opaque(Thread() * i);
  for (unsigned k = 0; k < n; ++k) {
    iket::range round{"round"_ev, k};
#pragma unroll
    for (unsigned i = 0; i < kLive; ++i)
      values[i] = Opaque(values[i] * 1664525u + values[(i + 1) % kLive]);
    iket::mark("first"_ev, values[0]);
  }
  unsigned sum = 0;
#pragma unroll
  for (unsigned i = 0; i < kLive; ++i) sum += values[i];
  out[Thread()] = sum;
}
