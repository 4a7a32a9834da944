// Marks wherever code can stand: templates, lambdas, inline and separate functions, recursion,
// switches, loops that are unrolled and pipelined. architectures_test.py patches what becomes of
// them.
#include <iket/iket.cuh>

using namespace iket::literals;

namespace {

template <typename T, int Count>
__device__ T Sum(const T* in) {
  iket::range r{"sum"_ev, Count};
  T sum = 0;
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    sum += in[i];
    if (i % 4 == 3) iket::mark("quarter"_ev, sum);
  }
  return sum;
}

__device__ __noinline__ float Separate(float x, int depth) {
  iket::mark("depth"_ev, depth);
  if (depth > 0) return Separate(x * 0.5f, depth - 1) + 1.0f;
  return x;
}

__device__ __forceinline__ void Where(int lane) {
  switch (lane & 7) {
    case 0:
      iket::mark("zero"_ev);
      break;
    case 1:
      iket::mark("one"_ev, lane);
      break;
    case 2:
      iket::mark("two"_ev, 2.0 * lane);
      break;
    case 3:
      iket::mark("three"_ev, &lane);
      break;
    default:
      iket::mark("more"_ev, static_cast<long long>(lane));
      break;
  }
}

}  // namespace

extern "C" __global__ void Templates(float* out, const float* in, double* wide) {
  out[threadIdx.x] = Sum<float, 16>(in + threadIdx.x);
  wide[threadIdx.x] = Sum<double, 3>(wide + 32);
}

extern "C" __global__ void Lambdas(float* out, int n) {
  const auto each = [&](auto&& body) {
    for (int i = 0; i < n; ++i) {
      iket::range r{"each"_ev, i};
      body(i);
    }
  };
  each([&](int i) { out[i] += 1.0f; });
  each([&](int i) {
    iket::mark("body"_ev);
    out[i] *= 2.0f;
  });
}

extern "C" __global__ void Functions(float* out, int n) {
  Where(threadIdx.x);
  out[threadIdx.x] = Separate(out[threadIdx.x], n);
}

extern "C" __global__ void Tokens(float* out, const float* in, int n) {
  __shared__ float stage[2][64];
  auto load = iket::sentinel<int>("load"_ev);
  for (int k = 0; k < n; ++k) {
    load = iket::start("load"_ev, k);
    stage[k & 1][threadIdx.x] = in[k * 64 + threadIdx.x];
    iket::flow_out("stage"_ev, k);
    __syncthreads();
    iket::end(load, k + 1);
    iket::flow_in("stage"_ev, k);
    auto use = iket::start("use"_ev);
    out[threadIdx.x] += stage[k & 1][63 - threadIdx.x];
    iket::end(use);
  }
}

// Many registers, and a bound that leaves few.
extern "C" __global__ void __launch_bounds__(1024, 2) Pressed(float4* data, int n) {
  for (int k = threadIdx.x; k < n; k += blockDim.x) {
    iket::range r{"round"_ev, k};
    float4 a = data[k], b = data[k + n], c = data[k + 2 * n];
    a.x = a.x * b.x + c.x, a.y = a.y * b.y + c.y, a.z = a.z * b.z + c.z, a.w = a.w * b.w + c.w;
    if (a.x > 0) iket::mark("positive"_ev, a.x);
    data[k] = a;
  }
}
