// Integer arithmetic, comparison, minimum and maximum.
#include <algorithm>

#include "sim/bind.h"
#include "sim/compare.h"
#include "sim/half.h"
#include "sim/lanes.h"

namespace iket::sim {
namespace {

// A sum of three with carries, as IADD3 and UIADD3 make it: `negate` bits say which terms are
// negated (or, with carry in, complemented).
struct Sum {
  uint32_t value;
  bool over1, over2;  // the sum reaches 2^32, 2^33
};
inline Sum Add3(uint32_t a, uint32_t b, uint32_t c, bool na, bool nb, bool nc, bool extended,
                uint32_t carry1, uint32_t carry2) {
  const auto term = [extended](uint32_t v, bool negated) {
    return negated ? uint64_t{~v} + (extended ? 0 : 1) : uint64_t{v};
  };
  const uint64_t sum = term(a, na) + term(b, nb) + term(c, nc) + carry1 + carry2;
  return {static_cast<uint32_t>(sum), sum >> 32 >= 1, sum >> 32 >= 2};
}

void Iadd3Plain(Warp& warp, const Op& op) {
  MapABC(warp, op, [](uint32_t a, uint32_t b, uint32_t c) { return a + b + c; });
}
void Iadd3(Warp& warp, const Op& op) {
  const bool na = Bit(op, 72), nb = Bits(op, 9, 3) == 4 ? false : Bit(op, 63), nc = Bit(op, 75);
  const bool extended = Bit(op, 74);
  const bool swapped = Bits(op, 9, 3) == 2 || Bits(op, 9, 3) == 3 || Bits(op, 9, 3) == 7;
  const bool immediate_c = Bits(op, 9, 3) == 2;
  // Bit 63 belongs to what stands at bit 32, bit 75 to what stands at bit 64.
  const bool not_b = swapped ? nc : nb, not_c = swapped ? (immediate_c ? false : Bit(op, 63)) : nc;
  const uint32_t in1 = extended ? PredicateAt(warp, op, 87) : 0;
  const uint32_t in2 = extended ? PredicateAt(warp, op, 77) : 0;
  LaneWords sb, sc, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, sb);
  const uint32_t* const c = warp.Words(op.c, sc);
  // What Add3 does, of words: v ^ flip is the complement, `plus` makes a negation of it, and each
  // addition says whether it overflowed.
  const uint32_t flip_a = na ? ~0u : 0, flip_b = not_b ? ~0u : 0, flip_c = not_c ? ~0u : 0;
  const uint32_t plus = extended ? 0 : uint32_t{na} + uint32_t{not_b} + uint32_t{not_c};
  LaneWords over;
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint32_t x = a[i] ^ flip_a, y = b[i] ^ flip_b, z = c[i] ^ flip_c;
    const uint32_t more = plus + (in1 >> i & 1) + (in2 >> i & 1);
    const uint32_t two = x + y, three = two + z, sum = three + more;
    out.v[i] = sum;
    over.v[i] = uint32_t{two < x} + uint32_t{three < z} + uint32_t{sum < more};
  }
  warp.Write(op.d, out);
  const uint32_t p1 = Bits(op, 81, 3), p2 = Bits(op, 84, 3);
  if (p1 != 7) warp.WritePredicate(p1, LanesWhere([&](uint32_t i) { return over.v[i] >= 1; }));
  if (p2 != 7) warp.WritePredicate(p2, LanesWhere([&](uint32_t i) { return over.v[i] >= 2; }));
}
void Uiadd3(Warp& warp, const Op& op) {
  const uint32_t form = Bits(op, 9, 3);
  const bool extended = Bit(op, 74);
  const bool at32 = form == 1 && Bit(op, 63), at64 = Bit(op, 75);
  const bool not_b = form == 2 ? at64 : at32, not_c = form == 2 ? at32 : at64;
  const Sum sum = Add3(warp.uniform[op.a], warp.Scalar(op.b), warp.Scalar(op.c), Bit(op, 72), not_b,
                       not_c, extended, extended && UniformPredicateAt(warp, op, 87),
                       extended && UniformPredicateAt(warp, op, 77));
  warp.WriteUniform(op.d, sum.value);
  warp.WriteUniformPredicate(Bits(op, 81, 3), sum.over1);
  warp.WriteUniformPredicate(Bits(op, 84, 3), sum.over2);
}

