// SPDX-License-Identifier: Apache-2.0
//
// y += a * x with the marks of a first try: one of each kind.
#pragma once

#include <iket/iket.cuh>

extern "C" __global__ void Saxpy(int n, float a, const float* x, float* y) {
  using namespace iket::literals;
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  const int first = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  iket::mark("first element"_ev, first);  // a point in time, with a value
  for (int i = first; i < n; i += stride) {
    iket::range step{"step"_ev, i};  // to the end of this scope
    iket::push("load"_ev);           // to the next pop()
    const float xi = x[i], yi = y[i];
    iket::pop();
    y[i] = a * xi + yi;  // waits for the loads: their latency is here, not in "load"
    if (n - i <= stride) iket::mark("last"_ev, xi);
  }
}
