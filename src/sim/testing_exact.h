// testing_exact.h: floating point from its definition: exact values, rounded once. Slow, and in
// integer arithmetic alone, so that it shares nothing with what it judges.
#pragma once

#include <algorithm>
#include <cstdint>

namespace iket::sim::testing {

struct Format {
  uint32_t fraction = 0, exponent = 0;  // bits
  uint32_t bits() const { return 1 + exponent + fraction; }
  int bias() const { return (1 << (exponent - 1)) - 1; }
  uint64_t infinity() const { return ((uint64_t{1} << exponent) - 1) << fraction; }
  uint64_t sign() const { return uint64_t{1} << (bits() - 1); }
  bool IsNan(uint64_t v) const { return (v & ~sign()) > infinity(); }
  bool IsInfinite(uint64_t v) const { return (v & ~sign()) == infinity(); }
  bool IsDenormal(uint64_t v) const { return (v & infinity()) == 0 && (v & ~sign()) != 0; }
  bool IsZero(uint64_t v) const { return (v & ~sign()) == 0; }
  bool IsNegative(uint64_t v) const { return (v & sign()) != 0; }
};
inline constexpr Format kHalf{10, 5}, kBfloat{7, 8}, kSingle{23, 8}, kDouble{52, 11};

// (-1)^negative m 2^e, and a little more if `more`: less than a unit of m.
struct Exact {
  bool negative = false;
  unsigned __int128 m = 0;
  int e = 0;
  bool more = false;
};

inline int TopBit(unsigned __int128 m) {
  int top = -1;
  for (; m != 0; m >>= 1) ++top;
  return top;
}
// Of a number that is finite.
inline Exact ExactOf(const Format& f, uint64_t v) {
  const auto exponent = static_cast<int>((v & f.infinity()) >> f.fraction);
  const uint64_t fraction = v & ((uint64_t{1} << f.fraction) - 1);
  const int lowest = 1 - f.bias() - static_cast<int>(f.fraction);
  if (exponent == 0) return {f.IsNegative(v), fraction, lowest, false};
  return {f.IsNegative(v), fraction | uint64_t{1} << f.fraction, lowest + exponent - 1, false};
}
inline Exact ExactOf(__int128 v) {
  return {v < 0, static_cast<unsigned __int128>(v < 0 ? -v : v), 0, false};
}
inline Exact Product(const Exact& a, const Exact& b) {
  return {a.negative != b.negative, a.m * b.m, a.e + b.e, false};
}
// Zeros keep their sign if both have it; else they are -0 only when rounding down.
inline Exact Sum(Exact a, Exact b, uint32_t rounding) {
  if (a.m == 0 && b.m == 0) {
    a.negative = a.negative == b.negative ? a.negative : rounding == 1;
    return a;
  }
  if (a.m == 0) return b;
  if (b.m == 0) return a;
  if (TopBit(a.m) + a.e < TopBit(b.m) + b.e) std::swap(a, b);
  // a at the top of 126 bits, b beside it.
  const int up = 125 - TopBit(a.m);
  a.m <<= up;
  a.e -= up;
  int down = a.e - b.e;
  if (down < 0) {
    b.m <<= -down;
  } else if (down > 127) {
    b.more = b.m != 0;
    b.m = 0;
  } else {
    b.more = (b.m & ((static_cast<unsigned __int128>(1) << down) - 1)) != 0;
    b.m >>= down;
  }
  b.e = a.e;
  if (a.negative == b.negative) return {a.negative, a.m + b.m, a.e, b.more};
  if (a.m == b.m && !b.more) return {rounding == 1, 0, a.e, false};
  const bool swap = a.m < b.m;
  if (swap) std::swap(a, b);
  // What b has more is taken from a: one unit less, and a rest.
  if (b.more) return {a.negative, a.m - b.m - 1, a.e, true};
  return {a.negative, a.m - b.m, a.e, false};
}

// Whether a magnitude goes up: 0 to nearest even, 1 down, 2 up, 3 toward zero.
inline bool GoesUp(uint32_t rounding, bool negative, bool odd, bool half, bool rest) {
  switch (rounding) {
    case 0:
      return half && (rest || odd);
    case 1:
      return negative && (half || rest);
    case 2:
      return !negative && (half || rest);
    default:
      return false;
  }
}
// m / 2^down, rounded.
inline unsigned __int128 Scaled(const Exact& v, int down, uint32_t rounding) {
  if (down <= 0) return v.m << -down;
  if (down > 127) {
    return GoesUp(rounding, v.negative, false, false, v.m != 0 || v.more) ? 1 : 0;
  }
  const unsigned __int128 kept = v.m >> down;
  const bool half = (v.m >> (down - 1) & 1) != 0;
  const bool rest = (v.m & ((static_cast<unsigned __int128>(1) << (down - 1)) - 1)) != 0 || v.more;
  return kept + (GoesUp(rounding, v.negative, (kept & 1) != 0, half, rest) ? 1 : 0);
}
inline uint64_t Rounded(const Format& f, const Exact& v, uint32_t rounding) {
  const uint64_t sign = v.negative ? f.sign() : 0;
  if (v.m == 0) return sign;  // a sum that is `more` than nothing has been made larger before
  const int lowest = 1 - f.bias() - static_cast<int>(f.fraction);
  const int top = TopBit(v.m) + v.e;
  const int unit = std::max(top - static_cast<int>(f.fraction), lowest);
  const unsigned __int128 units = Scaled(v, unit - v.e, rounding);
  // `units` may have become a bit longer; the exponent takes it in.
  const auto biased = static_cast<uint64_t>(unit - lowest);
  const uint64_t bits = (biased << f.fraction) + static_cast<uint64_t>(units);
  if (bits >= f.infinity()) {
    const bool to_infinity =
        rounding == 0 || (rounding == 1 && v.negative) || (rounding == 2 && !v.negative);
    return sign | (to_infinity ? f.infinity() : f.infinity() - 1);
  }
  return sign | bits;
}

}  // namespace iket::sim::testing
