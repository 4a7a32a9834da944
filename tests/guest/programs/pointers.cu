// Function pointers and virtual functions. Events: two a round.
#include "shape.cuh"

using namespace iket::literals;

namespace {

struct Step {
  __device__ virtual unsigned Do(unsigned x) const = 0;
};
struct Add final : Step {
  __device__ unsigned Do(unsigned x) const override {
    iket::mark("add"_ev, x);
    return x + 3;
  }
};
struct Multiply final : Step {
  __device__ unsigned Do(unsigned x) const override {
    iket::mark("multiply"_ev);
    return x * 5;
  }
};

using Function = unsigned (*)(unsigned);
__device__ __noinline__ unsigned Left(unsigned x) {
  iket::mark("left"_ev);
  return x << 1 | x >> 31;
}
__device__ __noinline__ unsigned Right(unsigned x) {
  iket::mark("right"_ev, x);
  return x >> 1 | x << 31;
}
__device__ Function kFunctions[] = {Left, Right};

}  // namespace

extern "C" __global__ void Run(unsigned* out, unsigned n) {
  const Add add;
  const Multiply multiply;
  unsigned value = Thread();
  for (unsigned k = 0; k < n; ++k) {
    const Step* step = &add;
    if (Opaque(k) % 2 != 0) step = &multiply;
    value = step->Do(kFunctions[(k / 2) % 2](value));
  }
  out[Thread()] = value;
}
