// Logic, shifts, bit fields, predicates as data.
#include <algorithm>
#include <bit>

#include "sim/bind.h"
#include "sim/lanes.h"

namespace iket::sim {
namespace {

// Any function of three bits, of words.
inline uint32_t Lut(uint32_t lut, uint32_t a, uint32_t b, uint32_t c) {
  uint32_t out = 0;
  if (lut & 0x01) out |= ~a & ~b & ~c;
  if (lut & 0x02) out |= ~a & ~b & c;
  if (lut & 0x04) out |= ~a & b & ~c;
  if (lut & 0x08) out |= ~a & b & c;
  if (lut & 0x10) out |= a & ~b & ~c;
  if (lut & 0x20) out |= a & ~b & c;
  if (lut & 0x40) out |= a & b & ~c;
  if (lut & 0x80) out |= a & b & c;
  return out;
}

template <uint32_t kLut>
void LopOf(Warp& warp, const Op& op) {
  MapABC(warp, op, [](uint32_t a, uint32_t b, uint32_t c) { return Lut(kLut, a, b, c); });
}
void Lop3(Warp& warp, const Op& op) {
  const uint32_t lut = Bits(op, 72, 8);
  LaneWords sb, sc, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, sb);
  const uint32_t* const c = warp.Words(op.c, sc);
  // The eight terms of the table as masks, so that the loop has no branch.
  uint32_t term[8];
  for (uint32_t t = 0; t < 8; ++t) term[t] = (lut >> t & 1) != 0 ? ~0u : 0;
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint32_t x = a[i], y = b[i], z = c[i];
    const uint32_t low =
        ~x & ((~y & ((~z & term[0]) | (z & term[1]))) | (y & ((~z & term[2]) | (z & term[3]))));
    const uint32_t high =
        x & ((~y & ((~z & term[4]) | (z & term[5]))) | (y & ((~z & term[6]) | (z & term[7]))));
    out.v[i] = low | high;
  }
  warp.Write(op.d, out);
  const uint32_t p = Bits(op, 81, 3);
  if (p == 7) return;
  const uint32_t nonzero = LanesWhere([&](uint32_t i) { return out.v[i] != 0; });
  const uint32_t other = PredicateAt(warp, op, 87);
  warp.WritePredicate(p, Bit(op, 80) ? nonzero & other : nonzero | other);
}
void Ulop3(Warp& warp, const Op& op) {
  const uint32_t value =
      Lut(Bits(op, 72, 8), warp.uniform[op.a], warp.Scalar(op.b), warp.Scalar(op.c));
  const bool other = UniformPredicateAt(warp, op, 87);
  warp.WriteUniform(op.d, value);
  warp.WriteUniformPredicate(Bits(op, 81, 3),
                             Bit(op, 80) ? value != 0 && other : value != 0 || other);
}

// ---- shifts ------------------------------------------------------------------------------------
// {c, a} shifted by b; the type says where the count saturates and what is shifted in.
struct Shift {
  bool wide, is_signed, wrap, right, high;
};
inline Shift ShiftOf(const Op& op) {
  const uint32_t type = Bits(op, 73, 2);  // S64, U64, S32, U32
  return {type < 2, (type & 1) == 0, Bit(op, 75), Bit(op, 76), Bit(op, 80)};
}
inline uint32_t DoShift(const Shift& s, uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t bits = s.wide ? 64 : 32;
  const uint32_t count = s.wrap ? b & (bits - 1) : std::min(b, bits);
  const uint64_t value = uint64_t{c} << 32 | a;
  uint64_t out;
  if (count == 64) {
    out = s.right && s.is_signed && static_cast<int64_t>(value) < 0 ? ~uint64_t{0} : 0;
  } else if (!s.right) {
    out = value << count;
  } else if (s.is_signed) {
    out = static_cast<uint64_t>(static_cast<int64_t>(value) >> count);
  } else {
    out = value >> count;
  }
  return static_cast<uint32_t>(s.high ? out >> 32 : out);
}
void Shf(Warp& warp, const Op& op) {
  const Shift s = ShiftOf(op);
  MapABC(warp, op, [s](uint32_t a, uint32_t b, uint32_t c) { return DoShift(s, a, b, c); });
}
void ShlPlain(Warp& warp, const Op& op) {  // SHF.L.U32 d, a, count, RZ
  MapAB(warp, op, [](uint32_t a, uint32_t b) { return b > 31 ? 0 : a << (b & 31); });
}
void ShrHigh(Warp& warp, const Op& op) {  // SHF.R.U32.HI d, RZ, count, c
  MapABC(warp, op, [](uint32_t, uint32_t b, uint32_t c) { return b > 31 ? 0 : c >> (b & 31); });
}
void Ushf(Warp& warp, const Op& op) {
  warp.WriteUniform(op.d,
                    DoShift(ShiftOf(op), warp.uniform[op.a], warp.Scalar(op.b), warp.Scalar(op.c)));
}

