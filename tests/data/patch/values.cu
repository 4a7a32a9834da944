#include <iket/iket.cuh>
using namespace iket::literals;
extern "C" __global__ void Values(float* out, int n) {
  const iket::group all{"all"_ev, threadIdx.x == 0};
  iket::dag("d"_ev).edge("tile"_ev, "copy"_ev, iket::label("smem"_ev), iket::via("mbarrier"_ev));
#pragma unroll 1
  for (int i = threadIdx.x; i < n; i += 32) {
    iket::mark("tile"_ev("m"_ev, "n"_ev, "x"_ev), i, 1LL * n, out[i]);
    auto t = iket::start("both"_ev("a"_ev, "b"_ev), 1.0 * i, n);
    iket::range r{
        "copy"_ev | iket::lane("tma"_ev) | iket::category("io"_ev) | iket::colour<0x4477aa>(), i};
    iket::mark(all, "said"_ev);
    if (out[i] > 3.0f) out[i] = 1.0f;
    iket::end(t, 2.0 * i, i);
    iket::sync();
  }
}
