// A mark in a function that calls itself. Calls for n: 2 * Fib(n + 1) - 1.
#include "shape.cuh"

using namespace iket::literals;

__device__ __noinline__ unsigned Fib(unsigned n) {
  iket::mark("fib"_ev, n);
  if (n < 2) return n;
  return Fib(n - 1) + Fib(n - 2);
}

extern "C" __global__ void Run(unsigned* out, unsigned n) { out[Thread()] = Fib(n) + Thread(); }