// ---- LEA ---------------------------------------------------------------------------------------
struct LeaSum {
  uint32_t value;
  bool over;
};
inline LeaSum DoLea(const Op& op, uint32_t a, uint32_t b, uint32_t c, bool not_b, bool carry) {
  const uint32_t shift = Bits(op, 75, 5);
  const bool extended = Bit(op, 74);
  uint64_t wide = uint64_t{c} << 32 | a;
  if (Bit(op, 73)) wide = static_cast<uint64_t>(int64_t{static_cast<int32_t>(a)});  // SX32
  uint32_t term = Bit(op, 80) ? static_cast<uint32_t>((wide << shift) >> 32) : a << shift;
  uint64_t sum = extended && carry ? 1 : 0;
  const auto add = [&](uint32_t v, bool negated) {
    sum += negated ? uint64_t{~v} + (extended ? 0 : 1) : uint64_t{v};
  };
  add(term, Bit(op, 72));
  add(b, not_b);
  return {static_cast<uint32_t>(sum), sum >> 32 != 0};
}
// What DoLea does, of words: v ^ flip is the complement, `plus` makes a negation of it.
template <bool kHigh>
void Lea(Warp& warp, const Op& op) {
  const uint32_t shift = Bits(op, 75, 5);
  const bool extended = Bit(op, 74), not_a = Bit(op, 72), sign = Bit(op, 73);
  const bool not_b = Bits(op, 9, 3) != 4 && Bit(op, 63);
  const uint32_t carry = extended ? PredicateAt(warp, op, 87) : 0;
  const uint32_t flip_a = not_a ? ~0u : 0, flip_b = not_b ? ~0u : 0;
  const uint32_t plus = extended ? 0 : uint32_t{not_a} + uint32_t{not_b};
  const uint32_t from_low = shift == 0 ? 0 : ~0u, back = (32 - shift) & 31;
  LaneWords sb, sc, out, over;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, sb);
  const uint32_t* const c = warp.Words(op.c, sc);
  for (uint32_t i = 0; i < kLanes; ++i) {
    uint32_t term = a[i] << shift;
    if constexpr (kHigh) {
      const uint32_t high = sign ? static_cast<uint32_t>(static_cast<int32_t>(a[i]) >> 31) : c[i];
      term = high << shift | (a[i] >> back & from_low);
    }
    const uint32_t x = term ^ flip_a, two = x + (b[i] ^ flip_b), more = plus + (carry >> i & 1);
    out.v[i] = two + more;
    over.v[i] = uint32_t{two < x} | uint32_t{out.v[i] < more};
  }
  warp.Write(op.d, out);
  const uint32_t p = Bits(op, 81, 3);
  if (p != 7) warp.WritePredicate(p, LanesWhere([&](uint32_t i) { return over.v[i] != 0; }));
}
void Ulea(Warp& warp, const Op& op) {
  const bool not_b = Bits(op, 9, 3) == 1 && Bit(op, 63);
  const LeaSum sum = DoLea(op, warp.uniform[op.a], warp.Scalar(op.b), warp.Scalar(op.c), not_b,
                           Bit(op, 74) && UniformPredicateAt(warp, op, 87));
  warp.WriteUniform(op.d, sum.value);
  warp.WriteUniformPredicate(Bits(op, 81, 3), sum.over);
}

