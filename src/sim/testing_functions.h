// testing_functions.h: functions that both a kernel and the host compute: three words in, one out.
// The host's answer is the reference. Where host and device differ by nature (intrinsics), both are
// spelled out.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define BOTH __host__ __device__ inline
#else
#define BOTH inline
#endif

namespace testing_functions {

BOTH float F(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
BOTH uint32_t B(float value) {
  if (value != value) return 0x7fffffffu;
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}
BOTH uint32_t Fold(uint64_t v) { return static_cast<uint32_t>(v ^ v >> 32); }
BOTH uint32_t Fold(double v) {
  if (v != v) return 7;
  uint64_t bits;
  memcpy(&bits, &v, 8);
  return Fold(bits);
}
BOTH double D(uint32_t a, uint32_t b) {  // a number of moderate size
  return static_cast<double>(static_cast<int32_t>(a)) / (1.0 + (b & 0xffff));
}
// A float of moderate size, never denormal.
BOTH float M(uint32_t a) { return static_cast<float>(static_cast<int32_t>(a)) * (1.0f / 4096); }

constexpr int kFunctions = 40;

BOTH uint32_t Apply(int which, uint32_t a, uint32_t b, uint32_t c) {
  const auto sa = static_cast<int32_t>(a), sb = static_cast<int32_t>(b);
  const uint64_t wide = uint64_t{a} << 32 | b;
  const auto swide = static_cast<int64_t>(wide);
  switch (which) {
    case 0:
      return a + b - c;
    case 1:
      return a * b + c;
    case 2:
      return (a & b) | (c ^ 0x1234567);
    case 3:
      return a << (b & 31) | c >> (a & 31);
    case 4:
      return static_cast<uint32_t>(sa >> (c & 31));
    case 5:
      return sa < sb ? a : c;
    case 6:
      return a < b ? b : a;
    case 7:
      return b == 0 ? c : a / b + a % b;
    case 8:
      return b == 0 || (sa == INT32_MIN && sb == -1) ? c : static_cast<uint32_t>(sa / sb - sa % sb);
    case 9:
      return Fold(wide * c + a);
    case 10:
      return Fold(wide >> (c & 63)) ^ Fold(wide << (c & 63));
    case 11:
      return Fold(static_cast<uint64_t>(swide >> (c & 63)));
    case 12:
      return c == 0 ? a : Fold(wide / c) + Fold(wide % c);
    case 13:
      return swide < static_cast<int64_t>(uint64_t{c} << 32 | a) ? 1 : 0;
    case 14:
      return wide <= (uint64_t{b} << 32 | c) ? a : b;
    case 15:
      return Fold(static_cast<uint64_t>(static_cast<int64_t>(sa) * sb));
    case 16:
      return static_cast<uint32_t>((uint64_t{a} * b) >> 32) + c;
    case 17:
      return static_cast<uint32_t>(static_cast<int8_t>(a)) + (b & 0xffff) +
             static_cast<uint32_t>(static_cast<int16_t>(c));
    case 18:
      return sa < 0 ? 0u - a : a;
    case 19:
      return (a & 1 ? b : c) + (b & 2 ? c : a) + (c & 4 ? a : b);
    case 20:
      return B(M(a) + M(b));
    case 21:
      return B(M(a) * M(b));
    case 22:
      return B(fmaf(M(a), M(b), M(c)));
    case 23:
      return B(M(b) == 0 ? 1.0f : M(a) / M(b));
    case 24:
      return B(sqrtf(fabsf(M(a))));
    case 25:
      return (M(a) < M(b) ? 1u : 0u) | (M(b) >= M(c) ? 2u : 0u) | (M(a) != M(c) ? 4u : 0u);
    case 26:
      return B(fminf(M(a), M(b)) - fmaxf(M(b), M(c)));
    case 27:
      return static_cast<uint32_t>(static_cast<int32_t>(M(a)));
    case 28:
      return static_cast<uint32_t>(fabsf(M(a)));
    case 29:
      return B(static_cast<float>(a)) ^ B(static_cast<float>(sb));
    case 30:
      return B(floorf(M(a)) + ceilf(M(b)) + truncf(M(c)) + rintf(M(a)));
    case 31:
      return Fold(D(a, b) + D(b, c));
    case 32:
      return Fold(D(a, b) * D(b, c));
    case 33:
      return Fold(fma(D(a, b), D(b, c), D(c, a)));
    case 34:
      return D(b, c) == 0 ? 5 : Fold(D(a, b) / D(b, c));
    case 35:
      return Fold(sqrt(fabs(D(a, b))));
    case 36:
      return (D(a, b) < D(b, c) ? 1u : 0u) | (D(a, b) <= D(c, a) ? 2u : 0u);
    case 37:
      return static_cast<uint32_t>(static_cast<int32_t>(D(a, b))) + Fold(static_cast<double>(c));
    case 38:
      return B(static_cast<float>(D(a, b))) + Fold(static_cast<double>(M(c)));
    case 39: {
      uint32_t hash = a;
      for (uint32_t i = 0; i < (b & 15); ++i) {
        if ((hash ^ i) & 1)
          hash = hash * 16777619u + c;
        else
          hash ^= hash >> 7;
        if (hash % 13 == 0) break;
      }
      return hash;
    }
    default:
      return 0;
  }
}

}  // namespace testing_functions
