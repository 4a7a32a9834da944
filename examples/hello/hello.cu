// SPDX-License-Identifier: Apache-2.0
//
// The smallest kernel with marks: hello.cpp launches it over the driver API, which the software
// device runs, too.
#include <iket/iket.cuh>
using namespace iket::literals;

extern "C" __global__ void hello(float* data, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  iket::mark("hello"_ev, i);
  for (int k = 0; k < n; ++k) {
    iket::range r{"step"_ev, k};
    data[i] = data[i] * 2.0f + 1.0f;
  }
}
