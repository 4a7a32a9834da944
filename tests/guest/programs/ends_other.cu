#include "ends.h"

__device__ unsigned EndOddWarps(unsigned n) {
  if (threadIdx.x / 32 % 2 != 0) asm volatile("exit;");
  return threadIdx.x * n;
}
