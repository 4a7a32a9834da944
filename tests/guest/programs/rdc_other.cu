// The other object of rdc.cu. Events: one a call.
#include <iket/iket.cuh>

#include "rdc.h"

using namespace iket::literals;

__device__ unsigned Other(unsigned x) {
  iket::mark("other"_ev, x);
  return x * 3 + 1;
}

__device__ static unsigned Even(unsigned x) {
  iket::mark("even"_ev);
  return x ^ 5;
}
__device__ static unsigned Odd(unsigned x) {
  iket::mark("odd"_ev, x);
  return x + 5;
}
__device__ Step kTable[2] = {Even, Odd};
