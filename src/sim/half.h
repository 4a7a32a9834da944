// half.h: fp16 and bf16 as numbers: exact to float, rounded to nearest even from it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace iket::sim {

// Without branches, so that loops over lanes become vector code.
inline float FloatFromHalf(uint16_t h) {
  const uint32_t sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
  const uint32_t normal = (rest << 13) + 0x38000000;
  // What is denormal as fp16, as a normal float; the host is slow with denormal ones. Where it
  // rounds down, a difference of nothing is -0.
  const float difference = std::bit_cast<float>((rest << 13) + 0x38800000) - 0x1p-14f;
  const uint32_t denormal = std::bit_cast<uint32_t>(difference) & 0x7fffffff;
  const uint32_t special = 0x7f800000 | rest << 13;
  const uint32_t bits = rest >= 0x7c00 ? special : rest < 0x0400 ? denormal : normal;
  return std::bit_cast<float>(sign | bits);
}
inline uint16_t HalfFromFloat(float f) {
  const auto bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  const uint32_t normal = (rest + 0xfff + (rest >> 13 & 1) - 0x38000000) >> 13;
  // Below the least normal one: the sum's last place is 2^-24, the least denormal number.
  const uint32_t denormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(rest) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  uint32_t result = rest < 0x38800000 ? denormal : normal;
  result = rest >= 0x477ff000 ? 0x7c00 : result;  // rounds past 65504
  return static_cast<uint16_t>(rest > 0x7f800000 ? 0x7fff : sign | result);
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
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}
inline uint16_t BfloatTowardZero(float f) {
  const auto bits = std::bit_cast<uint32_t>(f);
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : bits >> 16);
}

// A float whose last bit says that something was lost, so that it can be rounded once more.
inline float StickyFloat(double value) {
  const auto narrow = static_cast<float>(value);
  const auto bits = std::bit_cast<uint32_t>(narrow);
  const bool exact = double{narrow} == value || (bits & 0x7f800000) == 0x7f800000;
  const uint32_t toward_zero = std::fabs(double{narrow}) > std::fabs(value) ? bits - 1 : bits;
  return std::bit_cast<float>(exact ? bits : toward_zero | 1);
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
