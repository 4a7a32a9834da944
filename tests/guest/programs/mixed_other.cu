#include <iket/iket.cuh>

#include "mixed.h"

using namespace iket::literals;

__device__ unsigned Shared(unsigned x) {
  iket::mark("shared"_ev, x);
  return x * 3 + 1;
}
__device__ unsigned Alone(unsigned x) {
  iket::mark("alone"_ev);
  return x ^ 9;
}
