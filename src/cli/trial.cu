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

  // More values than one record holds; who speaks for all; one lane after the other.
  const unsigned warp = threadIdx.x / 32;
  iket::mark("tile"_ev("warp"_ev, "wide"_ev, "round"_ev), warp, (1ull << 41) + blockIdx.x, rounds);
  auto both = iket::start("both"_ev("cta"_ev, "warp"_ev), (1ull << 42) + blockIdx.x, warp);
  iket::end(both, (1ull << 43) + blockIdx.x, warp + 1);
  const iket::group all{"all"_ev, threadIdx.x == 0};
  iket::mark(all, "spoken"_ev, blockIdx.x);
  if (warp == 1) iket::mark_each_lane("each"_ev, sum);
}
