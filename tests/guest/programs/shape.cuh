// What every shape of device code here shares: the kernel's signature and the <<<>>> program around
// it.
//
// A shape is one file (or two, linked) that defines
//
//   extern "C" __global__ void Run(unsigned* out, unsigned n)
//
// which writes out[i] for each thread i of its grid. It becomes a program NAME with main() from
// here, and NAME.cubin, which shape_driver.cpp runs over the driver API. Both take `GRID BLOCK N`
// and print one line that depends on every word of the result and on nothing else.
#pragma once

#include <iket/iket.cuh>

extern "C" __global__ void Run(unsigned* out, unsigned n);

__device__ inline unsigned Thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

// Changes the value in a way that no compiler sees through.
__device__ __forceinline__ unsigned Opaque(unsigned value) {
  asm volatile("" : "+r"(value));
  return value;
}

#if defined(SHAPE_PROGRAM)
#include <cstdio>

#include "shape_main.h"

#ifndef SHAPE_COOPERATIVE
#define SHAPE_COOPERATIVE 0
#endif

namespace {

bool Good(cudaError_t error, const char* call) {
  if (error != cudaSuccess) std::printf("%s: %s\n", call, cudaGetErrorName(error));
  return error == cudaSuccess;
}
#define GOOD(call) Good(call, #call)

}  // namespace

int main(int argc, char** argv) {
  const shape::Arguments a = shape::Parse(argc, argv, 1);
  std::vector<unsigned> result(a.threads());
  unsigned* out = nullptr;
  if (!GOOD(cudaMalloc(&out, a.bytes())) || !GOOD(cudaMemset(out, 0, a.bytes()))) return 1;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(a.grid);
  config.blockDim = dim3(a.block);
  config.attrs = &attribute;
  config.numAttrs = SHAPE_COOPERATIVE;
  const bool ran = GOOD(cudaLaunchKernelEx(&config, Run, out, a.n)) &&
                   GOOD(cudaDeviceSynchronize()) &&
                   GOOD(cudaMemcpy(result.data(), out, a.bytes(), cudaMemcpyDeviceToHost));
  if (!ran) return 1;
  shape::Print(result);
  return 0;
}
#endif
