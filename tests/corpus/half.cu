// SPDX-License-Identifier: Apache-2.0
//
// Packed half precision and bfloat16.
#include "corpus.cuh"

CORPUS_KERNEL(f16_arithmetic, 5)
const __half2 x = H2(a), y = H2(b), z = H2(c);
o[0] = U(__hadd2(x, y)), o[1] = U(__hmul2(x, y)), o[2] = U(__hfma2(x, y, z));
o[3] = U(__hsub2(x, z)), o[4] = U(__hneg2(__habs2(x)));
CORPUS_END

CORPUS_KERNEL(f16_saturate, 3)
const __half2 x = H2(a), y = H2(b), z = H2(c);
o[0] = U(__hadd2_sat(x, y)), o[1] = U(__hmul2_sat(x, y)), o[2] = U(__hfma2_sat(x, y, z));
CORPUS_END

CORPUS_KERNEL(f16_min_max, 4)
const __half2 x = H2(a), y = H2(b);
o[0] = U(__hmin2(x, y)), o[1] = U(__hmax2(x, y)), o[2] = U(__hmin2_nan(x, y)),
                         o[3] = U(__hmax2_nan(x, y));
CORPUS_END

CORPUS_KERNEL(f16_compare, 3)
const __half2 x = H2(a), y = H2(b);
o[0] = U(__hlt2(x, y)), o[1] = U(__hge2(x, y));
o[2] = (__hbeq2(x, y) ? 1u : 0u) | (__hlt(__low2half(x), __high2half(y)) ? 2u : 0u) |
       (__hisnan(__low2half(x)) ? 4u : 0u);
CORPUS_END

CORPUS_KERNEL(f16_convert, 8)
const __half2 x = H2(a);
o[0] = U(__low2float(x)), o[1] = U(__high2float(x)), o[2] = U(__floats2half2_rn(F(b), F(c)));
o[3] = U(__half2half2(__float2half_rz(F(b)))),
    o[4] = static_cast<uint32_t>(__half2int_rn(__low2half(x)));
o[5] = __half2uint_rz(__high2half(x)), o[6] = U(__half2half2(__int2half_rn(static_cast<int>(d))));
o[7] = U(__half2half2(__float2half_rn(F(d))));
CORPUS_END

CORPUS_KERNEL(f16_pack, 4)
const __half2 x = H2(a), y = H2(b);
o[0] = U(__lows2half2(x, y)), o[1] = U(__highs2half2(x, y)), o[2] = U(__lowhigh2highlow(x));
o[3] = U(__hmul2(__low2half2(x), __high2half2(y)));
CORPUS_END

CORPUS_KERNEL(bf16_arithmetic, 5)
const __nv_bfloat162 x = B2(a), y = B2(b), z = B2(c);
o[0] = U(__hadd2(x, y)), o[1] = U(__hmul2(x, y)), o[2] = U(__hfma2(x, y, z)),
                         o[3] = U(__hsub2(x, y));
o[4] = U(__hmin2(x, y));
CORPUS_END

CORPUS_KERNEL(bf16_convert, 5)
const __nv_bfloat162 x = B2(a);
o[0] = U(__low2float(x)), o[1] = U(__high2float(x)), o[2] = U(__floats2bfloat162_rn(F(b), F(c)));
o[3] = U(__bfloat162bfloat162(__float2bfloat16_rz(F(d))));
o[4] = static_cast<uint32_t>(__bfloat162int_rz(__low2bfloat16(x)));
CORPUS_END

CORPUS_KERNEL(bf16_compare, 2)
const __nv_bfloat162 x = B2(a), y = B2(b);
o[0] = U(__hgt2(x, y)), o[1] = (__hbne2(x, y) ? 1u : 0u) | (__hbgt2(x, y) ? 2u : 0u);
CORPUS_END

CORPUS_KERNEL(f16_sum, 1)
__half2 sum = H2(a);
for (int k = 0; k < 32; ++k) sum = __hfma2(sum, H2(b), H2(c));
o[0] = U(sum);
CORPUS_END

CORPUS_KERNEL(f16_approximate, 2)
uint32_t tangent, exponential;
asm("tanh.approx.f16x2 %0, %1;" : "=r"(tangent) : "r"(a));
asm("ex2.approx.f16x2 %0, %1;" : "=r"(exponential) : "r"(b));
o[0] = tangent, o[1] = exponential;
CORPUS_END
