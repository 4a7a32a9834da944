// Marks whose places codegen_test.py looks up: each name stands on its own line, once.
#include <iket/iket.cuh>

using namespace iket::literals;

template <typename Name>
__device__ __forceinline__ void Wrapper(Name name, int k) {
  iket::mark(name, k);  // stands nowhere: its callers do
}

__device__ __forceinline__ void Inlined(float* out, int k) {
  iket::mark("inlined"_ev, k);
  out[k] *= 2.0f;
}

__device__ __noinline__ void Separate(float* out) {
  iket::mark("separate"_ev);
  out[7] += 1.0f;
}

extern "C" __global__ void Places(float* out, int n) {
  iket::mark("begun"_ev);
  for (int k = 0; k < n; ++k) {
    iket::range tile{"tile"_ev, k};
    out[k] += 1.0f;
    Inlined(out, k);
    Wrapper("first"_ev, k);
    out[k + n] = out[k] + 3.0f;
    Wrapper("second"_ev, k + 1);
  }
  iket::push("pushed"_ev);
  Separate(out);
  iket::pop();
  auto token = iket::start("token"_ev, n);
  out[0] = 1.0f;
  iket::end(token, n);
}

extern "C" __global__ void Again(float* out) {
  Inlined(out, 3);
  Separate(out + 1);
}
