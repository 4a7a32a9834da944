// SPDX-License-Identifier: Apache-2.0
//
// Integer arithmetic, logic, shifts and bit fields.
#include "corpus.cuh"

CORPUS_KERNEL(int_add_sub, 4)
o[0] = a + b, o[1] = a - b, o[2] = a + b + c, o[3] = d - a - b;
CORPUS_END

CORPUS_KERNEL(int_mul, 4)
o[0] = a * b, o[1] = a * b + c, o[2] = __umulhi(a, b);
o[3] = static_cast<uint32_t>(__mulhi(static_cast<int>(a), static_cast<int>(b)));
CORPUS_END

CORPUS_KERNEL(int_mul_wide, 4)
const uint64_t u = uint64_t{a} * b + c;
const int64_t s = int64_t{static_cast<int>(a)} * static_cast<int>(b) - static_cast<int>(d);
o[0] = Lo(u), o[1] = Hi(u), o[2] = Lo(static_cast<uint64_t>(s)),
              o[3] = Hi(static_cast<uint64_t>(s));
CORPUS_END

CORPUS_KERNEL(int_mul64, 4)
const uint64_t x = Join(a, b), y = Join(c, d);
const uint64_t low = x * y, high = __umul64hi(x, y);
o[0] = Lo(low), o[1] = Hi(low), o[2] = Lo(high), o[3] = Hi(high);
CORPUS_END

CORPUS_KERNEL(int_add128, 4)
uint32_t r0, r1, r2, r3;
asm("add.cc.u32 %0, %4, %5;\n\taddc.cc.u32 %1, %5, %6;\n\t"
    "addc.cc.u32 %2, %6, %7;\n\taddc.u32 %3, %7, %4;"
    : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
    : "r"(a), "r"(b), "r"(c), "r"(d));
o[0] = r0, o[1] = r1, o[2] = r2, o[3] = r3;
CORPUS_END

CORPUS_KERNEL(int_sub64, 4)
const uint64_t x = Join(a, b) - Join(c, d), y = Join(c, d) - a;
o[0] = Lo(x), o[1] = Hi(x), o[2] = Lo(y), o[3] = Hi(y);
CORPUS_END

CORPUS_KERNEL(int_div_u32, 4)
const uint32_t divisor = b >> (d & 31) | 1;
o[0] = a / divisor, o[1] = a % divisor, o[2] = c / 7, o[3] = c % 1000003;
CORPUS_END

CORPUS_KERNEL(int_div_s32, 4)
const int x = static_cast<int>(a), y = static_cast<int>(b) >> (d & 31) | 1;
o[0] = static_cast<uint32_t>(x / y), o[1] = static_cast<uint32_t>(x % y);
o[2] = static_cast<uint32_t>(static_cast<int>(c) / -9), o[3] = static_cast<uint32_t>(x % 12345);
CORPUS_END

CORPUS_KERNEL(int_div_64, 4)
const uint64_t x = Join(a, b), y = Join(c, d) >> (a & 63) | 1;
const uint64_t q = x / y, r = x % y;
o[0] = Lo(q), o[1] = Hi(q), o[2] = Lo(r), o[3] = Hi(r);
CORPUS_END

CORPUS_KERNEL(int_min_max, 6)
const int x = static_cast<int>(a), y = static_cast<int>(b), z = static_cast<int>(c);
o[0] = min(a, b), o[1] = max(a, b), o[2] = static_cast<uint32_t>(min(x, y));
o[3] = static_cast<uint32_t>(max(min(x, y), z)), o[4] = static_cast<uint32_t>(abs(x));
o[5] = __sad(x, y, d);
CORPUS_END

CORPUS_KERNEL(int_min_max_64, 4)
const auto x = static_cast<int64_t>(Join(a, b)), y = static_cast<int64_t>(Join(c, d));
const auto low = static_cast<uint64_t>(min(x, y)), high = static_cast<uint64_t>(max(x, y));
o[0] = Lo(low), o[1] = Hi(low), o[2] = Lo(high), o[3] = Hi(high);
CORPUS_END

CORPUS_KERNEL(int_shift, 6)
const uint32_t s = d & 63;
uint32_t left, right, arithmetic;
asm("shl.b32 %0, %1, %2;" : "=r"(left) : "r"(a), "r"(s));
asm("shr.u32 %0, %1, %2;" : "=r"(right) : "r"(b), "r"(s));
asm("shr.s32 %0, %1, %2;" : "=r"(arithmetic) : "r"(c), "r"(s));
o[0] = left, o[1] = right, o[2] = arithmetic, o[3] = a << 5, o[4] = b >> 11;
o[5] = static_cast<uint32_t>(static_cast<int>(c) >> 3);
CORPUS_END

