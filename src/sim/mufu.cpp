#include "sim/mufu.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "sim/float_ops.h"
#include "sim/half.h"
#include "sim/mufu_tables.h"

namespace iket::sim {
namespace {

constexpr int kFractionBits = 40;  // of a MufuRow
constexpr uint32_t kMantissaBits = 23;
constexpr uint32_t kMantissaMask = (1u << kMantissaBits) - 1;
constexpr uint32_t kLowBits = 17;  // of the argument within a row
constexpr int32_t kBias = 127;
constexpr uint32_t kInfinity = 0x7f800000;
constexpr uint32_t kSignBit = 0x80000000;
constexpr uint32_t kOne = 0x3f800000;

// A float, taken apart. The mantissa is without its leading one.
struct Parts {
  uint32_t sign;
  int32_t exponent;  // biased
  uint32_t mantissa;

  explicit Parts(uint32_t bits)
      : sign(bits & kSignBit),
        exponent(static_cast<int32_t>((bits >> kMantissaBits) & 0xff)),
        mantissa(bits & kMantissaMask) {}
  bool is_zero() const { return exponent == 0; }  // or subnormal
  bool is_infinite() const { return exponent == 0xff && mantissa == 0; }
  bool is_nan() const { return exponent == 0xff && mantissa != 0; }
  uint32_t significand() const { return mantissa | 1u << kMantissaBits; }
};

// The square of 17 bits in units of 2^19: partial products of less are not made, nor do they carry.
int64_t Square(uint32_t x) {
  constexpr uint32_t kCut = 19;
  uint64_t missing = 0;
  for (uint32_t i = 0; 2 * i < kCut; ++i) {
    // Bit i with itself, and with each higher bit j for which i + j + 1 < kCut.
    const uint64_t others = x & ((1u << (kCut - 1 - i)) - 1) & ~((2u << i) - 1);
    const uint64_t products = (uint64_t{1} << (2 * i)) + (others << (i + 1));
    missing += (x >> i & 1) != 0 ? products : 0;
  }
  return static_cast<int64_t>((uint64_t{x} * x - missing) >> kCut);
}

int64_t Interpolate(const MufuRow& row, uint32_t low) {
  return row.c0 + int64_t{row.c1} * low + int64_t{row.c2} * Square(low);
}

// Of a table for 23 bits: its rows are chosen by the upper ones. Where fewer than 17 are left
// (RCP's 128 rows), they are the upper ones of 17.
template <size_t kRows>
int64_t Interpolate(const MufuRow (&table)[kRows], uint32_t argument) {
  constexpr uint32_t kRest = kMantissaBits - std::countr_zero(kRows);
  static_assert(kRest <= kLowBits);
  return Interpolate(table[argument >> kRest], (argument & ((1u << kRest) - 1))
                                                   << (kLowBits - kRest));
}

// value * 2^exponent, value in units of 2^-40 and not negative: cut off to `bits` bits behind the
// leading one, which goes to bit `bits` of the result. Returns the biased exponent; 0 for a value
// of 0.
int32_t Normalize(int64_t value, int32_t exponent, int32_t bias, int bits, uint32_t& mantissa) {
  mantissa = 0;
  if (value == 0) return 0;
  const int top = static_cast<int>(std::bit_width(static_cast<uint64_t>(value))) - 1;
  const uint64_t shifted = top >= bits ? static_cast<uint64_t>(value) >> (top - bits)
                                       : static_cast<uint64_t>(value) << (bits - top);
  mantissa = static_cast<uint32_t>(shifted) & ((1u << bits) - 1);
  return top - kFractionBits + exponent + bias;
}

uint32_t FloatOf(int64_t value, int32_t exponent) {
  uint32_t mantissa = 0;
  const int32_t biased = Normalize(value, exponent, kBias, kMantissaBits, mantissa);
  if (biased <= 0) return 0;
  if (biased >= 0xff) return kInfinity;
  return static_cast<uint32_t>(biased) << kMantissaBits | mantissa;
}

// |x| in units of 2^-fraction_bits, cut off; `wide` bits are kept.
uint32_t FixedOf(const Parts& x, int32_t fraction_bits, uint32_t wide) {
  if (x.is_zero()) return 0;
  const int32_t shift = x.exponent - kBias - static_cast<int32_t>(kMantissaBits) + fraction_bits;
  if (shift <= -32 || shift >= static_cast<int32_t>(wide)) return 0;
  const uint64_t value =
      shift < 0 ? uint64_t{x.significand()} >> -shift : uint64_t{x.significand()} << shift;
  return static_cast<uint32_t>(value & ((uint64_t{1} << wide) - 1));
}

// ---- The functions -----------------------------------------------------------------------------

uint32_t Sine(const Parts& x, bool cosine) {
  if (x.exponent == 0xff) return kCanonicalNan;
  constexpr uint32_t kQuarterBits = kMantissaBits;  // a turn has two more
  const uint32_t turn = FixedOf(x, kQuarterBits + 2, kQuarterBits + 2);
  const uint32_t quarter = (turn >> kQuarterBits) + (cosine ? 1 : 0);
  // Backwards it counts to the last step, not to the end: what is added there is 1 too little.
  uint32_t at = turn & kMantissaMask;
  if ((quarter & 1) != 0) at = ~at & kMantissaMask;
  const uint32_t value = FloatOf(Interpolate(kSine, at), 0);
  return value ^ ((quarter & 2) << 30) ^ (cosine ? 0 : x.sign);
}

uint32_t Exponential(const Parts& x) {
  if (x.is_nan()) return kCanonicalNan;
  if (x.exponent >= kBias + 8) return x.sign != 0 ? 0 : kInfinity;
  const uint32_t fixed = FixedOf(x, kMantissaBits, 31);
  int32_t whole = static_cast<int32_t>(fixed >> kMantissaBits);
  uint32_t fraction = fixed & kMantissaMask;
  if (x.sign != 0) {
    whole = -whole;
    // Not negated but inverted, but for 0.
    if (fraction != 0) fraction = ~fraction & kMantissaMask, --whole;
  }
  return FloatOf(Interpolate(kExponential, fraction), whole);
}

uint32_t Logarithm(const Parts& x) {
  if (x.is_nan()) return kCanonicalNan;
  if (x.is_zero()) return kSignBit | kInfinity;
  if (x.sign != 0) return kCanonicalNan;
  if (x.is_infinite()) return kInfinity;
  const int64_t whole = int64_t{x.exponent - kBias} << kFractionBits;
  if (whole == 0 && x.mantissa == 0) return 0;
  // The sum has 36 bits behind the point; a negative one is inverted, not negated.
  constexpr int kUncomputed = 4;
  const int64_t sum = (whole + Interpolate(kLogarithm, x.mantissa)) >> kUncomputed;
  const uint32_t magnitude = FloatOf((sum < 0 ? ~sum : sum) << kUncomputed, 0);
  return sum < 0 ? magnitude | kSignBit : magnitude;
}

uint32_t Reciprocal(const Parts& x) {
  if (x.is_nan()) return kCanonicalNan;
  if (x.is_zero()) return x.sign | kInfinity;
  if (x.is_infinite()) return x.sign;
  const int64_t value =
      x.mantissa == 0 ? int64_t{1} << kFractionBits : Interpolate(kReciprocal, x.mantissa);
  return x.sign | FloatOf(value, kBias - x.exponent);
}

// 1 / sqrt(x) of a mantissa and an exponent without bias; the exponent of the result goes to
// `exponent`.
int64_t ReciprocalRootOf(uint32_t mantissa, int32_t& exponent) {
  const bool odd = (exponent & 1) != 0;
  exponent = -(exponent >> 1);
  if (odd) return Interpolate(kReciprocalRootOdd, mantissa);
  return mantissa == 0 ? int64_t{1} << kFractionBits : Interpolate(kReciprocalRootEven, mantissa);
}

uint32_t ReciprocalRoot(const Parts& x) {
  if (x.is_nan()) return kCanonicalNan;
  if (x.is_zero()) return x.sign | kInfinity;
  if (x.sign != 0) return kCanonicalNan;
  if (x.is_infinite()) return 0;
  int32_t exponent = x.exponent - kBias;
  const int64_t value = ReciprocalRootOf(x.mantissa, exponent);
  return FloatOf(value, exponent);
}

uint32_t Root(const Parts& x) {
  if (x.is_nan()) return kCanonicalNan;
  if (x.is_zero()) return x.sign;
  if (x.sign != 0) return kCanonicalNan;
  if (x.is_infinite()) return kInfinity;
  const int32_t exponent = x.exponent - kBias;
  const int64_t value =
      (exponent & 1) != 0 ? Interpolate(kRootOdd, x.mantissa) : Interpolate(kRootEven, x.mantissa);
  return FloatOf(value, exponent >> 1);
}

uint32_t Tangent(uint32_t bits) {
  const Parts x(bits);
  constexpr int32_t kFirst = kBias - 8, kLast = kFirst + std::ssize(kTangentOctaves) - 1;
  if (x.is_nan()) return kCanonicalNan;
  if (x.exponent < kFirst) return bits;
  if (x.exponent > kLast) return x.sign | kOne;
  const MufuOctave octave = kTangentOctaves[x.exponent - kFirst];
  const uint32_t rest = kMantissaBits - octave.log2_rows;
  const uint32_t low = (x.mantissa & ((1u << rest) - 1)) >> (rest - kLowBits);
  return x.sign | FloatOf(Interpolate(kTangent[octave.first + (x.mantissa >> rest)], low), 0);
}

// A float cut off to a half, subnormal ones too.
uint16_t CutToHalf(uint32_t bits) {
  constexpr uint32_t kHalfBits = 10, kDropped = kMantissaBits - kHalfBits, kHalfInfinity = 0x7c00;
  const Parts x(bits);
  const uint32_t sign = x.sign >> 16;
  if (x.is_nan()) return 0x7fff;
  const int32_t exponent = x.exponent - kBias + 15;
  if (exponent >= 31) return static_cast<uint16_t>(sign | kHalfInfinity);
  if (exponent > 0) {
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(exponent) << kHalfBits |
                                 x.mantissa >> kDropped);
  }
  const uint32_t shift = kDropped + 1 - static_cast<uint32_t>(exponent);
  return static_cast<uint16_t>(sign | (shift > kMantissaBits ? 0 : x.significand() >> shift));
}

// The upper word of a double: 20 bits of mantissa.
uint32_t OfDouble(bool root, uint32_t bits) {
  constexpr uint32_t kBits = 20, kExponents = 0x7ff, kWideInfinity = kExponents << kBits;
  constexpr int32_t kWideBias = 1023;
  const uint32_t sign = bits & kSignBit;
  const uint32_t magnitude = bits & ~kSignBit;
  if (magnitude > kWideInfinity) return kCanonicalNan;
  if (magnitude >> kBits == 0) return sign | kWideInfinity;
  if (root && sign != 0) return kCanonicalNan;
  if (magnitude == kWideInfinity) return sign;
  int32_t exponent = static_cast<int32_t>(magnitude >> kBits) - kWideBias;
  const uint32_t mantissa = (magnitude & ((1u << kBits) - 1)) << (kMantissaBits - kBits);
  int64_t value = 0;
  if (root) {
    value = ReciprocalRootOf(mantissa, exponent);
  } else {
    exponent = -exponent;
    value = mantissa == 0 ? int64_t{1} << kFractionBits : Interpolate(kReciprocal, mantissa);
  }
  uint32_t result = 0;
  const int32_t biased = Normalize(value, exponent, kWideBias, kBits, result);
  return biased <= 0 ? sign : sign | static_cast<uint32_t>(biased) << kBits | result;
}

}  // namespace

uint32_t Mufu(MufuFunction function, uint32_t argument) {
  switch (function) {
    case MufuFunction::kCos:
    case MufuFunction::kSin:
      return Sine(Parts(argument), function == MufuFunction::kCos);
    case MufuFunction::kEx2:
      return Exponential(Parts(argument));
    case MufuFunction::kLg2:
      return Logarithm(Parts(argument));
    case MufuFunction::kRcp:
      return Reciprocal(Parts(argument));
    case MufuFunction::kRsq:
      return ReciprocalRoot(Parts(argument));
    case MufuFunction::kRcp64High:
    case MufuFunction::kRsq64High:
      return OfDouble(function == MufuFunction::kRsq64High, argument);
    case MufuFunction::kSqrt:
      return Root(Parts(argument));
    case MufuFunction::kTanh:
      return Tangent(argument);
  }
  return kCanonicalNan;
}

uint16_t MufuOfHalf(MufuFunction function, uint16_t argument) {
  return CutToHalf(Mufu(function, AsBits(FloatFromHalf(argument))));
}

}  // namespace iket::sim
