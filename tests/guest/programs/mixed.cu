// Two kernels that call one function of another object. The one of mixed_unoptimised.cu cannot be
// patched, so that function must not be either: its marks are lost, those in here are not.
#include "mixed.h"
#include "shape.cuh"

using namespace iket::literals;

extern "C" __global__ void Run(unsigned* out, unsigned n) {
  unsigned value = Thread();
  for (unsigned k = 0; k < n; ++k) {
    iket::mark("own"_ev, k);
    value = Shared(value) + Alone(value);
  }
  out[Thread()] = value;
}