void Viadd(Warp& warp, const Op& op) {
  const uint32_t nb = Bits(op, 9, 3) != 4 && Bit(op, 63) ? ~0u : 0;
  MapAB(warp, op, [nb](uint32_t a, uint32_t b) { return a + ((b ^ nb) - nb); });
}

// ---- IMAD --------------------------------------------------------------------------------------
void Imad(Warp& warp, const Op& op) {
  MapABC(warp, op, [](uint32_t a, uint32_t b, uint32_t c) { return a * b + c; });
}
// With the third operand negated, or a carry in.
void ImadFull(Warp& warp, const Op& op) {
  const uint32_t form = Bits(op, 9, 3);
  const bool swapped = form == 2 || form == 3 || form == 7;
  const uint32_t nc = (swapped ? form != 2 && Bit(op, 63) : Bit(op, 75)) ? ~0u : 0;
  const bool extended = Bit(op, 74);
  const uint32_t carry = extended ? PredicateAt(warp, op, 87) : 0;
  LaneWords sb, sc, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, sb);
  const uint32_t* const c = warp.Words(op.c, sc);
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint32_t third = extended ? c[i] ^ nc : (c[i] ^ nc) - nc;
    out.v[i] = a[i] * b[i] + third + (carry >> i & 1);
  }
  warp.Write(op.d, out);
}
template <bool kSigned>
inline uint64_t Product(uint32_t a, uint32_t b) {
  if constexpr (kSigned) {
    return static_cast<uint64_t>(int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b));
  } else {
    return uint64_t{a} * b;
  }
}
// The third operand of WIDE and HI is 64 bits wide; an immediate is extended by the type.
template <bool kSigned>
void ThirdWide(Warp& warp, const Op& op, WideScratch& scratch, Wide& c) {
  c = WideWords(warp, op.c, scratch);
  if (op.c.kind == Operand::Kind::kImmediate) {
    scratch.high.v.fill(kSigned && static_cast<int32_t>(op.c.value) < 0 ? ~0u : 0);
    c.high = scratch.high.v.data();
  }
}
// a * b + c of 64 bits in each lane; returns the carries out.
template <bool kSigned>
uint32_t ProductSum(Warp& warp, const Op& op, LaneWords& low, LaneWords& high) {
  LaneWords sb;
  WideScratch sc;
  const uint32_t form = Bits(op, 9, 3);
  const bool swapped = form == 2 || form == 3 || form == 7;
  const bool not_c = swapped ? form != 2 && Bit(op, 63) : Bit(op, 75);
  const bool extended = Bit(op, 74);
  const uint32_t carry = extended ? PredicateAt(warp, op, 87) : 0;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, sb);
  Wide c{};
  ThirdWide<kSigned>(warp, op, sc, c);
  // The carry out counts what the two additions lose.
  const uint64_t flip = not_c ? ~uint64_t{0} : 0, plus = not_c && !extended ? 1 : 0;
  LaneWords overs;
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint64_t product = Product<kSigned>(a[i], b[i]);
    const uint64_t third = (c[i] ^ flip) + plus, two = product + third;
    const uint64_t sum = two + (carry >> i & 1);
    overs.v[i] = two < product || sum < two ? ~0u : 0;
    low.v[i] = static_cast<uint32_t>(sum);
    high.v[i] = static_cast<uint32_t>(sum >> 32);
  }
  const uint32_t over = Bits(op, 81, 3) == 7 ? 0 : SignMask(overs);
  return over;
}
template <bool kSigned>
void ImadWide(Warp& warp, const Op& op) {
  LaneWords low, high;
  const uint32_t over = ProductSum<kSigned>(warp, op, low, high);
  WriteWide(warp, op.d, low, high);
  warp.WritePredicate(Bits(op, 81, 3), over);
}
template <bool kSigned>
void ImadWidePlain(Warp& warp, const Op& op) {  // no carries, nothing negated
  LaneWords sb, low, high;
  WideScratch sc;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, sb);
  Wide c{};
  ThirdWide<kSigned>(warp, op, sc, c);
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint64_t sum = Product<kSigned>(a[i], b[i]) + c[i];
    low.v[i] = static_cast<uint32_t>(sum);
    high.v[i] = static_cast<uint32_t>(sum >> 32);
  }
  WriteWide(warp, op.d, low, high);
}
template <bool kSigned>
Handler ImadWideFor(const Op& op) {
  const uint32_t form = Bits(op, 9, 3);
  const bool plain = !Bit(op, 74) && !Bit(op, 75) && Bits(op, 81, 3) == 7 &&
                     (form == 2 || form == 4 || !Bit(op, 63));
  return plain ? ImadWidePlain<kSigned> : ImadWide<kSigned>;
}
template <bool kSigned>
void ImadHigh(Warp& warp, const Op& op) {
  LaneWords low, high;
  const uint32_t over = ProductSum<kSigned>(warp, op, low, high);
  warp.Write(op.d, high);
  warp.WritePredicate(Bits(op, 81, 3), over);
}
// The uniform twins; the third operand as 64 bits, or as 32.
uint64_t UniformWide(Warp& warp, const Operand& operand, bool is_signed) {
  const uint32_t low = warp.Scalar(operand);
  if (operand.kind == Operand::Kind::kImmediate) {
    return is_signed ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(low)}) : low;
  }
  return uint64_t{warp.ScalarHigh(operand)} << 32 | low;
}
uint64_t UniformThird(const Op& op, uint64_t third) {
  const bool negated = Bits(op, 9, 3) != 2 && Bit(op, 75);
  return !negated ? third : Bit(op, 74) ? ~third : 0 - third;
}
bool UniformCarry(const Warp& warp, const Op& op) {
  return Bit(op, 74) && UniformPredicateAt(warp, op, 87);
}
void Uimad(Warp& warp, const Op& op) {
  const uint64_t third = UniformThird(op, warp.Scalar(op.c));
  warp.WriteUniform(op.d, static_cast<uint32_t>(warp.uniform[op.a] * warp.Scalar(op.b) + third +
                                                (UniformCarry(warp, op) ? 1 : 0)));
}
template <bool kSigned>
uint64_t UniformProductSum(Warp& warp, const Op& op) {
  const unsigned __int128 sum =
      static_cast<unsigned __int128>(Product<kSigned>(warp.uniform[op.a], warp.Scalar(op.b))) +
      UniformThird(op, UniformWide(warp, op.c, kSigned)) + (UniformCarry(warp, op) ? 1 : 0);
  warp.WriteUniformPredicate(Bits(op, 81, 3), (sum >> 64 & 1) != 0);
  return static_cast<uint64_t>(sum);
}
template <bool kSigned>
void UimadWide(Warp& warp, const Op& op) {
  const uint64_t sum = UniformProductSum<kSigned>(warp, op);
  warp.WriteUniform(op.d, static_cast<uint32_t>(sum));
  warp.WriteUniform(op.d == 63 ? 63u : op.d + 1u, static_cast<uint32_t>(sum >> 32));
}

