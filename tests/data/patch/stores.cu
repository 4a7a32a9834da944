// Stores at the end of a small kernel whose operands fill every register, and no scoreboard says when
// they have been read.
#include <iket/iket.cuh>
using namespace iket::literals;

extern "C" __global__ void stores(const float* in, float* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  iket::mark("loaded"_ev, i);
  const float x = in[3 * i], y = in[3 * i + 1], z = in[3 * i + 2];
  float* const o = out + 9 * i;
  o[0] = __fadd_rz(x, y), o[1] = __fadd_ru(x, y), o[2] = __fadd_rd(x, y);
  o[3] = __fmul_rz(x, y), o[4] = __fmul_ru(x, y), o[5] = __fmul_rd(x, y);
  o[6] = __fmaf_rz(x, y, z), o[7] = __fmaf_ru(x, y, z), o[8] = __fmaf_rd(x, y, z);
}
