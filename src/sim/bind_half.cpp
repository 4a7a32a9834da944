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
  uint16_t operator()(uint32_t word, uint32_t half) const;
};
// One half of an operand, with what does not change from lane to lane worked out.
class HalfOf {
 public:
  HalfOf(const HalfSource& source, uint32_t half)
      : shift_(16 * (source.swizzle == 0   ? half
                     : source.swizzle == 2 ? 0
                                           : 1)),
        keep_(source.keep),
        flip_(source.flip) {}
  uint16_t operator()(uint32_t word) const {
    return static_cast<uint16_t>((word >> shift_ & keep_) ^ flip_);
  }

 private:
  uint32_t shift_, keep_, flip_;
};
uint16_t HalfSource::operator()(uint32_t word, uint32_t half) const {
  return HalfOf(*this, half)(word);
}
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
template <bool kBfloat>
inline float Number(uint16_t half) {
  return kBfloat ? FloatFromBfloat(half) : FloatFromHalf(half);
}
template <bool kBfloat>
inline uint32_t Narrow(float value) {
  return kBfloat ? BfloatFromFloat(value) : HalfFromFloat(value);
}
// The sum as a float that rounds to the right fp16 or bf16. Of fp16 products are exact in fp32, and
// so is a sum rounded to fp32 and then to fp16; what x y + z loses is kept by rounding to odd.
// Products of bf16 numbers leave fp32's range, and are taken in double.
template <Sum kSum, bool kBfloat>
inline float SumOf(float x, float y, float z) {
  if constexpr (kSum == Sum::kAdd) return x + y;
  if constexpr (kBfloat) {
    const double product = double{x} * double{y};
    return StickyFloat(kSum == Sum::kFma ? StickySum(product, double{z}) : product);
  }
  if constexpr (kSum == Sum::kMul) return x * y;
  const float product = x * y, sum = product + z, part = sum - product;
  const float lost = (product - (sum - part)) + (z - part);
  const uint32_t bits = AsBits(sum);
  const uint32_t odd = (lost > 0) == (sum > 0) ? bits + 1 : bits - 1;
  return AsFloat((lost > 0 || lost < 0) && (bits & 1) == 0 ? odd : bits);
}
template <Sum kSum, bool kBfloat>
void Halves(Warp& warp, const Op& op) {
  Sources s = SourcesOf(op);
  const uint32_t form = Bits(op, 9, 3);
  const bool in_c = kSum == Sum::kAdd && (form == 2 || form == 3 || form == 7);
  const bool saturate = Bit(op, 77), to_float = Bit(op, 78);
  LaneWords sb, sc, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(in_c ? op.c : op.b, sb);
  const uint32_t* const c = warp.Words(op.c, sc);
  if (in_c) s.b = s.c;
  for (uint32_t half = 0; half < (to_float ? 1u : 2u); ++half) {
    const HalfOf first(s.a, half), second(s.b, half), third(s.c, half);
    for (uint32_t i = 0; i < kLanes; ++i) {
      float value =
          SumOf<kSum, kBfloat>(Number<kBfloat>(first(a[i])), Number<kBfloat>(second(b[i])),
                               Number<kBfloat>(third(c[i])));
      if (to_float) {
        out.v[i] = Canonical(value);
      } else {
        const float limited = value >= 1 ? 1 : value > 0 ? value : 0;
        const uint32_t narrow = Narrow<kBfloat>(saturate ? limited : value);
        out.v[i] = half == 0 ? narrow : out.v[i] | narrow << 16;
      }
    }
  }
  warp.Write(op.d, out);
}
template <Sum kSum>
Handler HalvesFor(const Op& op) {
  return Bit(op, 85) ? Halves<kSum, true> : Halves<kSum, false>;
}

// A sum of constants alone, which is how ptxas likes to write a constant into a register.
void Constant(Warp& warp, const Op& op) {
  LaneWords out;
  out.v.fill(op.b.value);
  warp.Write(op.d, out);
}
Handler FmaFor(Op& op) {
  const auto constant = [](const Operand& operand) {
    return operand.kind == Operand::Kind::kImmediate ||
           (operand.kind == Operand::Kind::kRegister && operand.row == kZeroRow);
  };
  if (op.a != kZeroRow || !constant(op.b) || !constant(op.c)) return HalvesFor<Sum::kFma>(op);
  const Sources s = SourcesOf(op);
  uint32_t word = 0;
  for (uint32_t half = 0; half < 2; ++half) {
    const uint16_t x = s.a(0, half), y = s.b(op.b.value, half), z = s.c(op.c.value, half);
    float value =
        Bit(op, 85) ? SumOf<Sum::kFma, true>(Number<true>(x), Number<true>(y), Number<true>(z))
                    : SumOf<Sum::kFma, false>(Number<false>(x), Number<false>(y), Number<false>(z));
    if (Bit(op, 77)) value = value >= 1 ? 1 : value > 0 ? value : 0;
    word |= (Bit(op, 85) ? Narrow<true>(value) : Narrow<false>(value)) << (16 * half);
  }
  op.b = {.kind = Operand::Kind::kImmediate, .value = word};
  return Constant;
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

bool IKET_SIM_ISA::BindHalf(Op& op) {
  switch (op.word.base_opcode()) {
    case 0x030:
      // Not known: a float result that saturates.
      if (BindAlu(op) && SwizzlesAreKnown(op) && !(Bit(op, 77) && Bit(op, 78))) {
        op.run = HalvesFor<Sum::kAdd>(op);
      }
      return true;
    case 0x031:
    case 0x035:  // HFMA2.MMA
      if (BindAlu(op) && SwizzlesAreKnown(op) && Bits(op, 81, 2) != 1) op.run = FmaFor(op);
      return true;
    case 0x032:
      if (BindAlu(op) && SwizzlesAreKnown(op)) op.run = HalvesFor<Sum::kMul>(op);
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