// ---- comparison --------------------------------------------------------------------------------
template <bool kSigned>
void Isetp(Warp& warp, const Op& op) {
  const uint32_t comparison = Bits(op, 76, 3);
  const bool extended = Bit(op, 72);
  const uint32_t low = extended ? PredicateAt(warp, op, 68) : 0;
  LaneWords scratch;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, scratch);
  LaneWords less, equal;
  for (uint32_t i = 0; i < kLanes; ++i) {
    const bool is_less =
        kSigned ? static_cast<int32_t>(a[i]) < static_cast<int32_t>(b[i]) : a[i] < b[i];
    less.v[i] = is_less ? ~0u : 0;
    equal.v[i] = a[i] == b[i] ? ~0u : 0;
  }
  const uint32_t lt = SignMask(less), eq = SignMask(equal);
  const uint32_t result = CompareMask(comparison, lt, eq, extended, low);
  SetPredicates(warp, op, result);
}
template <bool kSigned>
void Uisetp(Warp& warp, const Op& op) {
  const uint32_t a = warp.uniform[op.a], b = warp.Scalar(op.b);
  const bool extended = Bit(op, 72);
  const bool less = kSigned ? static_cast<int32_t>(a) < static_cast<int32_t>(b) : a < b;
  const bool result = (CompareMask(Bits(op, 76, 3), less ? ~0u : 0, a == b ? ~0u : 0, extended,
                                   extended && UniformPredicateAt(warp, op, 68) ? ~0u : 0) &
                       1) != 0;
  const bool accumulated = UniformPredicateAt(warp, op, 87);
  const uint32_t how = Bits(op, 74, 2);
  warp.WriteUniformPredicate(Bits(op, 81, 3), CombineBits(how, result, accumulated) != 0);
  warp.WriteUniformPredicate(Bits(op, 84, 3), CombineBits(how, !result, accumulated) != 0);
}

