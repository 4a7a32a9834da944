// Built with -Xptxas -O0, whose marks the patcher refuses.
#include "mixed.h"
#include "shape.cuh"

using namespace iket::literals;

extern "C" __global__ void Unoptimised(unsigned* out, unsigned n) {
  iket::mark("unoptimised"_ev, n);
  out[Thread()] = Shared(n);
}

// nvlink leaves out kernels that no host code names.
const void* named_unoptimised = reinterpret_cast<const void*>(&Unoptimised);
