// SPDX-License-Identifier: Apache-2.0
//
// Single and double precision, and conversions.
#include "corpus.cuh"

CORPUS_KERNEL(f32_arithmetic, 6)
const float x = F(a), y = F(b), z = F(c);
o[0] = U(__fadd_rn(x, y)), o[1] = U(__fmul_rn(x, y)), o[2] = U(__fmaf_rn(x, y, z));
o[3] = U(__fsub_rn(x, z)), o[4] = U(fmaf(-x, y, -z)), o[5] = U(fabsf(x) * -y);
CORPUS_END

CORPUS_KERNEL(f32_rounding, 9)
const float x = F(a), y = F(b), z = F(c);
o[0] = U(__fadd_rz(x, y)), o[1] = U(__fadd_ru(x, y)), o[2] = U(__fadd_rd(x, y));
o[3] = U(__fmul_rz(x, y)), o[4] = U(__fmul_ru(x, y)), o[5] = U(__fmul_rd(x, y));
o[6] = U(__fmaf_rz(x, y, z)), o[7] = U(__fmaf_ru(x, y, z)), o[8] = U(__fmaf_rd(x, y, z));
CORPUS_END

CORPUS_KERNEL(f32_flush, 4)
float sum, product, fused, saturated;
asm("add.ftz.f32 %0, %1, %2;" : "=f"(sum) : "f"(F(a)), "f"(F(b)));
asm("mul.ftz.f32 %0, %1, %2;" : "=f"(product) : "f"(F(a)), "f"(F(c)));
asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(fused) : "f"(F(a)), "f"(F(b)), "f"(F(c)));
asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(saturated) : "f"(F(b)), "f"(F(c)), "f"(F(d)));
o[0] = U(sum), o[1] = U(product), o[2] = U(fused), o[3] = U(saturated);
CORPUS_END

CORPUS_KERNEL(f32_min_max, 6)
const float x = F(a), y = F(b);
o[0] = U(fminf(x, y)), o[1] = U(fmaxf(x, y)), o[2] = U(fminf(fmaxf(x, F(c)), F(d)));
float nan_low, nan_high;
asm("min.NaN.f32 %0, %1, %2;" : "=f"(nan_low) : "f"(x), "f"(y));
asm("max.NaN.f32 %0, %1, %2;" : "=f"(nan_high) : "f"(x), "f"(y));
o[3] = U(nan_low), o[4] = U(nan_high), o[5] = U(copysignf(x, y));
CORPUS_END

CORPUS_KERNEL(f32_compare, 2)
const float x = F(a), y = F(b);
uint32_t bits = 0;
bits |= x < y ? 1u : 0u, bits |= x <= y ? 2u : 0u, bits |= x == y ? 4u : 0u,
    bits |= x != y ? 8u : 0u;
bits |= !(x < y) ? 16u : 0u, bits |= !(x >= y) ? 32u : 0u, bits |= isnan(x) ? 64u : 0u;
bits |= isinf(y) ? 128u : 0u, bits |= signbit(x) ? 256u : 0u, bits |= isfinite(x * y) ? 512u : 0u;
o[0] = bits, o[1] = x < y && F(c) > F(d) ? a : b;
CORPUS_END

CORPUS_KERNEL(f32_to_int, 8)
const float x = F(a), y = F(b);
o[0] = static_cast<uint32_t>(__float2int_rn(x)), o[1] = static_cast<uint32_t>(__float2int_rz(x));
o[2] = static_cast<uint32_t>(__float2int_ru(y)), o[3] = static_cast<uint32_t>(__float2int_rd(y));
o[4] = __float2uint_rn(x), o[5] = __float2uint_rz(y);
const auto wide = static_cast<uint64_t>(__float2ll_rn(x));
o[6] = Lo(wide), o[7] = Hi(wide);
CORPUS_END

CORPUS_KERNEL(f32_from_int, 8)
o[0] = U(__int2float_rn(static_cast<int>(a))), o[1] = U(__int2float_rz(static_cast<int>(b)));
o[2] = U(__uint2float_rn(c)), o[3] = U(__uint2float_ru(d));
o[4] = U(static_cast<float>(static_cast<int8_t>(a))),
    o[5] = U(static_cast<float>(static_cast<uint16_t>(b)));