// ---- bit fields --------------------------------------------------------------------------------
// The place of the highest set bit (of the highest that differs from the sign), ~0 if there is
// none.
inline uint32_t Flo(const Op& op, uint32_t b) {
  if (Bit(op, 73) && static_cast<int32_t>(b) < 0) b = ~b;
  if (b == 0) return ~0u;
  const auto place = static_cast<uint32_t>(31 - std::countl_zero(b));
  return Bit(op, 74) ? 31 - place : place;
}
inline bool NotB(const Op& op) { return Bits(op, 9, 3) != 4 && Bit(op, 63); }
void FloLanes(Warp& warp, const Op& op) {
  const uint32_t flip = NotB(op) ? ~0u : 0;
  LaneWords scratch, out;
  const uint32_t* const b = warp.Words(op.b, scratch);
  uint32_t found = 0;
  for (uint32_t i = 0; i < kLanes; ++i) {
    out.v[i] = Flo(op, b[i] ^ flip);
    found |= uint32_t{out.v[i] != ~0u} << i;
  }
  warp.Write(op.d, out);
  warp.WritePredicate(Bits(op, 81, 3), found);
}
void Uflo(Warp& warp, const Op& op) {
  const uint32_t place = Flo(op, warp.Scalar(op.b) ^ (NotB(op) ? ~0u : 0));
  warp.WriteUniform(op.d, place);
  warp.WriteUniformPredicate(Bits(op, 81, 3), place != ~0u);
}
inline uint32_t Reverse(uint32_t v) {
  v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
  v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
  v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
  v = (v >> 8 & 0x00ff00ff) | (v & 0x00ff00ff) << 8;
  return v >> 16 | v << 16;
}
void Brev(Warp& warp, const Op& op) {
  const uint32_t flip = NotB(op) ? ~0u : 0;
  MapB(warp, op, [flip](uint32_t b) { return Reverse(b ^ flip); });
}
void Ubrev(Warp& warp, const Op& op) {
  warp.WriteUniform(op.d, Reverse(warp.Scalar(op.b) ^ (NotB(op) ? ~0u : 0)));
}
void Popc(Warp& warp, const Op& op) {
  const uint32_t flip = NotB(op) ? ~0u : 0;
  MapB(warp, op, [flip](uint32_t b) { return static_cast<uint32_t>(std::popcount(b ^ flip)); });
}
void Upopc(Warp& warp, const Op& op) {
  const uint32_t value = warp.Scalar(op.b) ^ (NotB(op) ? ~0u : 0);
  warp.WriteUniform(op.d, static_cast<uint32_t>(std::popcount(value)));
}
// BMSK: b ones from bit a up.
inline uint32_t Bmsk(bool wrap, uint32_t a, uint32_t b) {
  if (wrap) {
    a &= 31;
    b &= 31;
  }
  if (a > 31) return 0;
  const uint32_t ones = b > 31 ? ~0u : (1u << b) - 1;
  return ones << a;
}
void BmskLanes(Warp& warp, const Op& op) {
  const bool wrap = Bit(op, 75);
  MapAB(warp, op, [wrap](uint32_t a, uint32_t b) { return Bmsk(wrap, a, b); });
}
void Ubmsk(Warp& warp, const Op& op) {
  warp.WriteUniform(op.d, Bmsk(Bit(op, 75), warp.uniform[op.a], warp.Scalar(op.b)));
}
// SGXT: the low b bits of a, extended.
inline uint32_t Sgxt(bool is_signed, bool wrap, uint32_t a, uint32_t b) {
  if (wrap) b &= 31;
  if (b > 31) return a;
  if (b == 0) return 0;
  const uint32_t low = a & ((1u << b) - 1);
  return is_signed && (a >> (b - 1) & 1) != 0 ? low | ~((1u << b) - 1) : low;
}
void SgxtLanes(Warp& warp, const Op& op) {
  const bool is_signed = Bit(op, 73), wrap = Bit(op, 75);
  MapAB(warp, op,
        [is_signed, wrap](uint32_t a, uint32_t b) { return Sgxt(is_signed, wrap, a, b); });
}
void Usgxt(Warp& warp, const Op& op) {
  warp.WriteUniform(op.d, Sgxt(Bit(op, 73), Bit(op, 75), warp.uniform[op.a], warp.Scalar(op.b)));
}

