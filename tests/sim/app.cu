// The kernels that app.cpp runs.
#include <iket/iket.cuh>

using iket::literals::operator""_ev;

extern "C" __global__ void Work(int* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  iket::mark("worked"_ev, i);
  out[i] = i;
}

// Each thread marks, counts itself in out[0], and does not end.
extern "C" __global__ void Endless(int* out) {
  iket::mark("begun"_ev);
  atomicAdd_system(out, 1);
  while (*const_cast<volatile int*>(out) >= 0) {
  }
}
