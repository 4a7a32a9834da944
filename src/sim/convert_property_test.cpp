// Conversions between integers and floating point, from exact numbers that are rounded once.
#include "sim/testing_exact.h"
#include "sim/testing_property.h"

namespace iket::sim::testing {
namespace {

using sass::Instruction;

constexpr uint32_t kNan = 0x7fffffff;

// Kinds of numbers, as bits 75..77 (result) and 84..86 (source) say.
constexpr uint32_t kF16 = 1, kF32 = 2, kF64 = 3, kBf16 = 4;
const Format& FormatOf(uint32_t kind) {
  return kind == kF16 ? kHalf : kind == kF32 ? kSingle : kind == kF64 ? kDouble : kBfloat;
}

class Convert : public Property {
 protected:
  static uint32_t To(const Instruction& w) { return w.Bits(75, 3); }
  static uint32_t From(const Instruction& w) { return w.Bits(84, 3); }
  // The source number, its sign changed by bits 62 and 63, denormals of fp32 flushed by bit 80.
  static uint64_t FloatSource(const Instruction& w, const Source& s) {
    const Format& f = FormatOf(From(w));
    uint64_t v = s.low;
    if (From(w) == kF64) v = s.is_immediate ? s.low | uint64_t{s.low} << 32 : s.wide();
    if (From(w) == kF16 || From(w) == kBf16) v = s.low >> (w.Bits(60, 2) == 1 ? 16 : 0) & 0xffff;
    if (From(w) == kF32 && w.Bits(80, 1) != 0 && f.IsDenormal(v)) v &= f.sign();
    if (IsImmediate(w)) return v;
    if (w.Bits(62, 1) != 0) v &= ~f.sign();
    if (w.Bits(63, 1) != 0) v ^= f.sign();
    return v;
  }
  // An immediate of 64 bits has not been seen: registers and their like.
  static const std::vector<uint32_t>& Forms() {
    static const std::vector<uint32_t> kForms = {1, 5, 6};
    return kForms;
  }
  // Runs the case for each pair of kinds.
  void CheckPairs(uint32_t opcode, const std::vector<Field>& fields,
                  const std::vector<uint32_t>& to, const std::vector<uint32_t>& from,
                  const Lane& reference) {
    for (const uint32_t d : to) {
      for (const uint32_t s : from) {
        Case c = {.opcode = opcode,
                  .forms = Forms(),
                  .fields = fields,
                  .writes = d % 4 == kF64 ? Writes::kPair : Writes::kWord,
                  .fixed = {{24, 8, 0}, {64, 8, 0}, {75, 3, d}, {84, 3, s}}};
        total_ += Check(c, reference, 100);
        if (HasFailure()) return;
      }
    }
  }
  int total_ = 0;
};

TEST_F(Convert, FloatsToIntegers) {
  for (const uint32_t opcode : {0x105u, 0x111u}) {
    const Lane reference = [](const Instruction& w, const State&, uint32_t, const Sources& s) {
      const Format& f = FormatOf(From(w));
      const uint64_t v = FloatSource(w, s.b);
      const bool is_signed = w.Bits(72, 1) != 0;
      const uint32_t bits = w.Bits(75, 2) == 3 ? 64 : 32;
      const __int128 high = (__int128{1} << (is_signed ? bits - 1 : bits)) - 1;
      const __int128 low = is_signed ? -high - 1 : 0;
      // .NTZ: of a NaN comes 0; else the top bit alone.
      if (f.IsNan(v)) return Result{w.Bits(77, 1) != 0 ? 0 : uint64_t{1} << (bits - 1)};
      __int128 value = f.IsNegative(v) ? low : high;
      if (!f.IsInfinite(v)) {
        const Exact exact = ExactOf(f, v);
        if (TopBit(exact.m) + exact.e < 70) {
          value = static_cast<__int128>(Scaled(exact, -exact.e, w.Bits(78, 2)));
          if (exact.negative) value = -value;
        }
      }
      return Result{static_cast<uint64_t>(std::clamp(value, low, high))};
    };
    CheckPairs(opcode, {{60, 1}, {62, 2}, {72, 1}, {78, 3}}, {2, 3, 2 | 4, 3 | 4},
               {kF16, kF32, kF64, kBf16}, reference);
  }
  EXPECT_GT(total_, 600);
}

TEST_F(Convert, IntegersToFloats) {
  const Lane reference = [](const Instruction& w, const State&, uint32_t, const Sources& s) {
    const uint32_t bits = 8u << w.Bits(84, 2), part = bits < 32 ? w.Bits(60, 2) * bits : 0;
    const uint64_t raw = s.b.wide() >> part;
    __int128 value = bits == 64 ? static_cast<__int128>(raw)
                                : static_cast<__int128>(raw & ((uint64_t{1} << bits) - 1));
    if (w.Bits(74, 1) != 0 && (value >> (bits - 1) & 1) != 0) value -= __int128{1} << bits;
    return Result{Rounded(FormatOf(To(w)), ExactOf(value), w.Bits(78, 2))};
  };
  for (const uint32_t opcode : {0x106u, 0x112u, 0x045u}) {
    CheckPairs(opcode, {{60, 2}, {74, 1}, {78, 2}}, {kF16, kF32, kF64}, {0, 1, 2, 3}, reference);
  }
  EXPECT_GT(total_, 500);
}

TEST_F(Convert, FloatsToFloats) {
  const Lane reference = [](const Instruction& w, const State&, uint32_t, const Sources& s) {
    const Format &from = FormatOf(From(w)), &to = FormatOf(To(w));
    const uint64_t v = FloatSource(w, s.b), sign = from.IsNegative(v) ? to.sign() : 0;
    if (from.IsNan(v)) {
      if (To(w) != kF64 && From(w) != kF64) return Result{to.bits() == 32 ? kNan : 0x7fffu};
      if (to.bits() == 16) return Result{0x7fff};
      // What fits of the fraction, quiet.
      const uint64_t fraction = v & (from.infinity() ^ (from.sign() - 1));
      const int up = static_cast<int>(to.fraction) - static_cast<int>(from.fraction);
      return Result{sign | to.infinity() | uint64_t{1} << (to.fraction - 1) |
                    (up >= 0 ? fraction << up : fraction >> -up)};
    }
    if (from.IsInfinite(v)) return Result{sign | to.infinity()};
    uint64_t bits = Rounded(to, ExactOf(from, v), w.Bits(78, 2));
    if (To(w) == kF32 && w.Bits(80, 1) != 0 && to.IsDenormal(bits)) bits &= to.sign();
    return Result{bits};
  };
  for (const uint32_t opcode : {0x104u, 0x110u}) {
    CheckPairs(opcode, {{60, 1}, {62, 2}, {78, 3}}, {kF16, kF32, kF64, kBf16}, {kF16, kF32, kF64},
               reference);
  }
  EXPECT_GT(total_, 600);
}

TEST_F(Convert, Rounding) {
  const Lane reference = [](const Instruction& w, const State&, uint32_t, const Sources& s) {
    const Format& f = FormatOf(From(w));
    const uint64_t v = FloatSource(w, s.b);
    if (f.IsNan(v)) return Result{From(w) == kF32 ? kNan : v | uint64_t{1} << 51};
    if (f.IsInfinite(v)) return Result{v};
    const Exact exact = ExactOf(f, v);
    if (exact.e >= 0) return Result{v};
    Exact whole = ExactOf(static_cast<__int128>(Scaled(exact, -exact.e, w.Bits(78, 2))));
    whole.negative = exact.negative;
    return Result{Rounded(f, whole, 0)};
  };
  for (const uint32_t opcode : {0x107u, 0x113u}) {
    CheckPairs(opcode, {{62, 2}, {78, 3}}, {kF32}, {kF32}, reference);
    CheckPairs(opcode, {{62, 2}, {78, 2}}, {kF64}, {kF64}, reference);
  }
  EXPECT_GT(total_, 250);
}

TEST_F(Convert, PacksTwo) {
  EXPECT_GT(Check(
                {.opcode = 0x03e,
                 .forms = {1, 4, 5, 6},
                 .fields = {{76, 1}, {79, 2}},
                 .fixed = {{64, 8, 255}}},
                [](const Instruction& w, const State&, uint32_t, const Sources& s) {
                  const Format& f = w.Bits(76, 1) != 0 ? kBfloat : kHalf;
                  const auto narrow = [&](uint32_t v) -> uint64_t {
                    if (kSingle.IsNan(v)) return 0x7fff;
                    const uint64_t sign = kSingle.IsNegative(v) ? f.sign() : 0;
                    if (kSingle.IsInfinite(v)) return sign | f.infinity();
                    return Rounded(f, ExactOf(kSingle, v), w.Bits(79, 2) == 3 ? 3 : 0);
                  };
                  return Result{narrow(s.a.low) << 16 | narrow(s.b.low)};
                },
                400),
            150);
}

}  // namespace
}  // namespace iket::sim::testing
