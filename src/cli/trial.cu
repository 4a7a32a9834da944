// The kernel of `iket doctor --trial`: marks of each kind, whose records trial.cpp knows
// beforehand. Built for every generation that is patched.
#include <iket/iket.cuh>

using namespace iket::literals;

extern "C" __global__ void iket_trial(unsigned* out, unsigned rounds) {
  iket::mark("begun"_ev);
  unsigned sum = threadIdx.x;
  for (unsigned k = 0; k < rounds; ++k) {
    iket::range round{"round"_ev, k};
    sum = sum * 1664525u + 1013904223u + k;
    if (threadIdx.x % 2 == 1) iket::mark("odd"_ev, threadIdx.x);
  }
  auto last = iket::start("last"_ev, rounds);
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  iket::end(last, rounds + 1);
  iket::mark("wide"_ev, (1ull << 40) + blockIdx.x);
}
