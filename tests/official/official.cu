// SPDX-License-Identifier: Apache-2.0
//
// Every kind of mark that NVIDIA's IKET has, once with its id at both ends of a warp's life, and a
// known number of times: official_check.py looks for them in the trace, whoever collected it.
//
//   official             launches Forms<<<2, 64>>> with n = 3
//
// Built as `official` and `official_extended` with IKET_COMPAT=official (30 names, and more than
// 30), for run-iket and for `iket profile`; and as official.cubin without it, for the software
// device, where hello launches it.
#include <iket/iket.cuh>

#include "common/gpu_runtime.h"

using namespace iket::literals;

#if defined(IKET_COMPAT_EXTENDED)
// Names that take the module beyond 30.
template <int... I>
__device__ void More() {
  (iket::mark(iket::event_name<iket::detail::literal<8>{
                  {'m', 'o', 'r', 'e', ' ', '0' + I / 10, '0' + I % 10, 0}}>{},
              I),
   ...);
}
#endif

extern "C" __global__ void Forms(float* data, int n) {
  const auto life = iket::start("life"_ev);
  iket::mark("plain"_ev);
  iket::mark("i8"_ev, static_cast<signed char>(-8 * n));
  iket::mark("u8"_ev, static_cast<unsigned char>(200 + n));
  iket::mark("i16"_ev, static_cast<short>(-1600 * n));
  iket::mark("u16"_ev, static_cast<unsigned short>(60000 + n));
  iket::mark("i32"_ev, -n);
  iket::mark("u32"_ev, 4000000000u + n);
  iket::mark("i64"_ev, -0x100000001LL * n);
  iket::mark("u64"_ev, 0x8000000000000001ull + n);
  iket::mark("f32"_ev, -0.25f * n);
  iket::mark("f64"_ev, 6.5 * n);
  iket::mark("pointer"_ev, data);
#if defined(IKET_COMPAT_EXTENDED)
  More<1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20>();
#endif
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  auto span = iket::sentinel("span"_ev);
  iket::push("outer"_ev, n);
  for (int k = 0; k < n; ++k) {
    iket::end(span);  // the first time of no range
    span = iket::start("span"_ev);
    const auto tile = iket::start("tile"_ev, k);
    iket::range r{"mma"_ev | iket::colour<0x4477aa>(), k};
    data[i] = data[i] * 0.5f + 1.0f;
    iket::mark(iket::only_if(k % 2 == 0), "even k"_ev, k);
    iket::end(tile, k + 10);
  }
  iket::end(span);
  iket::pop();
  if (threadIdx.x % 2 == 1) {
    iket::mark("odd lane"_ev, threadIdx.x);
    data[i] += 1.0f;
  } else {
    iket::mark("even lane"_ev, threadIdx.x);
    data[i] += 2.0f;
  }
  iket::end(life);
}

int main() {
  constexpr int kCtas = 2, kThreads = 64, kN = 3;
  const example::Array<float> data(std::vector<float>(kCtas * kThreads));
  Forms<<<kCtas, kThreads>>>(data.data(), kN);
  EXAMPLE_CHECK(cudaGetLastError());
  EXAMPLE_CHECK(cudaDeviceSynchronize());
  const std::vector<float> result = data.ToHost();
  for (size_t i = 0; i < result.size(); ++i) {
    const float expected = i % 2 == 1 ? 2.75f : 3.75f;
    if (result[i] == expected) continue;
    std::fprintf(stderr, "official: data[%zu] is %g and not %g\n", i, result[i], expected);
    return 1;
  }
  std::printf("official: 4 warps, results as expected\n");
  return 0;
}
