// SPDX-License-Identifier: Apache-2.0
//
// The kernel of process.cpp, and process.cpp over the CUDA runtime; compiled to a cubin, the kernel
// of process_driver. Events of a warp: 2 * rounds + 1.
#include <iket/iket.cuh>

using namespace iket::literals;

extern "C" __global__ void Step(unsigned* out, unsigned rounds) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned value = out[i];
  for (unsigned k = 0; k < rounds; ++k) {
    iket::range round{"round"_ev, k};
    value = value * 1664525u + 1013904223u + i;
  }
  iket::mark("value"_ev, value);
  out[i] = value;
}

#define GUEST_RUNTIME 1
#include "process.cpp"  // NOLINT: one program in two forms
