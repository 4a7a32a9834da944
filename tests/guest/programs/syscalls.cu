// printf, malloc and free between marks: functions of the driver's, which nobody patches.
#include <cstdio>

#include "shape.cuh"

using namespace iket::literals;

extern "C" __global__ void Run(unsigned* out, unsigned n) {
  iket::range all{"all"_ev};
  unsigned value = Thread();
  for (unsigned k = 0; k < n; ++k) {
    auto* heap = static_cast<unsigned*>(malloc(16));
    if (heap != nullptr) {
      *heap = value + k;
      iket::mark("allocated"_ev, k);
      value = *static_cast<volatile unsigned*>(heap) * 3;
      free(heap);
    }
    if (Thread() == 0) printf("round %u: %u\n", k, value);
    __syncwarp();
    iket::mark("printed"_ev);
  }
  out[Thread()] = value;
}
