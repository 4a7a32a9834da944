// fp32, fp64 and fp16 arithmetic and comparisons against exact numbers that are rounded once.
#include "sim/testing_exact.h"
#include "sim/testing_property.h"

namespace iket::sim::testing {
namespace {

using sass::Instruction;

constexpr uint32_t kNan = 0x7fffffff;

// A number of a format, with what is done to it before it is used.
struct Number {
  uint64_t bits;
  Number Signed(const Format& f, bool absolute, bool negate) const {
    const uint64_t v = absolute ? bits & ~f.sign() : bits;
    return {negate ? v ^ f.sign() : v};
  }
  Number Flushed(const Format& f, bool flush) const {
    return {flush && f.IsDenormal(bits) ? bits & f.sign() : bits};
  }
};

enum class Kind { kSum, kProduct, kFused };
// The bits of x + y, x y or x y + z; `nan` says that it is one.
uint64_t Compute(const Format& f, Kind kind, uint64_t x, uint64_t y, uint64_t z, uint32_t rounding,
                 bool& nan) {
  const bool negative = f.IsNegative(x) != f.IsNegative(y);
  nan = f.IsNan(x) || f.IsNan(y) || (kind == Kind::kFused && f.IsNan(z));
  if (nan) return 0;
  if (kind == Kind::kSum) {
    if (f.IsInfinite(x) && f.IsInfinite(y)) nan = negative;
    if (f.IsInfinite(x)) return x;
    if (f.IsInfinite(y)) return y;
    return Rounded(f, Sum(ExactOf(f, x), ExactOf(f, y), rounding), rounding);
  }
  if (f.IsInfinite(x) || f.IsInfinite(y)) {
    nan = f.IsZero(x) || f.IsZero(y) ||
          (kind == Kind::kFused && f.IsInfinite(z) && f.IsNegative(z) != negative);
    return f.infinity() | (negative ? f.sign() : 0);
  }
  const Exact product = Product(ExactOf(f, x), ExactOf(f, y));
  if (kind == Kind::kProduct) return Rounded(f, product, rounding);
  if (f.IsInfinite(z)) return z;
  return Rounded(f, Sum(product, ExactOf(f, z), rounding), rounding);
}
// Ordered comparisons 1..6 (LT EQ LE GT NE GE), 7 NUM, 8 NAN, the same or unordered 9..14, 0 F, 15
// T.
bool Compare(const Format& f, uint32_t how, uint64_t x, uint64_t y) {
  if (how == 0 || how == 15) return how == 15;
  const bool unordered = f.IsNan(x) || f.IsNan(y);
  if (unordered) return how >= 8;
  if (how == 7 || how == 8) return how == 7;
  const auto order = [&](uint64_t v) {
    const auto magnitude = static_cast<__int128>(v & ~f.sign());
    return f.IsNegative(v) ? -magnitude : magnitude;
  };
  const __int128 a = order(x), b = order(y);
  return ((how & 1) != 0 && a < b) || ((how & 2) != 0 && a == b) || ((how & 4) != 0 && a > b);
}
bool Combine(uint32_t how, bool a, bool b) {
  return how == 0 ? a && b : how == 1 ? a || b : a != b;
}
// Minimum or maximum; -0 is less than +0.
uint64_t Pick(const Format& f, bool least, bool spreads, uint64_t nan, uint64_t x, uint64_t y) {
  if (f.IsNan(x) && f.IsNan(y)) return nan;
  if (f.IsNan(x) || f.IsNan(y)) return spreads ? nan : f.IsNan(x) ? y : x;
  if (f.IsZero(x) && f.IsZero(y)) return f.IsNegative(x) == least ? x : y;
  return Compare(f, 1, x, y) == least ? x : y;
}

class Float : public Property {
 protected:
  struct Operands {
    uint64_t a, b, c;
  };
  // Signs at 72, 73 (a), and 62, 63 or 74, 75 by place; an immediate has none.
  static Operands Take(const Format& f, const Instruction& w, const Sources& s, bool flush) {
    const bool swapped = Swapped(w), immediate = IsImmediate(w), wide = f.bits() == 64;
    const auto value = [&](const Source& v) {
      if (!wide) return uint64_t{v.low};
      return v.is_immediate ? uint64_t{v.low} << 32 : v.wide();
    };
    const bool abs32 = !immediate && w.Bits(62, 1) != 0, neg32 = !immediate && w.Bits(63, 1) != 0;
    const bool abs64 = w.Bits(74, 1) != 0, neg64 = w.Bits(75, 1) != 0;
    return {
        Number{value(s.a)}.Signed(f, w.Bits(73, 1) != 0, w.Bits(72, 1) != 0).Flushed(f, flush).bits,
        Number{value(s.b)}
            .Signed(f, swapped ? abs64 : abs32, swapped ? neg64 : neg32)
            .Flushed(f, flush)
            .bits,
        Number{value(s.c)}
            .Signed(f, swapped ? abs32 : abs64, swapped ? neg32 : neg64)
            .Flushed(f, flush)
            .bits};
  }
  static uint64_t Single(const Instruction& w, Kind kind, uint64_t x, uint64_t y, uint64_t z) {
    bool nan = false;
    uint64_t bits = Compute(kSingle, kind, x, y, z, w.Bits(78, 2), nan);
    if (nan) bits = kNan;
    bits = Number{bits}.Flushed(kSingle, w.Bits(80, 1) != 0).bits;
    if (w.Bits(77, 1) != 0) {  // .SAT: into [+0, 1]
      if (nan || kSingle.IsNegative(bits)) return 0;
      return std::min<uint64_t>(bits, 0x3f800000);
    }
    return bits;
  }
};

TEST_F(Float, Fadd) {
  // The second operand stands at bit 32, in a form that may make it the third.
  EXPECT_GT(Check(
                {.opcode = 0x021,
                 .forms = {1, 2, 3, 7},
                 .fields = {{62, 2}, {72, 2}, {77, 4}},
                 .fixed = {{64, 8, 0}},
                 .swaps = false},
                [](const Instruction& w, const State&, uint32_t, const Sources& s) {
                  Instruction at32 = With(w, 9, 3, IsImmediate(w) ? 4 : 1);
                  const Operands o = Take(kSingle, at32, s, w.Bits(80, 1) != 0);
                  return Result{Single(w, Kind::kSum, o.a, o.b, 0)};
                },
                600),
            500);
}
TEST_F(Float, Fmul) {
  EXPECT_GT(Check(
                {.opcode = 0x020,
                 .forms = {1, 4, 5, 6},
                 .fields = {{62, 2}, {72, 2}, {77, 4}},
                 .fixed = {{64, 8, 0}, {84, 3, 4}}},
                [](const Instruction& w, const State&, uint32_t, const Sources& s) {
                  const Operands o = Take(kSingle, w, s, w.Bits(80, 1) != 0);
                  return Result{Single(w, Kind::kProduct, o.a, o.b, 0)};
                },
                600),
            500);
}
TEST_F(Float, Ffma) {
  const Lane reference = [](const Instruction& w, const State&, uint32_t, const Sources& s) {
    const Operands o = Take(kSingle, w, s, w.Bits(80, 1) != 0);
    return Result{Single(w, Kind::kFused, o.a, o.b, o.c)};
  };
  EXPECT_GT(Check({.opcode = 0x023, .fields = {{62, 2}, {72, 4}, {77, 4}}}, reference, 800), 700);
  EXPECT_GT(Check({.opcode = 0x023}, reference), 180);
}
TEST_F(Float, PlainSumsAndProducts) {
  const auto reference = [](Kind kind) {
    return [kind](const Instruction& w, const State&, uint32_t, const Sources& s) {
      return Result{Single(w, kind, s.a.low, s.b.low, 0)};
    };
  };
  EXPECT_GT(Check({.opcode = 0x021, .forms = {1, 2, 3, 7}, .fixed = {{64, 8, 0}}, .swaps = false},
                  reference(Kind::kSum)),
            180);
  EXPECT_GT(Check({.opcode = 0x020, .forms = {1, 4, 5, 6}, .fixed = {{64, 8, 0}, {84, 3, 4}}},
                  reference(Kind::kProduct)),
            180);
}
TEST_F(Float, Doubles) {
  const auto reference = [](Kind kind) {
    return [kind](const Instruction& w, const State&, uint32_t, const Sources& s) {
      Instruction v = w;
      // DADD has its second operand at 64 if it is a register.
      if (kind == Kind::kSum) v = With(w, 9, 3, w.Bits(9, 3) == 1 ? 1 : IsImmediate(w) ? 2 : 3);
      Operands o = Take(kDouble, v, s, false);
      if (kind == Kind::kSum) o.b = o.c;
      bool nan = false;
      const uint64_t bits = Compute(kDouble, kind, o.a, o.b, o.c, w.Bits(78, 2), nan);
      const bool came_in =
          kDouble.IsNan(o.a) || kDouble.IsNan(o.b) || (kind == Kind::kFused && kDouble.IsNan(o.c));
      return Result{!nan ? bits : came_in ? 0x7ff8000000000000 : 0xfff8000000000000};
    };
  };
  EXPECT_GT(Check({.opcode = 0x02b, .fields = {{62, 2}, {72, 4}, {78, 2}}, .writes = Writes::kPair},
                  reference(Kind::kFused), 800),
            700);
  EXPECT_GT(Check({.opcode = 0x028,
                   .forms = {1, 4, 5, 6},
                   .fields = {{62, 2}, {72, 2}, {78, 2}},
                   .writes = Writes::kPair,
                   .fixed = {{64, 8, 0}}},
                  reference(Kind::kProduct), 400),
            300);
  EXPECT_GT(Check({.opcode = 0x029,
                   .forms = {1},
                   .fields = {{72, 4}, {78, 2}},
                   .writes = Writes::kPair,
                   .fixed = {{32, 8, 0}}},
                  reference(Kind::kSum), 300),
            250);
  EXPECT_GT(Check({.opcode = 0x029,
                   .forms = {2, 3, 7},
                   .fields = {{62, 2}, {72, 2}, {78, 2}},
                   .writes = Writes::kPair,
                   .fixed = {{64, 8, 0}}},
                  reference(Kind::kSum), 300),
            250);
}
TEST_F(Float, Comparisons) {
  for (const bool wide : {false, true}) {
    const Format& f = wide ? kDouble : kSingle;
    Case c = {.opcode = wide ? 0x02au : 0x00bu,
              .forms = {1, 4, 5, 6},
              .fields = {{62, 2}, {72, 8}, {87, 4}},
              .writes = Writes::kPredicates,
              .fixed = {{16, 8, 0}, {64, 8, 0}, {81, 3, kP}, {84, 3, kQ}},
              .swaps = false};
    if (wide) c.forms = {1, 2, 3, 7};
    if (!wide) c.fields.push_back({80, 1});
    EXPECT_GT(
        Check(
            c,
            [&](const Instruction& w, const State& state, uint32_t lane, const Sources& s) {
              const Operands o =
                  Take(f, With(w, 9, 3, IsImmediate(w) ? 4 : 1), s, !wide && w.Bits(80, 1) != 0);
              const uint32_t how = w.Bits(76, 4);
              const bool other = PredicateIn(state, w, 87, lane);
              if (wide && (how == 0 || how == 15)) {
                // MIN and MAX: whether the first is the one; whether both are NaN.
                const bool least = how == 0, both = f.IsNan(o.a) && f.IsNan(o.b);
                const bool zeros = f.IsZero(o.a) && f.IsZero(o.b);
                bool first = !f.IsNan(o.a) && f.IsNan(o.b);
                if (!f.IsNan(o.a) && !f.IsNan(o.b)) {
                  first = zeros ? f.IsNegative(o.a) == least : Compare(f, least ? 1 : 4, o.a, o.b);
                  if (!zeros && Compare(f, 2, o.a, o.b)) first = f.IsNegative(o.a) == least;
                }
                return Result{.p = first && other, .q = both};
              }
              const bool result = Compare(f, how, o.a, o.b);
              return Result{.p = Combine(w.Bits(74, 2), result, other),
                            .q = Combine(w.Bits(74, 2), !result, other)};
            },
            600),
        300);
  }
}
TEST_F(Float, SetsAndSelects) {
  EXPECT_GT(Check(
                {.opcode = 0x00a,
                 .forms = {1, 4, 5, 6},
                 .fields = {{62, 2}, {72, 9}, {87, 4}},
                 .fixed = {{64, 8, 0}},
                 .swaps = false},
                [](const Instruction& w, const State& state, uint32_t lane, const Sources& s) {
                  const Operands o =
                      Take(kSingle, With(w, 9, 3, IsImmediate(w) ? 4 : 1), s, w.Bits(80, 1) != 0);
                  const bool result = Compare(kSingle, w.Bits(76, 4), o.a, o.b);
                  return Result{Combine(w.Bits(74, 2), result, PredicateIn(state, w, 87, lane))
                                    ? 0x3f800000u
                                    : 0u};
                },
                400),
            250);
  EXPECT_GT(Check({.opcode = 0x008,
                   .forms = {1, 4, 5, 6},
                   .fields = {{62, 2}, {72, 2}, {80, 1}, {87, 4}},
                   .fixed = {{64, 8, 0}}},
                  [](const Instruction& w, const State& state, uint32_t lane, const Sources& s) {
                    const Operands o = Take(kSingle, w, s, w.Bits(80, 1) != 0);
                    return Result{PredicateIn(state, w, 87, lane) ? o.a : o.b};
                  }),
            180);
  EXPECT_GT(Check(
                {.opcode = 0x009,
                 .forms = {1, 4, 5, 6},
                 .fields = {{62, 2}, {72, 2}, {80, 2}, {87, 4}},
                 .fixed = {{64, 8, 0}}},
                [](const Instruction& w, const State& state, uint32_t lane, const Sources& s) {
                  const Operands o = Take(kSingle, w, s, w.Bits(80, 1) != 0);
                  return Result{Pick(kSingle, PredicateIn(state, w, 87, lane), w.Bits(81, 1) != 0,
                                     kNan, o.a, o.b)};
                },
                400),
            350);
}

// ---- fp16, bf16 --------------------------------------------------------------------------------
class Halves : public Property {
 protected:
  // Which half, what sign: a at 72..75, b at 60..63 (an immediate has both halves), c at 81..84.
  static uint64_t HalfOf(uint32_t word, uint32_t swizzle, bool absolute, bool negate,
                         uint32_t half) {
    const uint32_t from = swizzle == 0 ? half : swizzle == 2 ? 0 : 1;
    return Number{word >> (16 * from) & 0xffff}.Signed(kHalf, absolute, negate).bits;
  }
  static uint64_t A(const Instruction& w, const Sources& s, uint32_t half) {
    return HalfOf(s.a.low, w.Bits(74, 2), w.Bits(73, 1) != 0, w.Bits(72, 1) != 0, half);
  }
  static uint64_t At32(const Instruction& w, const Source& v, uint32_t half) {
    if (IsImmediate(w)) return HalfOf(v.low, 0, false, false, half);
    return HalfOf(v.low, w.Bits(60, 2), w.Bits(62, 1) != 0, w.Bits(63, 1) != 0, half);
  }
  static uint64_t At64(const Instruction& w, const Source& v, uint32_t half) {
    return HalfOf(v.low, w.Bits(81, 2), w.Bits(83, 1) != 0, w.Bits(84, 1) != 0, half);
  }
  static uint32_t Finish(const Instruction& w, const Format& f, Kind kind, uint64_t x, uint64_t y,
                         uint64_t z) {
    bool nan = false;
    const uint64_t bits = Compute(f, kind, x, y, z, 0, nan);
    if (w.Bits(77, 1) != 0) {
      if (nan || f.IsNegative(bits)) return 0;
      return static_cast<uint32_t>(std::min<uint64_t>(bits, &f == &kHalf ? 0x3c00 : 0x3f80));
    }
    return nan ? 0x7fff : static_cast<uint32_t>(bits);
  }
  static const Format& FormatOf(const Instruction& w, uint32_t at) {
    return w.Bits(at, 1) != 0 ? kBfloat : kHalf;
  }
};

TEST_F(Halves, Arithmetic) {
  const auto reference = [](Kind kind) {
    return [kind](const Instruction& w, const State&, uint32_t, const Sources& s) {
      const Format& f = FormatOf(w, 85);
      uint32_t out = 0;
      for (uint32_t half = 0; half < 2; ++half) {
        const bool swapped = kind == Kind::kFused && Swapped(w);
        const uint64_t b = swapped ? At64(w, s.b, half) : At32(w, s.b, half);
        const uint64_t c = kind != Kind::kFused ? 0
                           : swapped            ? At32(w, s.c, half)
                                                : At64(w, s.c, half);
        out |= Finish(w, f, kind, A(w, s, half), b, c) << (16 * half);
      }
      return Result{out};
    };
  };
  EXPECT_GT(Check({.opcode = 0x030,
                   .forms = {1, 2, 3, 7},
                   .fields = {{60, 4}, {72, 4}, {77, 1}, {85, 1}},
                   .fixed = {{64, 8, 0}},
                   .swaps = false},
                  reference(Kind::kSum), 800),
            300);
  EXPECT_GT(Check({.opcode = 0x032,
                   .forms = {1, 4, 5, 6},
                   .fields = {{60, 4}, {72, 4}, {77, 1}, {85, 1}},
                   .fixed = {{64, 8, 0}}},
                  reference(Kind::kProduct), 800),
            300);
  EXPECT_GT(Check({.opcode = 0x031, .fields = {{60, 4}, {72, 4}, {77, 1}, {81, 5}}},
                  reference(Kind::kFused), 1200),
            300);
  EXPECT_GT(Check({.opcode = 0x035, .fields = {{62, 2}, {72, 2}, {77, 1}, {83, 3}}},
                  reference(Kind::kFused), 400),
            300);
}
TEST_F(Halves, SumAsFloat) {
  EXPECT_GT(Check(
                {.opcode = 0x030,
                 .forms = {1, 2, 3, 7},
                 .fields = {{60, 4}, {72, 4}, {85, 1}},
                 .fixed = {{64, 8, 0}, {78, 1, 1}},
                 .swaps = false},
                [](const Instruction& w, const State&, uint32_t, const Sources& s) {
                  const Format& f = FormatOf(w, 85);
                  const uint64_t x = A(w, s, 0), y = At32(w, s.b, 0);
                  if (f.IsNan(x) || f.IsNan(y)) return Result{kNan};
                  if (f.IsInfinite(x) || f.IsInfinite(y)) {
                    if (f.IsInfinite(x) && f.IsInfinite(y) && x != y) return Result{kNan};
                    return Result{f.IsNegative(f.IsInfinite(x) ? x : y) ? 0xff800000 : 0x7f800000};
                  }
                  return Result{Rounded(kSingle, Sum(ExactOf(f, x), ExactOf(f, y), 0), 0)};
                },
                400),
            100);
}
TEST_F(Halves, Comparisons) {
  for (const bool is_set : {false, true}) {
    Case c = {.opcode = is_set ? 0x033u : 0x034u,
              .forms = {1, 2, 3, 7},
              .fields = {{60, 4}, {65, 1}, {69, 11}, {87, 4}},
              .writes = is_set ? Writes::kWord : Writes::kPredicates,
              .swaps = false};
    if (!is_set) c.fixed = {{16, 8, 0}, {64, 1, 0}, {66, 3, 0}, {81, 3, kP}, {84, 3, kQ}};
    if (is_set) c.fixed = {{64, 1, 0}, {66, 3, 0}};
    EXPECT_GT(Check(
                  c,
                  [&](const Instruction& w, const State& state, uint32_t lane, const Sources& s) {
                    const Format& f = FormatOf(w, 65);
                    const auto holds = [&](uint32_t half) {
                      return Compare(f, w.Bits(76, 4), A(w, s, half), At32(w, s.b, half));
                    };
                    const uint32_t how = w.Bits(69, 2);
                    const bool other = PredicateIn(state, w, 87, lane), flag = w.Bits(71, 1) != 0;
                    if (is_set) {  // .BF: 1.0 for true, else all ones
                      const uint32_t yes = !flag ? 0xffff : &f == &kBfloat ? 0x3f80 : 0x3c00;
                      return Result{(Combine(how, holds(0), other) ? yes : 0) |
                                    (Combine(how, holds(1), other) ? yes : 0) << 16};
                    }
                    const bool both = holds(0) && holds(1);
                    return Result{.p = Combine(how, flag ? both : holds(0), other),
                                  .q = Combine(how, flag ? !both : holds(1), other)};
                  },
                  1000),
              300);
  }
}
TEST_F(Halves, MinimaAndMaxima) {
  EXPECT_GT(Check(
                {.opcode = 0x040,
                 .forms = {1, 4, 5, 6},
                 .fields = {{60, 4}, {72, 4}, {81, 1}, {85, 1}, {87, 4}},
                 .fixed = {{64, 8, 0}},
                 .swaps = false},
                [](const Instruction& w, const State& state, uint32_t lane, const Sources& s) {
                  const Format& f = FormatOf(w, 85);
                  uint64_t out = 0;
                  for (uint32_t half = 0; half < 2; ++half) {
                    out |= Pick(f, PredicateIn(state, w, 87, lane), w.Bits(81, 1) != 0, 0x7fff,
                                A(w, s, half), At32(w, s.b, half))
                           << (16 * half);
                  }
                  return Result{out};
                },
                800),
            300);
}

}  // namespace
}  // namespace iket::sim::testing
