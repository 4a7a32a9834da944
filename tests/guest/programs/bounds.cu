// Attributes that bound registers and shape: __launch_bounds__ with blocks an SM, and __maxnreg__.
#include "shape.cuh"

using namespace iket::literals;

extern "C" __device__ __noinline__ unsigned Extern(unsigned x) {
  iket::mark("extern"_ev, x);
  return x * 11;
}

#if SHAPE_MAXNREG
#define BOUNDS __maxnreg__(32)
#else
#define BOUNDS __launch_bounds__(64, 16)
#endif

extern "C" __global__ void BOUNDS Run(unsigned* out, unsigned n) {
  unsigned value = Thread();
  for (unsigned k = 0; k < n; ++k) {
    iket::range round{"round"_ev};
    value = Extern(value + k);
  }
  out[Thread()] = value;
}