o[6] = U(__ll2float_rn(static_cast<long long>(Join(a, b)))), o[7] = U(__ull2float_rd(Join(c, d)));
CORPUS_END

CORPUS_KERNEL(f32_round, 6)
const float x = F(a), y = F(b);
o[0] = U(floorf(x)), o[1] = U(ceilf(x)), o[2] = U(truncf(y)), o[3] = U(rintf(y)),
                     o[4] = U(roundf(x));
o[5] = U(x - floorf(x));
CORPUS_END

CORPUS_KERNEL(f32_divide, 4)
const float x = F(a), y = F(b);
o[0] = U(__fdiv_rn(x, y)), o[1] = U(__fsqrt_rn(fabsf(x))), o[2] = U(__frcp_rn(y)), o[3] = U(x / y);
CORPUS_END

CORPUS_KERNEL(f32_polynomial, 2)
float sum = 0, x = F(a);
for (int k = 0; k < 24; ++k) sum = fmaf(sum, x, F(b) + static_cast<float>(k));
o[0] = U(sum), o[1] = U(fmaf(sum, F(c), F(d)));
CORPUS_END

CORPUS_KERNEL(f32_approximate, 8)
const float x = F(a), y = fabsf(F(b));
float sine, cosine, exponential, logarithm, reciprocal, root, reciprocal_root, tangent;
asm("sin.approx.f32 %0, %1;" : "=f"(sine) : "f"(x));
asm("cos.approx.f32 %0, %1;" : "=f"(cosine) : "f"(x));
asm("ex2.approx.f32 %0, %1;" : "=f"(exponential) : "f"(x));
asm("lg2.approx.f32 %0, %1;" : "=f"(logarithm) : "f"(y));
asm("rcp.approx.f32 %0, %1;" : "=f"(reciprocal) : "f"(x));
asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(y));
asm("rsqrt.approx.f32 %0, %1;" : "=f"(reciprocal_root) : "f"(y));
asm("tanh.approx.f32 %0, %1;" : "=f"(tangent) : "f"(x));
o[0] = U(sine), o[1] = U(cosine), o[2] = U(exponential), o[3] = U(logarithm);
o[4] = U(reciprocal), o[5] = U(root), o[6] = U(reciprocal_root), o[7] = U(tangent);
CORPUS_END

CORPUS_KERNEL(f64_arithmetic, 10)
const double x = D(a, b), y = D(c, d);
Put(o, x + y), Put(o + 2, x* y), Put(o + 4, fma(x, y, x)), Put(o + 6, x - y), Put(o + 8, -x* y);
CORPUS_END

CORPUS_KERNEL(f64_rounding, 8)
const double x = D(a, b), y = D(c, d);
Put(o, __dadd_rz(x, y)), Put(o + 2, __dmul_ru(x, y)), Put(o + 4, __fma_rd(x, y, x));
Put(o + 6, __dadd_rd(x, y));
CORPUS_END

CORPUS_KERNEL(f64_compare, 4)
const double x = D(a, b), y = D(c, d);
o[0] = (x < y ? 1u : 0u) | (x <= y ? 2u : 0u) | (x == y ? 4u : 0u) | (x != y ? 8u : 0u) |
       (isnan(x) ? 16u : 0u) | (isinf(y) ? 32u : 0u);
o[1] = x > y ? a : b;
Put(o + 2, fmin(x, y));
CORPUS_END

CORPUS_KERNEL(f64_convert, 10)
const double x = D(a, b);
o[0] = static_cast<uint32_t>(__double2int_rn(x)), o[1] = __double2uint_rz(x);
const auto wide = static_cast<uint64_t>(__double2ll_rd(x));
o[2] = Lo(wide), o[3] = Hi(wide), o[4] = U(__double2float_rn(x)), o[5] = U(__double2float_rz(x));
Put(o + 6, __ll2double_rn(static_cast<long long>(Join(c, d)))),
    Put(o + 8, static_cast<double>(F(c)));
CORPUS_END

CORPUS_KERNEL(f64_divide, 4)
const double x = D(a, b), y = D(c, d);
Put(o, x / y), Put(o + 2, sqrt(fabs(x)));
CORPUS_END

CORPUS_KERNEL(f64_round, 6)
const double x = D(a, b);
Put(o, floor(x)), Put(o + 2, rint(x)), Put(o + 4, trunc(x));
CORPUS_END
