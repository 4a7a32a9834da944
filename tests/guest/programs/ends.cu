// Warps that end in a device function of another object. Events: one a warp, and another one of
// every second.
#include "ends.h"
#include "shape.cuh"

using namespace iket::literals;

extern "C" __global__ void Run(unsigned* out, unsigned n) {
  iket::mark("before"_ev);
  const unsigned value = EndOddWarps(n);
  iket::mark("after"_ev);
  out[Thread()] = value;
}