// ---- predicates --------------------------------------------------------------------------------
void Plop3(Warp& warp, const Op& op) {
  const uint32_t lut0 = Bits(op, 64, 3) | Bits(op, 72, 5) << 3, lut1 = Bits(op, 16, 8);
  const uint32_t a = PredicateAt(warp, op, 87), b = PredicateAt(warp, op, 77);
  uint32_t c = PredicateAt(warp, op, 68);
  if (Bit(op, 67)) c = UniformPredicateAt(warp, op, 68) ? ~0u : 0;
  warp.WritePredicate(Bits(op, 81, 3), Lut(lut0, a, b, c));
  warp.WritePredicate(Bits(op, 84, 3), Lut(lut1, a, b, c));
}
// PLOP3 of the signs of registers; one result.
void Plop3Signs(Warp& warp, const Op& op) {
  LaneWords scratch, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, scratch);
  const uint32_t* const c = warp.Row(op.c.row);
  for (uint32_t i = 0; i < kLanes; ++i) out.v[i] = Lut(Bits(op, 72, 8), a[i], b[i], c[i]);
  warp.WritePredicate(Bits(op, 81, 3), SignMask(out));
}
void Uplop3(Warp& warp, const Op& op) {
  const uint32_t lut0 = Bits(op, 64, 3) | Bits(op, 72, 5) << 3, lut1 = Bits(op, 16, 8);
  const auto word = [&](uint32_t at) { return UniformPredicateAt(warp, op, at) ? ~0u : 0; };
  const uint32_t a = word(87), b = word(77), c = word(68);
  warp.WriteUniformPredicate(Bits(op, 81, 3), (Lut(lut0, a, b, c) & 1) != 0);
  warp.WriteUniformPredicate(Bits(op, 84, 3), (Lut(lut1, a, b, c) & 1) != 0);
}
// P2R: the predicates as a byte of d, under a mask; the rest of d is a's.
void P2r(Warp& warp, const Op& op) {
  const uint32_t mask = Bits(op, 32, 32) & 0x7f, shift = 8 * Bits(op, 76, 2);
  const uint32_t* const a = warp.Row(op.a);
  LaneWords out;
  for (uint32_t i = 0; i < kLanes; ++i) {
    uint32_t bits = 0;
    for (uint32_t p = 0; p < 7; ++p) bits |= (warp.predicate[p] >> i & 1) << p;
    out.v[i] = (a[i] & ~(mask << shift)) | (bits & mask) << shift;
  }
  warp.Write(op.d, out);
}
void Up2ur(Warp& warp, const Op& op) {
  const uint32_t mask = Bits(op, 32, 32) & 0x7f, shift = 8 * Bits(op, 76, 2);
  uint32_t bits = 0;
  for (uint32_t p = 0; p < 7; ++p) bits |= uint32_t{warp.uniform_predicate[p]} << p;
  warp.WriteUniform(op.d, (warp.uniform[op.a] & ~(mask << shift)) | (bits & mask) << shift);
}
void R2p(Warp& warp, const Op& op) {
  const uint32_t mask = Bits(op, 32, 32) & 0x7f, shift = 8 * Bits(op, 76, 2);
  const uint32_t* const a = warp.Row(op.a);
  for (uint32_t p = 0; p < 7; ++p) {
    if ((mask >> p & 1) == 0) continue;
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < kLanes; ++i) lanes |= (a[i] >> (shift + p) & 1) << i;
    warp.WritePredicate(p, lanes);
  }
}

