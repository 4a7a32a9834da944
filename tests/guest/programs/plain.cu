// A range with a payload in a loop: what the flags of its build (-lineinfo, -G, -O0 ...) make of
// it.
#include "shape.cuh"

using namespace iket::literals;

extern "C" __global__ void Run(unsigned* out, unsigned n) {
  unsigned value = Thread();
  for (unsigned k = 0; k < n; ++k) {
    iket::range round{"round"_ev, k};
    value = Opaque(value * 1664525u + k);
  }
  out[Thread()] = value;
}
