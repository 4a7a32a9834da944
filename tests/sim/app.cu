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

// Five times 3,000 marks of each of four warps, each time when the host says so.
extern "C" __global__ void Paced(int* out) {
  for (int batch = 0; batch < 5; ++batch) {
    while (*const_cast<volatile int*>(out) <= batch) {
    }
    __syncwarp();
    for (int i = 0; i < 3000; ++i) iket::mark("i"_ev, 3000 * batch + i);
  }
}

// Far more marks than a ring holds: 100,000 of each of four warps, numbered.
extern "C" __global__ void Many(int* out) {
  for (int i = 0; i < 100000; ++i) iket::mark("i"_ev, i);
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