Handler LopHandler(const Op& op) {
  if (Bits(op, 81, 3) != 7) return Lop3;
  switch (Bits(op, 72, 8)) {
    case 0xc0:
      return LopOf<0xc0>;
    case 0x3c:
      return LopOf<0x3c>;
    case 0xfc:
      return LopOf<0xfc>;
    case 0x30:
      return LopOf<0x30>;
    case 0x0c:
      return LopOf<0x0c>;
    case 0x33:
      return LopOf<0x33>;
    case 0xf8:
      return LopOf<0xf8>;
    case 0xea:
      return LopOf<0xea>;
    default:
      return Lop3;
  }
}

}  // namespace

bool IKET_SIM_ISA::BindLogic(Op& op) {
  switch (op.word.base_opcode()) {
    case 0x012:
      if (BindAlu(op)) op.run = LopHandler(op);
      return true;
    case 0x092:
      if (BindUniformAlu(op)) op.run = Ulop3;
      return true;
    case 0x019: {
      if (!BindAlu(op)) return true;
      const Shift s = ShiftOf(op);
      op.run = Shf;
      if (!s.wide && !s.is_signed && !s.wrap && !s.right && !s.high) op.run = ShlPlain;
      if (!s.wide && !s.is_signed && !s.wrap && s.right && s.high) op.run = ShrHigh;
      return true;
    }
    case 0x099:
      if (BindUniformAlu(op)) op.run = Ushf;
      return true;
    case 0x011:
      if (BindAlu(op)) op.run = Bit(op, 80) ? Lea<true> : Lea<false>;
      return true;
    case 0x091:
      if (BindUniformAlu(op)) op.run = Ulea;
      return true;
    case 0x100:
      op.latency = Latency::kMath;
      if (BindAlu(op)) op.run = FloLanes;
      return true;
    case 0x101:
      op.latency = Latency::kMath;
      if (BindAlu(op)) op.run = Brev;
      return true;
    case 0x109:
      op.latency = Latency::kMath;
      if (BindAlu(op)) op.run = Popc;
      return true;
    case 0x0bd:
      if (BindUniformAlu(op)) op.run = Uflo;
      return true;
    case 0x0be:
      if (BindUniformAlu(op)) op.run = Ubrev;
      return true;
    case 0x0bf:
      if (BindUniformAlu(op)) op.run = Upopc;
      return true;
    case 0x01b:
      if (BindAlu(op)) op.run = BmskLanes;
      return true;
    case 0x09b:
      if (BindUniformAlu(op)) op.run = Ubmsk;
      return true;
    case 0x01a:
      if (BindAlu(op)) op.run = SgxtLanes;
      return true;
    case 0x09a:
      if (BindUniformAlu(op)) op.run = Usgxt;
      return true;
    case 0x01f:  // of registers, with one table
      if (BindAlu(op) && Bits(op, 9, 3) == 1 && Bits(op, 84, 3) == 7 && Bits(op, 16, 8) == 0) {
        op.run = Plop3Signs;
      }
      return true;
    case 0x01c:
      if (op.word.opcode() == 0x81c) op.run = Plop3;
      return op.word.opcode() == 0x81c;
    case 0x09c:
      op.guard_uniform = true;
      if (op.word.opcode() == 0x89c) op.run = Uplop3;
      return true;
    case 0x003:
      if (BindAlu(op) && op.word.opcode() == 0x803 && Bits(op, 32, 32) <= 0x7f) op.run = P2r;
      return true;
    case 0x083:
      op.guard_uniform = true;
      op.d = static_cast<uint16_t>(Bits(op, 16, 6));
      op.a = static_cast<uint16_t>(Bits(op, 24, 6));
      if (op.word.opcode() == 0x883) op.run = Up2ur;
      return true;
    case 0x004:
      if (BindAlu(op) && op.word.opcode() == 0x804 && Bits(op, 32, 32) <= 0x7f) op.run = R2p;
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
