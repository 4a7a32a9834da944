// SPDX-License-Identifier: Apache-2.0
//
// The kernel that comes in every container of code: 3 events a warp. With CONTAINER_PROGRAM also
// the <<<>>> program that runs it, as 4 CTAs of 64 threads, and prints what containers.cpp prints.
#include <iket/iket.cuh>

using iket::literals::operator""_ev;

// What a real image is full of; WORK_PADDING such numbers make it large.
#ifdef WORK_PADDING
__device__ unsigned long long work_padding[WORK_PADDING] = {1, 2, 3};
#endif

extern "C" __global__ void Work(unsigned* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  iket::range all("work"_ev);
  unsigned sum = i;
  for (unsigned k = 0; k < 10; ++k) sum = sum * 1664525u + 1013904223u;
#ifdef WORK_PADDING
  sum += static_cast<unsigned>(work_padding[i % 4]) - static_cast<unsigned>(work_padding[i % 4]);
#endif
  iket::mark("sum"_ev, sum);
  out[i] = sum;
}

#ifdef CONTAINER_PROGRAM
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

#include "expected.h"

int main() {
  std::vector<unsigned> values(256);
  unsigned* out = nullptr;
  const size_t bytes = values.size() * sizeof(unsigned);
  cudaMalloc(&out, bytes);
  Work<<<4, 64>>>(out);
  const cudaError_t result = cudaMemcpy(values.data(), out, bytes, cudaMemcpyDeviceToHost);
  if (result != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorName(result));
    return 1;
  }
  return SayValues(values) ? 0 : 1;
}
#endif
