// fp16 arithmetic, two numbers a register.
#include <cmath>

#include "sim/bind.h"
#include "sim/float_ops.h"
#include "sim/half.h"
#include "sim/lanes.h"

namespace iket::sim {
namespace {

// How an operand's two halves are picked (H1_H0, unused, H0_H0, H1_H1) and what their signs become.
struct HalfSource {
  uint32_t swizzle = 0;
  uint16_t keep = 0xffff, flip = 0;
  uint16_t operator()(uint32_t word, uint32_t half) const {
    const uint32_t from = swizzle == 0 ? half : swizzle == 2 ? 0 : 1;
    return static_cast<uint16_t>((static_cast<uint16_t>(word >> (16 * from)) & keep) ^ flip);
  }
};
HalfSource Source(uint32_t swizzle, bool absolute, bool negate) {
  return {swizzle, static_cast<uint16_t>(absolute ? 0x7fff : 0xffff),
          static_cast<uint16_t>(negate ? 0x8000 : 0)};
}
struct Sources {
  HalfSource a, b, c;
};
Sources SourcesOf(const Op& op) {
  const uint32_t form = Bits(op, 9, 3);
  const HalfSource at32 =
      form == 2 || form == 4 ? HalfSource{} : Source(Bits(op, 60, 2), Bit(op, 62), Bit(op, 63));
  const HalfSource at64 = Source(Bits(op, 81, 2), Bit(op, 83), Bit(op, 84));
  const bool swapped = form == 2 || form == 3 || form == 7;
  return {Source(Bits(op, 74, 2), Bit(op, 73), Bit(op, 72)), swapped ? at64 : at32,
          swapped ? at32 : at64};
}

enum class Sum { kAdd, kMul, kFma };
template <Sum kSum>
void Halves(Warp& warp, const Op& op) {
  const Sources s = SourcesOf(op);
  const uint32_t form = Bits(op, 9, 3);
  const bool in_c = kSum == Sum::kAdd && (form == 2 || form == 3 || form == 7);
  const bool bfloat = Bit(op, 85), saturate = Bit(op, 77), to_float = Bit(op, 78);
  const auto number = [bfloat](uint16_t h) {
    return double{bfloat ? FloatFromBfloat(h) : FloatFromHalf(h)};
  };
  LaneWords sb, sc, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, sb);
  const uint32_t* const c = warp.Words(op.c, sc);
  for (uint32_t i = 0; i < kLanes; ++i) {
    uint32_t word = 0;
    for (uint32_t half = 0; half < 2; ++half) {
      const double x = number(s.a(a[i], half)), y = number(s.b(b[i], half));
      const double z = number(s.c(c[i], half));
      // Exact in double, but for sums of numbers far apart, whose rounding odd keeps right.
      double value = kSum == Sum::kAdd ? x + (in_c ? z : y) : kSum == Sum::kMul ? x * y : x * y + z;
      if (to_float) {
        word = Canonical(static_cast<float>(value));
        break;
      }
      if (saturate) value = value >= 1 ? 1 : value > 0 ? value : 0;
      const auto narrow = static_cast<float>(value);
      // Twice rounded would be wrong on a tie: make the float's last bit sticky.
      auto bits = AsBits(narrow);
      if (double{narrow} != value && std::isfinite(narrow)) {
        const bool away = std::fabs(double{narrow}) > std::fabs(value);
        if (away) --bits;
        bits |= 1;
      }
      const float sticky = AsFloat(bits);
      word |= uint32_t{bfloat ? BfloatFromFloat(sticky) : HalfFromFloat(sticky)} << (16 * half);
    }
    out.v[i] = word;
  }
  warp.Write(op.d, out);
}

}  // namespace

bool BindHalf(Op& op) {
  // Not known: flushing (80), ReLU (79), and float results of products.
  const bool plain = !Bit(op, 80) && !Bit(op, 79) && !Bit(op, 76);
  switch (op.word.base_opcode()) {
    case 0x030:
      if (BindAlu(op) && plain) op.run = Halves<Sum::kAdd>;
      return true;
    case 0x031:
    case 0x035:  // HFMA2.MMA
      if (BindAlu(op) && plain && !Bit(op, 78)) op.run = Halves<Sum::kFma>;
      return true;
    case 0x032:
      if (BindAlu(op) && plain && !Bit(op, 78)) op.run = Halves<Sum::kMul>;
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
