// fp32 arithmetic, comparison, selection, and the special function unit.
#include <algorithm>
#include <cmath>

#include "sim/bind.h"
#include "sim/compare.h"
#include "sim/float_operands.h"
#include "sim/float_ops.h"
#include "sim/lanes.h"
#include "sim/mufu.h"

namespace iket::sim {
namespace {

uint32_t Finish(const FloatOperands& how, float value) {
  uint32_t bits = Canonical(value);
  if (how.flush) bits = Flush(bits);
  if (how.saturate) bits = Saturate(bits);
  return bits;
}

// Noinline and volatile: the compiler must not move arithmetic out of the rounding mode's scope.
template <typename F>
void Floats(Warp& warp, const Op& op, F f) {
  const FloatOperands how = FloatOperandsOf(op);
  LaneWords sb, sc, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, sb);
  const uint32_t* const c = warp.Words(op.c, sc);
  const RoundingScope scope(how.rounding);
  for (uint32_t i = 0; i < kLanes; ++i) {
    uint32_t x = how.a(a[i]), y = how.b(b[i]), z = how.c(c[i]);
    if (how.flush) {
      x = Flush(x);
      y = Flush(y);
      z = Flush(z);
    }
    const volatile float value = f(AsFloat(x), AsFloat(y), AsFloat(z));
    out.v[i] = Finish(how, value);
  }
  warp.Write(op.d, out);
}

// FADD has its second operand at b, or at c where that is no register.
void Fadd(Warp& warp, const Op& op) {
  const uint32_t form = Bits(op, 9, 3);
  if (form == 2 || form == 3 || form == 7) {
    Floats(warp, op, [](float a, float, float c) { return a + c; });
  } else {
    Floats(warp, op, [](float a, float b, float) { return a + b; });
  }
}
void Fmul(Warp& warp, const Op& op) {
  Floats(warp, op, [](float a, float b, float) { return a * b; });
}
void Ffma(Warp& warp, const Op& op) {
  Floats(warp, op, [](float a, float b, float c) { return std::fma(a, b, c); });
}

void Fmnmx(Warp& warp, const Op& op) {
  const FloatOperands how = FloatOperandsOf(op);
  const uint32_t min = PredicateAt(warp, op, 87);
  LaneWords sb, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, sb);
  for (uint32_t i = 0; i < kLanes; ++i) {
    uint32_t x = how.a(a[i]), y = how.b(b[i]);
    if (how.flush) {
      x = Flush(x);
      y = Flush(y);
    }
    const bool least = (min >> i & 1) != 0, spreads = Bit(op, 81);  // .NAN
    const float fx = AsFloat(x), fy = AsFloat(y);
    if (fx != fx || fy != fy) {
      out.v[i] = fx != fx ? (fy != fy || spreads ? kCanonicalNan : y) : spreads ? kCanonicalNan : x;
    } else if (fx == fy) {  // -0 is less than +0
      out.v[i] = least ? x | y : x & y;
    } else {
      out.v[i] = (fx < fy) == least ? x : y;
    }
  }
  warp.Write(op.d, out);
}