template <bool kSigned>
void Imnmx(Warp& warp, const Op& op) {
  const uint32_t min = PredicateAt(warp, op, 87);
  LaneWords scratch, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, scratch);
  for (uint32_t i = 0; i < kLanes; ++i) {
    const bool less =
        kSigned ? static_cast<int32_t>(a[i]) < static_cast<int32_t>(b[i]) : a[i] < b[i];
    out.v[i] = less == ((min >> i & 1) != 0) ? a[i] : b[i];
  }
  warp.Write(op.d, out);
}
// VIADDMNMX: min or max of a + b and c.
template <bool kSigned>
void Viaddmnmx(Warp& warp, const Op& op) {
  const uint32_t form = Bits(op, 9, 3);
  const bool swapped = form == 2 || form == 3 || form == 7;
  const bool at32 = form != 2 && form != 4 && Bit(op, 63), at64 = Bit(op, 75);
  const uint32_t nb = (swapped ? at64 : at32) ? ~0u : 0, nc = (swapped ? at32 : at64) ? ~0u : 0;
  const uint32_t min = PredicateAt(warp, op, 87);
  LaneWords sb, sc, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, sb);
  const uint32_t* const c = warp.Words(op.c, sc);
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint32_t sum = a[i] + ((b[i] ^ nb) - nb);
    const uint32_t other = (c[i] ^ nc) - nc;
    const bool less =
        kSigned ? static_cast<int32_t>(sum) < static_cast<int32_t>(other) : sum < other;
    out.v[i] = less == ((min >> i & 1) != 0) ? sum : other;
  }
  warp.Write(op.d, out);
}

template <bool kSigned>
void Vimnmx3(Warp& warp, const Op& op) {
  const uint32_t min = PredicateAt(warp, op, 87);
  LaneWords sb, sc, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, sb);
  const uint32_t* const c = warp.Words(op.c, sc);
  const auto pick = [](uint32_t x, uint32_t y, bool least) {
    const bool less = kSigned ? static_cast<int32_t>(x) < static_cast<int32_t>(y) : x < y;
    return less == least ? x : y;
  };
  for (uint32_t i = 0; i < kLanes; ++i) {
    const bool least = (min >> i & 1) != 0;
    out.v[i] = pick(pick(a[i], b[i], least), c[i], least);
  }
  warp.Write(op.d, out);
}
// VABSDIFF: |a - b| + c.
template <bool kSigned>
void Vabsdiff(Warp& warp, const Op& op) {
  MapABC(warp, op, [](uint32_t a, uint32_t b, uint32_t c) {
    const bool less = kSigned ? static_cast<int32_t>(a) < static_cast<int32_t>(b) : a < b;
    return (less ? b - a : a - b) + c;
  });
}

