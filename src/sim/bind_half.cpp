// fp16 arithmetic, two numbers a register.
#include <cmath>

#include "sim/bind.h"
#include "sim/compare.h"
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
      // Exact in double, or odd where it is not, so that rounding once more is right.
      double value = kSum == Sum::kAdd   ? StickySum(x, in_c ? z : y)
                     : kSum == Sum::kMul ? x * y
                                         : StickySum(x * y, z);
      if (to_float) {
        word = Canonical(static_cast<float>(value));
        break;
      }
      if (saturate) value = value >= 1 ? 1 : value > 0 ? value : 0;
      const float sticky = StickyFloat(value);
      word |= uint32_t{bfloat ? BfloatFromFloat(sticky) : HalfFromFloat(sticky)} << (16 * half);
    }
    out.v[i] = word;
  }
  warp.Write(op.d, out);
}

// ---- comparisons -------------------------------------------------------------------------------
float NumberOf(uint16_t half, bool bfloat) {
  return bfloat ? FloatFromBfloat(half) : FloatFromHalf(half);
}
// The second operand, wherever it stands.
HalfSource SecondSource(const Op& op) {
  const uint32_t form = Bits(op, 9, 3);
  return form == 2 || form == 4 ? HalfSource{} : Source(Bits(op, 60, 2), Bit(op, 62), Bit(op, 63));
}
const Operand& SecondOperand(const Op& op) {
  const uint32_t form = Bits(op, 9, 3);
  return form == 2 || form == 3 || form == 7 ? op.c : op.b;
}
struct HalfMasks {
  uint32_t low = 0, high = 0;  // lanes
};
HalfMasks CompareHalves(Warp& warp, const Op& op) {
  const HalfSource first = Source(Bits(op, 74, 2), Bit(op, 73), Bit(op, 72));
  const HalfSource second = SecondSource(op);
  const bool bfloat = Bit(op, 65);
  const uint32_t comparison = Bits(op, 76, 4);
  LaneWords scratch;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(SecondOperand(op), scratch);
  HalfMasks masks;
  for (uint32_t i = 0; i < kLanes; ++i) {
    const auto holds = [&](uint32_t half) {
      return uint32_t{CompareFloat(comparison, NumberOf(first(a[i], half), bfloat),
                                   NumberOf(second(b[i], half), bfloat))};
    };
    masks.low |= holds(0) << i;
    masks.high |= holds(1) << i;
  }
  return masks;
}
// Predicates of the low and the high half, or (H_AND) both together and the opposite.
void Hsetp2(Warp& warp, const Op& op) {
  const HalfMasks masks = CompareHalves(warp, op);
  const uint32_t accumulated = PredicateAt(warp, op, 87), how = Bits(op, 69, 2);
  const uint32_t both = masks.low & masks.high;
  const uint32_t p = Bit(op, 71) ? both : masks.low, q = Bit(op, 71) ? ~both : masks.high;
  warp.WritePredicate(Bits(op, 81, 3), CombineBits(how, p, accumulated));
  warp.WritePredicate(Bits(op, 84, 3), CombineBits(how, q, accumulated));
}
void Hset2(Warp& warp, const Op& op) {
  const HalfMasks masks = CompareHalves(warp, op);
  const uint32_t accumulated = PredicateAt(warp, op, 87), how = Bits(op, 69, 2);
  const uint32_t low = CombineBits(how, masks.low, accumulated);
  const uint32_t high = CombineBits(how, masks.high, accumulated);
  const uint32_t yes = !Bit(op, 71) ? 0xffff : Bit(op, 65) ? 0x3f80 : 0x3c00;
  LaneWords out;
  for (uint32_t i = 0; i < kLanes; ++i) {
    out.v[i] = (low >> i & 1) * yes | ((high >> i & 1) * yes) << 16;
  }
  warp.Write(op.d, out);
}
void Hmnmx2(Warp& warp, const Op& op) {
  const HalfSource first = Source(Bits(op, 74, 2), Bit(op, 73), Bit(op, 72));
  const HalfSource second = SecondSource(op);
  const bool bfloat = Bit(op, 85), spreads = Bit(op, 81);
  const uint32_t min = PredicateAt(warp, op, 87);
  LaneWords scratch, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(SecondOperand(op), scratch);
  for (uint32_t i = 0; i < kLanes; ++i) {
    const bool least = (min >> i & 1) != 0;
    const auto pick = [&](uint32_t half) -> uint32_t {
      const uint16_t x = first(a[i], half), y = second(b[i], half);
      const float fx = NumberOf(x, bfloat), fy = NumberOf(y, bfloat);
      const bool nan_x = fx != fx, nan_y = fy != fy;
      if ((nan_x && nan_y) || (spreads && (nan_x || nan_y))) return 0x7fff;
      if (nan_x || nan_y) return nan_x ? y : x;
      if (fx == fy) return least ? x | y : x & y;  // -0 is less than +0
      return (fx < fy) == least ? x : y;
    };
    out.v[i] = pick(0) | pick(1) << 16;
  }
  warp.Write(op.d, out);
}

// Which halves of a register are meant: 1 is none of the ways (of the second operand of HFMA2:
// fp32).
bool SwizzlesAreKnown(const Op& op) {
  const uint32_t form = Bits(op, 9, 3);
  const bool immediate = form == 2 || form == 4;
  return Bits(op, 74, 2) != 1 && (immediate || Bits(op, 60, 2) != 1);
}

}  // namespace

bool BindHalf(Op& op) {
  switch (op.word.base_opcode()) {
    case 0x030:
      // Not known: a float result that saturates.
      if (BindAlu(op) && SwizzlesAreKnown(op) && !(Bit(op, 77) && Bit(op, 78))) {
        op.run = Halves<Sum::kAdd>;
      }
      return true;
    case 0x031:
    case 0x035:  // HFMA2.MMA
      if (BindAlu(op) && SwizzlesAreKnown(op) && Bits(op, 81, 2) != 1) op.run = Halves<Sum::kFma>;
      return true;
    case 0x032:
      if (BindAlu(op) && SwizzlesAreKnown(op)) op.run = Halves<Sum::kMul>;
      return true;
    case 0x033:
    case 0x034:
      if (BindAlu(op) && SwizzlesAreKnown(op) && Bits(op, 69, 2) != 3) {
        op.run = op.word.base_opcode() == 0x033 ? Hset2 : Hsetp2;
      }
      return true;
    case 0x040:
      if (BindAlu(op) && SwizzlesAreKnown(op)) op.run = Hmnmx2;
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