// The source at 32 of SETP and SEL instructions may stand in either operand.
const Operand& Second(const Op& op) {
  const uint32_t form = Bits(op, 9, 3);
  return form == 2 || form == 3 || form == 7 ? op.c : op.b;
}
SignChange SecondChange(const Op& op, const FloatOperands& how) {
  const uint32_t form = Bits(op, 9, 3);
  return form == 2 || form == 3 || form == 7 ? how.c : how.b;
}
SignChange SetpChangeB(const Op& op) {
  const uint32_t form = Bits(op, 9, 3);
  return form == 2 || form == 4 ? SignChange{} : SignChangeOf(Bit(op, 62), Bit(op, 63));
}
uint32_t CompareLanes(Warp& warp, const Op& op) {
  const uint32_t comparison = Bits(op, 76, 4);
  const SignChange ca = SignChangeOf(Bit(op, 73), Bit(op, 72)), cb = SetpChangeB(op);
  const bool flush = Bit(op, 80);
  LaneWords scratch;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(Second(op), scratch);
  uint32_t result = 0;
  for (uint32_t i = 0; i < kLanes; ++i) {
    uint32_t x = ca(a[i]), y = cb(b[i]);
    if (flush) {
      x = Flush(x);
      y = Flush(y);
    }
    result |= uint32_t{CompareFloat(comparison, AsFloat(x), AsFloat(y))} << i;
  }
  return result;
}
void Fsetp(Warp& warp, const Op& op) { SetPredicates(warp, op, CompareLanes(warp, op)); }
void Fset(Warp& warp, const Op& op) {
  const uint32_t accumulated = PredicateAt(warp, op, 87);
  const uint32_t result = CombineBits(Bits(op, 74, 2), CompareLanes(warp, op), accumulated);
  LaneWords out;
  for (uint32_t i = 0; i < kLanes; ++i) out.v[i] = (result >> i & 1) != 0 ? 0x3f800000 : 0;
  warp.Write(op.d, out);
}
void Fsel(Warp& warp, const Op& op) {
  const FloatOperands how = FloatOperandsOf(op);
  const SignChange change_b = SecondChange(op, how);
  const uint32_t pick = PredicateAt(warp, op, 87);
  LaneWords scratch, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(Second(op), scratch);
  for (uint32_t i = 0; i < kLanes; ++i) {
    uint32_t bits = (pick >> i & 1) != 0 ? how.a(a[i]) : change_b(b[i]);
    if (how.flush) bits = Flush(bits);
    out.v[i] = bits;
  }
  warp.Write(op.d, out);
}
// FCHK: true where a / b needs the slow path of a division.
void Fchk(Warp& warp, const Op& op) {
  const FloatOperands how = FloatOperandsOf(op);
  LaneWords scratch;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, scratch);
  uint32_t slow = 0;
  for (uint32_t i = 0; i < kLanes; ++i) {
    const int ea = static_cast<int>(how.a(a[i]) >> 23 & 0xff);
    const int eb = static_cast<int>(how.b(b[i]) >> 23 & 0xff);
    // Numbers that are special or denormal, quotients whose exponent, or whose remainder's, leaves
    // the range of normal numbers.
    const bool special = ea == 0xff || eb == 0xff || ea == 0 || eb == 0 || eb > 0xfc || eb < 2 ||
                         ea - eb > 126 || ea - eb < -125 || ea < 24;
    slow |= uint32_t{special} << i;
  }
  warp.WritePredicate(Bits(op, 81, 3), slow);
}

void MufuLanes(Warp& warp, const Op& op) {
  const auto function = static_cast<MufuFunction>(Bits(op, 74, 6));
  if (Bit(op, 72)) {  // fp16, of one half
    const uint32_t shift = Bits(op, 60, 2) == 1 ? 16 : 0;
    MapB(warp, op, [=](uint32_t b) -> uint32_t {
      return MufuOfHalf(function, static_cast<uint16_t>(b >> shift));
    });
    return;
  }
  const SignChange change =
      Bits(op, 9, 3) == 4 ? SignChange{} : SignChangeOf(Bit(op, 62), Bit(op, 63));
  MapB(warp, op, [=](uint32_t b) { return Mufu(function, change(b)); });
}

}  // namespace

bool IKET_SIM_ISA::BindFloat(Op& op) {
  switch (op.word.base_opcode()) {
    case 0x020:
      // Bits 84..86: a power of two for the product; 4 is none.
      if (BindAlu(op) && Bits(op, 84, 3) == 4 && !Bit(op, 76)) {
        op.run = BindNearest(op) ? op.run : Fmul;
      }
      return true;
    case 0x021:
      if (BindAlu(op)) op.run = BindNearest(op) ? op.run : Fadd;
      return true;
    case 0x023:
      if (BindAlu(op) && !Bit(op, 76)) op.run = BindNearest(op) ? op.run : Ffma;
      return true;
    case 0x009:
      if (BindAlu(op) && !Bit(op, 82)) op.run = Fmnmx;
      return true;
    case 0x00b:
      if (BindAlu(op) && Bits(op, 74, 2) != 3) op.run = Fsetp;
      return true;
    case 0x00a:
      if (BindAlu(op) && Bits(op, 74, 2) != 3) op.run = Fset;
      return true;
    case 0x008:
      if (BindAlu(op)) op.run = Fsel;
      return true;
    case 0x102:
      op.latency = Latency::kMath;
      if (BindAlu(op)) op.run = Fchk;
      return true;
    case 0x108:
      op.latency = Latency::kMath;
      // fp16: what nvcc makes, of registers without a sign.
      if (BindAlu(op) && Bits(op, 74, 6) <= 9 && !Bit(op, 73) &&
          (!Bit(op, 72) || ((Bits(op, 74, 6) == 2 || Bits(op, 74, 6) == 9) && Bits(op, 9, 3) == 1 &&
                            Bits(op, 61, 3) == 0))) {
        op.run = MufuLanes;
      }
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