// VABSDIFF4: |a - b| of each byte; .ACC adds the four to c.
template <bool kSigned, bool kAccumulate>
void Vabsdiff4(Warp& warp, const Op& op) {
  MapABC(warp, op, [](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < 32; i += 8) {
      const auto ua = static_cast<uint8_t>(a >> i), ub = static_cast<uint8_t>(b >> i);
      const int x = kSigned ? static_cast<int8_t>(ua) : ua;
      const int y = kSigned ? static_cast<int8_t>(ub) : ub;
      const auto difference = static_cast<uint32_t>(x < y ? y - x : x - y);
      bytes |= difference << i;
      c += difference;
    }
    return kAccumulate ? c : bytes;
  });
}
// VIMNMX.16x2: the halves of a register, each for itself.
template <typename Half>
void Vimnmx16(Warp& warp, const Op& op) {
  const uint32_t min = PredicateAt(warp, op, 87);
  LaneWords scratch, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, scratch);
  for (uint32_t i = 0; i < kLanes; ++i) {
    const bool least = (min >> i & 1) != 0;
    out.v[i] = MapHalves(a[i], b[i], [least](uint16_t x, uint16_t y) {
      return (static_cast<Half>(x) < static_cast<Half>(y)) == least ? x : y;
    });
  }
  warp.Write(op.d, out);
}

void Iabs(Warp& warp, const Op& op) {
  MapB(warp, op, [](uint32_t b) { return static_cast<int32_t>(b) < 0 ? 0 - b : b; });
}

// IDP.4A: four products of bytes, added to c.
void Idp4(Warp& warp, const Op& op) {
  const bool sa = Bit(op, 73), sb = Bit(op, 74);
  MapABC(warp, op, [sa, sb](uint32_t a, uint32_t b, uint32_t c) {
    for (uint32_t i = 0; i < 32; i += 8) {
      const auto x = static_cast<int32_t>(a >> i & 0xff), y = static_cast<int32_t>(b >> i & 0xff);
      c += static_cast<uint32_t>((sa ? static_cast<int8_t>(x) : x) *
                                 (sb ? static_cast<int8_t>(y) : y));
    }
    return c;
  });
}

// IDP.2A: the halves of a times the low or the high two bytes of b, added to c.
void Idp2(Warp& warp, const Op& op) {
  const bool sa = Bit(op, 73), sb = Bit(op, 74);
  const uint32_t first = Bit(op, 77) ? 16 : 0;
  MapABC(warp, op, [=](uint32_t a, uint32_t b, uint32_t c) {
    for (uint32_t i = 0; i < 2; ++i) {
      const auto x = static_cast<int32_t>(a >> (16 * i) & 0xffff);
      const auto y = static_cast<int32_t>(b >> (first + 8 * i) & 0xff);
      c += static_cast<uint32_t>((sa ? static_cast<int16_t>(x) : x) *
                                 (sb ? static_cast<int8_t>(y) : y));
    }
    return c;
  });
}

// I2I: a signed word that is made to fit eight or sixteen bits.
void I2iSaturate(Warp& warp, const Op& op) {
  const bool is_signed = Bit(op, 76);
  const uint32_t bits = Bit(op, 77) ? 16 : 8;
  const int32_t high = (1 << (is_signed ? bits - 1 : bits)) - 1, low = is_signed ? -high - 1 : 0;
  MapB(warp, op, [=](uint32_t b) {
    return static_cast<uint32_t>(std::clamp(static_cast<int32_t>(b), low, high));
  });
}

// What the carry out of a product plus a negated number would be has not been seen.
bool CarryIsKnown(const Op& op) {
  const uint32_t form = Bits(op, 9, 3);
  const bool negated = form == 3 || form == 7 ? Bit(op, 63) : form != 2 && Bit(op, 75);
  return !negated || Bits(op, 81, 3) == 7;
}

}  // namespace

