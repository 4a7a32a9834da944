// The kernels that app.cpp runs.
#include <iket/iket.cuh>

using iket::literals::operator""_ev;

extern "C" __global__ void Work(int* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  iket::mark("worked"_ev, i);
  out[i] = i;
}

// One step of a sequence in which each value depends on all before: results tell of any launch that
// was lost, doubled or out of order.
extern "C" __global__ void Step(unsigned* values, unsigned salt) {
  iket::range step{"step"_ev, salt};
  unsigned& value = values[blockIdx.x * blockDim.x + threadIdx.x];
  for (unsigned i = 0; i <= salt % 3; ++i) {
    value = value * 1664525u + salt;
    iket::mark("value"_ev, value);
  }
}

// Ranges of both kinds in each other.
extern "C" __global__ void Nested(int* out) {
  iket::range whole{"whole"_ev};
  int& value = out[blockIdx.x * blockDim.x + threadIdx.x];
  for (int i = 0; i < 4; ++i) {
    iket::push("outer"_ev, i);
    iket::mark("between"_ev);
    iket::push("inner"_ev);
    value += i;
    iket::pop();
    iket::pop();
  }
}

// Ends in a fault, behind a mark.
extern "C" __global__ void Trap(int*) {
  iket::mark("about to trap"_ev);
  __trap();
}

// Each thread marks, counts itself in out[0], and does not end.
extern "C" __global__ void Endless(int* out) {
  iket::mark("begun"_ev);
  atomicAdd_system(out, 1);
  while (*const_cast<volatile int*>(out) >= 0) {
  }
}

// A pipeline that stops: warp 0 loads, warp 1 multiplies and gives back, but for the fourth time.
extern "C" __global__ void Deadlock(int*) {
  __shared__ volatile int full, given_back;
  if (threadIdx.x == 0) {
    full = 0;
    given_back = 0;
  }
  __syncthreads();
  for (int k = 0; k < 8; ++k) {
    iket::range tile{"tile"_ev, k};
    if (threadIdx.x < 32) {
      iket::range load{"load"_ev};
      iket::mark("wait room"_ev, k);
      while (k > given_back) {
      }
      iket::mark("arrive data"_ev, k);
      full = k + 1;
    } else {
      iket::range multiply{"multiply"_ev};
      iket::mark("wait data"_ev, k);
      while (full <= k) {
      }
      if (k != 3) {
        iket::mark("arrive room"_ev, k + 1);
        given_back = given_back + 1;
      }
    }
    __syncwarp();
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
