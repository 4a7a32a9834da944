// half.h: fp16 and bf16 as numbers: exact to float, rounded to nearest even from it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace iket::sim {

inline float FloatFromHalf(uint16_t h) {
  const uint32_t sign = uint32_t{h} >> 15 << 31, exponent = h >> 10 & 31, mantissa = h & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float tiny = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -tiny : tiny;
}
inline uint16_t HalfFromFloat(float f) {
  const auto bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return 0x7fff;
  if (rest >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds past 65504
  if (rest < 0x38800000) {  // below the least normal one: units of 2^-24
    const float units = std::bit_cast<float>(rest) * 0x1p24f;
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyintf(units)));
  }
  const uint32_t rounded = rest + 0xfff + (rest >> 13 & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}
inline uint16_t HalfTowardZero(float f) {
  const auto bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest >= 0x7f800000) return HalfFromFloat(f);
  if (rest >= 0x47800000) return static_cast<uint16_t>(sign | 0x7bff);
  if (rest < 0x38800000) {
    return static_cast<uint16_t>(sign |
                                 static_cast<uint32_t>(std::bit_cast<float>(rest) * 0x1p24f));
  }
  return static_cast<uint16_t>(sign | ((rest - 0x38000000) >> 13));
}
inline float FloatFromBfloat(uint16_t b) { return std::bit_cast<float>(uint32_t{b} << 16); }
inline uint16_t BfloatFromFloat(float f) {
  const auto bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline uint16_t BfloatTowardZero(float f) {
  const auto bits = std::bit_cast<uint32_t>(f);
  return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : static_cast<uint16_t>(bits >> 16);
}

// A float whose last bit says that something was lost, so that it can be rounded once more.
inline float StickyFloat(double value) {
  const auto narrow = static_cast<float>(value);
  if (double{narrow} == value || !std::isfinite(narrow)) return narrow;
  auto bits = std::bit_cast<uint32_t>(narrow);
  if (std::fabs(double{narrow}) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}

// a + b, whose last bit says that something was lost (rounded to odd): a product of bf16 and a
// number far below it can be rounded once more.
inline double StickySum(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double part = sum - a, lost = (a - (sum - part)) + (b - part);
  if (lost == 0) return sum;
  auto bits = std::bit_cast<uint64_t>(sum);
  if ((bits & 1) == 0) bits = (lost > 0) == (sum > 0) ? bits | 1 : bits - 1;
  return std::bit_cast<double>(bits);
}

template <typename F>
inline uint32_t MapHalves(uint32_t a, uint32_t b, F f) {
  const uint32_t low = f(static_cast<uint16_t>(a), static_cast<uint16_t>(b));
  const uint32_t high = f(static_cast<uint16_t>(a >> 16), static_cast<uint16_t>(b >> 16));
  return high << 16 | low;
}

}  // namespace iket::sim
