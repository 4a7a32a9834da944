// float_ops.h: fp32 and fp64 arithmetic with the GPU's rounding, flushing and NaNs.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>

namespace iket::sim {

inline constexpr uint32_t kCanonicalNan = 0x7fffffff;

inline float AsFloat(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t AsBits(float value) { return std::bit_cast<uint32_t>(value); }
inline double AsDouble(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint64_t AsBits(double value) { return std::bit_cast<uint64_t>(value); }

// A result in fp64: a NaN that comes in goes out as the positive quiet one; one that arises here is
// negative. So an H200 does it with the one NaN that the corpus has; payloads are not kept.
inline uint64_t CanonicalDouble(double value, bool nan_came_in) {
  if (value == value) return AsBits(value);
  return nan_came_in ? 0x7ff8000000000000 : 0xfff8000000000000;
}
// A result: every NaN is the same one.
inline uint32_t Canonical(float value) {
  const uint32_t bits = AsBits(value);
  return (bits & 0x7fffffff) > 0x7f800000 ? kCanonicalNan : bits;
}
inline uint32_t Flush(uint32_t bits) { return (bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits; }
inline uint32_t Saturate(uint32_t bits) {
  const float value = AsFloat(bits);
  return value >= 1 ? 0x3f800000 : value > 0 ? bits : 0;  // NaN becomes 0
}

// Rounding modes as instructions encode them: RN, RM, RP, RZ.
inline int HostRounding(uint32_t mode) {
  constexpr int kModes[4] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
  return kModes[mode & 3];
}
class RoundingScope {
 public:
  explicit RoundingScope(uint32_t mode) : on_((mode & 3) != 0) {
    if (on_) std::fesetround(HostRounding(mode));
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;
  ~RoundingScope() {
    if (on_) std::fesetround(FE_TONEAREST);
  }

 private:
  bool on_;
};

// The fourteen comparisons of floating point, by their number: ordered ones 1..6, 7 NUM, 8 NAN,
// unordered ones 9..14, 15 T.
template <typename T>
inline bool CompareFloat(uint32_t comparison, T a, T b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  const uint32_t relation = comparison & 7;
  bool result = false;
  switch (relation) {
    case 1:
      result = a < b;
      break;
    case 2:
      result = a == b;
      break;
    case 3:
      result = a <= b;
      break;
    case 4:
      result = a > b;
      break;
    case 5:
      result = a < b || a > b;
      break;
    case 6:
      result = a >= b;
      break;
    case 7:
      result = !unordered;
      break;
    default:
      break;
  }
  return result || (unordered && (comparison & 8) != 0);
}

}  // namespace iket::sim
