// small_float.h: floating point numbers of 8 and 16 bits as floats. Private to the room.
#pragma once

#include <bit>
#include <cstdint>

namespace iket::trace {

// A sign, an exponent, a mantissa, from the top of the lowest bits.
struct SmallFloat {
  uint32_t exponent_bits = 0;
  uint32_t mantissa_bits = 0;
  bool has_infinity = true;  // else all of the largest exponent but the last is numbers

  // The bits of the float with the same value; each has one. A NaN stays one, of its sign.
  constexpr uint32_t ToFloat(uint32_t bits) const {
    const uint32_t largest = (1u << exponent_bits) - 1;
    const uint32_t sign = (bits >> (exponent_bits + mantissa_bits) & 1) << 31;
    const uint32_t exponent = bits >> mantissa_bits & largest;
    const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
    const bool is_last = mantissa == (1u << mantissa_bits) - 1;
    constexpr uint32_t kInfinity = 0x7f800000, kQuiet = 0x00400000;
    if (exponent == largest && (has_infinity || is_last)) {
      const bool is_infinity = has_infinity && mantissa == 0;
      return sign | kInfinity | (is_infinity ? 0 : kQuiet | mantissa << (23 - mantissa_bits));
    }
    const uint32_t bias = largest >> 1;
    if (exponent != 0)
      return sign | (exponent - bias + 127) << 23 | mantissa << (23 - mantissa_bits);
    if (mantissa == 0) return sign;
    if (exponent_bits == 8)
      return sign | mantissa << (23 - mantissa_bits);  // small as a float, too
    const uint32_t leading = static_cast<uint32_t>(std::bit_width(mantissa)) - 1;
    const uint32_t rest = mantissa ^ 1u << leading;
    return sign | (leading - mantissa_bits + 1 - bias + 127) << 23 | rest << (23 - leading);
  }
};

inline constexpr SmallFloat kHalf = {5, 10};
inline constexpr SmallFloat kBfloat16 = {8, 7};
inline constexpr SmallFloat kE4m3 = {4, 3, false};
inline constexpr SmallFloat kE5m2 = {5, 2};

}  // namespace iket::trace