bool IKET_SIM_ISA::BindInteger(Op& op) {
  const uint32_t base = op.word.base_opcode(), form = Bits(op, 9, 3);
  const bool is_signed = Bit(op, 73), is_signed_min = Bit(op, 72);
  switch (base) {
    case 0x010: {
      if (!BindAlu(op)) return true;
      const bool plain = !Bit(op, 72) && !Bit(op, 75) && !Bit(op, 74) &&
                         (form == 4 || form == 2 || !Bit(op, 63)) && Bits(op, 81, 6) == 0x3f;
      op.run = plain ? Iadd3Plain : Iadd3;
      return true;
    }
    case 0x036:
      if (BindAlu(op) && Bits(op, 73, 2) == 0) op.run = Viadd;
      return true;
    case 0x024: {
      if (!BindAlu(op)) return true;
      const bool plain = !Bit(op, 75) && !Bit(op, 74) && (form == 4 || form == 2 || !Bit(op, 63));
      op.run = plain ? Imad : ImadFull;
      return true;
    }
    case 0x025:
      if (form != 2 && BindAlu(op) && CarryIsKnown(op)) {
        op.run = is_signed ? ImadWideFor<true>(op) : ImadWideFor<false>(op);
      }
      return true;
    case 0x027:
      if (form != 2 && BindAlu(op) && CarryIsKnown(op)) {
        op.run = is_signed ? ImadHigh<true> : ImadHigh<false>;
      }
      return true;
    case 0x00c:
      if (BindAlu(op) && Bits(op, 74, 2) != 3) op.run = is_signed ? Isetp<true> : Isetp<false>;
      return true;
    case 0x017:
      if (BindAlu(op)) op.run = is_signed ? Imnmx<true> : Imnmx<false>;
      return true;
    case 0x048:  // VIMNMX; RELU and predicate results are not known
      if (BindAlu(op) && Bits(op, 74, 3) == 0 && Bits(op, 81, 6) == 0x3f) {
        if (Bit(op, 73)) {  // packed halves, of registers
          if (form == 1) op.run = is_signed_min ? Vimnmx16<int16_t> : Vimnmx16<uint16_t>;
        } else {
          op.run = is_signed_min ? Imnmx<true> : Imnmx<false>;
        }
      }
      return true;
    case 0x00f:  // VIMNMX3
      if (BindAlu(op) && Bits(op, 73, 4) == 0)
        op.run = Bit(op, 72) ? Vimnmx3<true> : Vimnmx3<false>;
      return true;
    case 0x046:
      if (BindAlu(op) && Bits(op, 73, 2) == 0 && !Bit(op, 76)) {
        op.run = Bit(op, 72) ? Viaddmnmx<true> : Viaddmnmx<false>;
      }
      return true;
    case 0x014:
      if (BindAlu(op) && Bits(op, 81, 3) == 7)
        op.run = is_signed ? Vabsdiff<true> : Vabsdiff<false>;
      return true;
    case 0x015:  // VABSDIFF4; what it does with c where it does not add to it is not known
      if (BindAlu(op) && form == 1 && Bits(op, 81, 3) == 7 && Bit(op, 72) == 0 &&
          Bits(op, 74, 1) == 0 && (Bit(op, 75) || op.c.row == kZeroRow)) {
        if (Bit(op, 75)) {
          op.run = is_signed ? Vabsdiff4<true, true> : Vabsdiff4<false, true>;
        } else {
          op.run = is_signed ? Vabsdiff4<true, false> : Vabsdiff4<false, false>;
        }
      }
      return true;
    case 0x013:
      if (BindAlu(op)) op.run = Iabs;
      return true;
    case 0x026:
      if (form != 4 && BindAlu(op)) op.run = Bit(op, 76) ? Idp2 : Idp4;
      return true;
    case 0x038:
      op.latency = Latency::kMath;
      if (BindAlu(op) && Bits(op, 72, 4) == 0 && Bits(op, 78, 9) == 0 && Bits(op, 60, 4) == 0) {
        op.run = I2iSaturate;
      }
      return true;
    case 0x090:
      if (BindUniformAlu(op)) op.run = Uiadd3;
      return true;
    case 0x0a4:
      if (BindUniformAlu(op)) op.run = Uimad;
      return true;
    case 0x0a5:
      if (BindUniformAlu(op) && CarryIsKnown(op)) {
        op.run = is_signed ? UimadWide<true> : UimadWide<false>;
      }
      return true;
    case 0x08c:
      if (BindUniformAlu(op) && Bits(op, 74, 2) != 3) {
        op.run = is_signed ? Uisetp<true> : Uisetp<false>;
      }
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