CORPUS_KERNEL(int_shift_64, 6)
const uint64_t x = Join(a, b), l = x << (c & 63), r = x >> (d & 63);
const auto s = static_cast<uint64_t>(static_cast<int64_t>(x) >> (c >> 8 & 63));
o[0] = Lo(l), o[1] = Hi(l), o[2] = Lo(r), o[3] = Hi(r), o[4] = Lo(s), o[5] = Hi(s);
CORPUS_END

CORPUS_KERNEL(int_funnel, 4)
o[0] = __funnelshift_l(a, b, c), o[1] = __funnelshift_r(a, b, c);
o[2] = __funnelshift_lc(a, b, d & 63), o[3] = __funnelshift_rc(a, b, d & 63);
CORPUS_END

CORPUS_KERNEL(int_bits, 6)
o[0] = static_cast<uint32_t>(__popc(a)), o[1] = static_cast<uint32_t>(__clz(static_cast<int>(b)));
o[2] = __brev(c), o[3] = static_cast<uint32_t>(__ffs(static_cast<int>(d)));
o[4] = static_cast<uint32_t>(__popcll(Join(a, b)));
o[5] = static_cast<uint32_t>(__clzll(static_cast<long long>(Join(c, d >> (a & 31)))));
CORPUS_END

CORPUS_KERNEL(int_bit_field, 4)
uint32_t u, s, inserted, found;
const uint32_t position = c & 31, length = d & 31;
asm("bfe.u32 %0, %1, %2, %3;" : "=r"(u) : "r"(a), "r"(position), "r"(length));
asm("bfe.s32 %0, %1, %2, %3;" : "=r"(s) : "r"(b), "r"(position), "r"(length));
asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(inserted) : "r"(a), "r"(b), "r"(position), "r"(length));
asm("bfind.s32 %0, %1;" : "=r"(found) : "r"(a >> (d & 31)));
o[0] = u, o[1] = s, o[2] = inserted, o[3] = found;
CORPUS_END

CORPUS_KERNEL(int_permute, 4)
o[0] = __byte_perm(a, b, c), o[1] = __byte_perm(a, b, 0x6420), o[2] = __byte_perm(c, d, 0x0123);
uint32_t forward;
asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(forward) : "r"(a), "r"(b), "r"(d & 3));
o[3] = forward;
CORPUS_END

CORPUS_KERNEL(int_logic, 6)
o[0] = (a & b) | c, o[1] = (a ^ b) & ~c, o[2] = (a & b) | (b & c) | (a & c), o[3] = ~(a | b | c);
o[4] = a ^ b ^ c ^ d, o[5] = (a & ~b) ^ (c | d);
CORPUS_END

CORPUS_KERNEL(int_compare, 4)
const int x = static_cast<int>(a), y = static_cast<int>(b);
o[0] = (a < b ? 1u : 0u) | (a <= b ? 2u : 0u) | (x > y ? 4u : 0u) | (x >= y ? 8u : 0u);
o[1] = a < b && c < d ? a : x > y || c == d ? b : c;
o[2] = Join(a, b) < Join(c, d) ? 7u : 9u;
o[3] = static_cast<int64_t>(Join(a, b)) >= static_cast<int64_t>(Join(c, d)) ? c : d;
CORPUS_END

CORPUS_KERNEL(int_narrow, 6)
o[0] = static_cast<uint32_t>(static_cast<int8_t>(a)),
    o[1] = static_cast<uint32_t>(static_cast<int16_t>(b));
o[2] = static_cast<uint8_t>(c >> 7), o[3] = static_cast<uint16_t>(d >> 9);
uint32_t saturated, sum;
asm("cvt.sat.s8.s32 %0, %1;" : "=r"(saturated) : "r"(a));
asm("add.sat.s32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
o[4] = saturated, o[5] = sum;
CORPUS_END

CORPUS_KERNEL(int_dot, 4)
o[0] = static_cast<uint32_t>(__dp4a(static_cast<int>(a), static_cast<int>(b), static_cast<int>(c)));
o[1] = __dp4a(a, b, d), o[2] = __dp2a_lo(a, b, c), o[3] = __dp2a_hi(a, b, d);
CORPUS_END

CORPUS_KERNEL(int_hash, 2)
uint64_t x = Join(a, b);
for (uint32_t round = 0; round < 16 + (c & 15); ++round) {
  x ^= x >> 30, x *= 0xbf58476d1ce4e5b9u, x ^= x >> 27, x *= 0x94d049bb133111ebu, x ^= x >> 31;
}
o[0] = Lo(x), o[1] = Hi(x);
CORPUS_END
