// A cooperative launch: the whole grid meets in every round.
#define SHAPE_COOPERATIVE 1
#include <cooperative_groups.h>

#include "shape.cuh"

using namespace iket::literals;

extern "C" __global__ void Run(unsigned* out, unsigned n) {
  const auto grid = cooperative_groups::this_grid();
  const unsigned threads = gridDim.x * blockDim.x;
  unsigned value = Thread();
  for (unsigned k = 0; k < n; ++k) {
    out[Thread()] = value;
    {
      iket::range wait{"wait"_ev, k};
      grid.sync();
    }
    const unsigned other = *static_cast<volatile unsigned*>(&out[(Thread() + 97) % threads]);
    grid.sync();
    value = value * 3 + other;
  }
  out[Thread()] = value;
}
