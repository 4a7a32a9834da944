// Integer instructions against arithmetic in 128 bits.
#include <algorithm>

#include "sim/testing_property.h"

namespace iket::sim::testing {
namespace {

using sass::Instruction;
using Int = __int128;

Int Signed(uint32_t v) { return static_cast<int32_t>(v); }
Int Value(uint32_t v, bool is_signed) { return is_signed ? Signed(v) : Int{v}; }

// "-x", and with a carry in, "not x".
Int Term(uint32_t v, bool negate, bool extended) {
  return !negate ? Int{v} : Int{~v} + (extended ? 0 : 1);
}
bool Compare(uint32_t how, Int a, Int b) {
  switch (how) {
    case 0:
      return false;
    case 1:
      return a < b;
    case 2:
      return a == b;
    case 3:
      return a <= b;
    case 4:
      return a > b;
    case 5:
      return a != b;
    case 6:
      return a >= b;
    default:
      return true;
  }
}
bool Combine(uint32_t how, bool a, bool b) {
  return how == 0 ? a && b : how == 1 ? a || b : a != b;
}

class Integer : public Property {
 protected:
  // ISETP and UISETP: with .EX the high words of two numbers, whose low words compared so.
  static Result Setp(const Instruction& w, const State& state, uint32_t lane, const Sources& s,
                     bool uniform) {
    const bool is_signed = w.Bits(73, 1) != 0;
    const Int a = Value(s.a.low, is_signed), b = Value(s.b.low, is_signed);
    bool result = Compare(w.Bits(76, 3), a, b);
    const uint32_t how = w.Bits(76, 3);
    if (w.Bits(72, 1) != 0 && how != 0 && how != 7) {
      const bool low = PredicateIn(state, w, 68, lane, uniform);
      if (a == b) result = low;
      if (how == 5) result = a != b || low;
    }
    const bool other = PredicateIn(state, w, 87, lane, uniform);
    return {.p = Combine(w.Bits(74, 2), result, other),
            .q = Combine(w.Bits(74, 2), !result, other)};
  }
  static Result Sum3(const Instruction& w, const State& state, uint32_t lane, const Sources& s,
                     bool uniform) {
    const bool x = w.Bits(74, 1) != 0;
    Int sum = Term(s.a.low, NegatesA(w), x) + Term(s.b.low, NegatesB(w, uniform), x) +
              Term(s.c.low, NegatesC(w, uniform), x);
    if (x) {
      sum += PredicateIn(state, w, 87, lane, uniform);
      sum += PredicateIn(state, w, 77, lane, uniform);
    }
    return {static_cast<uint32_t>(sum), sum >> 32 >= 1, sum >> 32 >= 2};
  }
  // a b + c modulo 2^64; the carry out of the 64 bits.
  static Int Product(const Instruction& w, const State& state, uint32_t lane, const Sources& s,
                     bool uniform, bool& carry) {
    const bool is_signed = w.Bits(73, 1) != 0, x = w.Bits(74, 1) != 0;
    const Int mask = (Int{1} << 64) - 1;
    uint64_t c = s.c.wide();
    if (s.c.is_immediate) c = static_cast<uint64_t>(Value(s.c.low, is_signed) & mask);
    if (NegatesC(w, uniform)) c = x ? ~c : 0 - c;
    const Int product = Value(s.a.low, is_signed) * Value(s.b.low, is_signed) & mask;
    const Int sum = product + Int{c} + (x && PredicateIn(state, w, 87, lane, uniform) ? 1 : 0);
    carry = (sum >> 64 & 1) != 0;
    return sum & mask;
  }
  static Result Lea(const Instruction& w, const State& state, uint32_t lane, const Sources& s,
                    bool uniform) {
    const uint32_t shift = w.Bits(75, 5);
    const bool x = w.Bits(74, 1) != 0, high = w.Bits(80, 1) != 0, sx32 = w.Bits(73, 1) != 0;
    const Int a = sx32 ? Signed(s.a.low) : (Int{s.c.low} << 32) + s.a.low;
    const Int shifted = a << shift;
    const auto term = static_cast<uint32_t>(high ? shifted >> 32 : shifted);
    Int sum = Term(term, NegatesA(w), x) + Term(s.b.low, NegatesB(w, uniform), x);
    if (x) sum += PredicateIn(state, w, 87, lane, uniform);
    return {static_cast<uint32_t>(sum), sum >> 32 != 0};
  }
};

TEST_F(Integer, Iadd3) {
  const auto reference = [](const Instruction& w, const State& state, uint32_t lane,
                            const Sources& s) { return Sum3(w, state, lane, s, false); };
  const Case plain = {.opcode = 0x010,
                      .forms = {1, 4, 5, 6},
                      .fields = {{63, 1}, {72, 1}, {75, 1}},
                      .writes = Writes::kWordAndBoth,
                      .fixed = {{81, 3, kP}, {84, 3, kQ}, {77, 4, 15}, {87, 4, 15}}};
  EXPECT_GT(Check(plain, reference), 180);
  Case extended = plain;
  extended.fields = {{63, 1}, {72, 1}, {75, 1}, {77, 4}, {87, 4}};
  extended.fixed = {{81, 3, kP}, {84, 3, kQ}, {74, 1, 1}};
  EXPECT_GT(Check(extended, reference), 180);
}
TEST_F(Integer, Uiadd3) {
  const auto reference = [](const Instruction& w, const State& state, uint32_t lane,
                            const Sources& s) { return Sum3(w, state, lane, s, true); };
  const Case plain = {.opcode = 0x090,
                      .forms = {1, 4},
                      .fields = {{63, 1}, {72, 1}, {75, 1}},
                      .writes = Writes::kWordAndBoth,
                      .uniform = true,
                      .fixed = {{81, 3, kP}, {84, 3, kQ}, {77, 4, 15}, {87, 4, 15}}};
  EXPECT_GT(Check(plain, reference), 180);
  Case extended = plain;
  extended.fields = {{63, 1}, {72, 1}, {75, 1}, {77, 4}, {87, 4}};
  extended.fixed = {{81, 3, kP}, {84, 3, kQ}, {74, 1, 1}};
  EXPECT_GT(Check(extended, reference), 180);
}
TEST_F(Integer, Viadd) {
  EXPECT_GT(
      Check({.opcode = 0x036, .forms = {1, 4, 5, 6}, .fields = {{63, 1}}, .fixed = {{64, 8, 0}}},
            [](const Instruction& w, const State&, uint32_t, const Sources& s) {
              const Int b = Signed(s.b.low);
              return Result{static_cast<uint32_t>(Signed(s.a.low) + (NegatesB(w) ? -b : b))};
            }),
      180);
}
TEST_F(Integer, ImadLow) {
  const auto reference = [](const Instruction& w, const State& state, uint32_t lane,
                            const Sources& s) {
    bool carry = false;
    Sources low = s;
    low.c.high = 0;
    return Result{
        static_cast<uint32_t>(Product(w, state, lane, low, w.Bits(0, 9) == 0x0a4, carry))};
  };
  Case c = {
      .opcode = 0x024, .fields = {{63, 1}, {73, 1}, {75, 1}}, .fixed = {{81, 3, 7}, {87, 4, 15}}};
  EXPECT_GT(Check(c, reference), 90);
  c.fields = {{63, 1}, {73, 1}, {75, 1}, {87, 4}};
  c.fixed = {{81, 3, 7}, {74, 1, 1}};
  EXPECT_GT(Check(c, reference), 90);
  c.opcode = 0x0a4;
  c.uniform = true;
  c.forms = {1, 2, 4};
  EXPECT_GT(Check(c, reference), 90);
}
TEST_F(Integer, ImadWideAndHigh) {
  for (const bool uniform : {false, true}) {
    for (const bool high : {false, true}) {
      if (uniform && high) continue;  // there is none
      const auto reference = [=](const Instruction& w, const State& state, uint32_t lane,
                                 const Sources& s) {
        bool carry = false;
        const Int sum = Product(w, state, lane, s, uniform, carry);
        return Result{static_cast<uint64_t>(high ? sum >> 32 : sum), carry};
      };
      for (const uint32_t extended : {0u, 1u}) {
        Case c = {.opcode = (uniform ? 0x0a5u : 0x025u) + (high ? 2 : 0),
                  .fields = {{63, 1}, {73, 1}, {75, 1}},
                  .writes = high ? Writes::kWordAndPredicate : Writes::kPairAndPredicate,
                  .uniform = uniform,
                  .fixed = {{74, 1, extended}}};
        c.forms = {1, 3, 4, 5, 6, 7};
        if (uniform) c.forms = {1, 4};
        if (extended != 0) {
          c.fields.push_back({87, 4});
        } else {
          c.fixed.push_back({87, 4, 15});
        }
        c.fixed.push_back({81, 3, kP});
        EXPECT_GT(Check(c, reference), 40);
        c.fixed.back() = {81, 3, 7};
        EXPECT_GT(Check(c, reference), 90);
      }
    }
  }
}
TEST_F(Integer, Setp) {
  for (const bool uniform : {false, true}) {
    for (const uint32_t extended : {0u, 1u}) {
      Case c = {.opcode = uniform ? 0x08cu : 0x00cu,
                .forms = {1, 4, 5, 6},
                .fields = {{73, 6}, {87, 4}},
                .writes = Writes::kPredicates,
                .uniform = uniform,
                .fixed = {{72, 1, extended}, {81, 3, kP}, {84, 3, kQ}, {16, 8, 0}, {64, 4, 0}}};
      if (uniform) c.forms = {1, 4};
      if (extended != 0) {
        c.fields.push_back({68, 4});
      } else {
        c.fixed.push_back({68, 4, 7});
      }
      EXPECT_GT(Check(c, [uniform](const Instruction& w, const State& state, uint32_t lane,
                                   const Sources& s) { return Setp(w, state, lane, s, uniform); }),
                90);
    }
  }
}
TEST_F(Integer, MinimaAndMaxima) {
  const auto pick = [](bool least, Int x, Int y) {
    return least ? std::min(x, y) : std::max(x, y);
  };
  // IMNMX has its sign at 73, VIMNMX at 72.
  for (const uint32_t opcode : {0x017u, 0x048u}) {
    const uint32_t sign = opcode == 0x017 ? 73 : 72;
    EXPECT_GT(Check({.opcode = opcode,
                     .forms = {1, 4, 5, 6},
                     .fields = {{sign, 1}, {87, 4}},
                     .fixed = {{64, 8, 0}, {81, 6, opcode == 0x017 ? 0u : 63u}}},
                    [&](const Instruction& w, const State& state, uint32_t lane, const Sources& s) {
                      const bool is_signed = w.Bits(sign, 1) != 0;
                      return Result{static_cast<uint32_t>(pick(PredicateIn(state, w, 87, lane),
                                                               Value(s.a.low, is_signed),
                                                               Value(s.b.low, is_signed)))};
                    }),
              180);
  }
  EXPECT_GT(Check({.opcode = 0x046, .fields = {{63, 1}, {72, 1}, {75, 1}, {87, 4}}},
                  [&](const Instruction& w, const State& state, uint32_t lane, const Sources& s) {
                    const bool is_signed = w.Bits(72, 1) != 0;
                    const uint32_t b = NegatesB(w) ? 0 - s.b.low : s.b.low;
                    const uint32_t sum = s.a.low + b;
                    return Result{static_cast<uint32_t>(pick(PredicateIn(state, w, 87, lane),
                                                             Value(sum, is_signed),
                                                             Value(s.c.low, is_signed)))};
                  }),
            50);
  EXPECT_GT(Check({.opcode = 0x00f, .forms = {1, 4, 5, 6}, .fields = {{72, 1}, {87, 4}}},
                  [&](const Instruction& w, const State& state, uint32_t lane, const Sources& s) {
                    const bool is_signed = w.Bits(72, 1) != 0;
                    const bool least = PredicateIn(state, w, 87, lane);
                    return Result{static_cast<uint32_t>(pick(
                        least, pick(least, Value(s.a.low, is_signed), Value(s.b.low, is_signed)),
                        Value(s.c.low, is_signed)))};
                  }),
            180);
}
TEST_F(Integer, Lea) {
  for (const bool uniform : {false, true}) {
    for (const uint32_t variant : {0u, 1u, 2u, 3u}) {  // HI, SX32 by bits
      const uint32_t high = variant & 1, sx32 = variant >> 1;
      for (const uint32_t extended : {0u, 1u}) {
        const bool third = high != 0 && sx32 == 0;
        Case c = {.opcode = uniform ? 0x091u : 0x011u,
                  .forms = {1, 4, 5, 6},
                  .fields = {{63, 1}, {72, 1}, {75, 5}},
                  .writes = Writes::kWordAndPredicate,
                  .uniform = uniform,
                  .fixed = {{73, 1, sx32}, {74, 1, extended}, {80, 1, high}, {81, 3, kP}}};
        if (uniform) c.forms = {1, 4};
        if (extended != 0) {
          c.fields.push_back({87, 4});
        } else {
          c.fixed.push_back({87, 4, 15});
        }
        if (!third) c.fixed.push_back({64, 8, uniform ? 63u : 255u});
        EXPECT_GT(
            Check(c,
                  [&](const Instruction& w, const State& state, uint32_t lane, const Sources& s) {
                    Sources t = s;
                    if (!third) t.c = {};
                    return Lea(w, state, lane, t, uniform);
                  }),
            180);
      }
    }
  }
}
TEST_F(Integer, AbsoluteValues) {
  EXPECT_GT(Check({.opcode = 0x013, .forms = {1, 4, 5, 6}, .fixed = {{24, 8, 0}, {64, 8, 0}}},
                  [](const Instruction&, const State&, uint32_t, const Sources& s) {
                    const Int b = Signed(s.b.low);
                    return Result{static_cast<uint32_t>(b < 0 ? -b : b)};
                  }),
            180);
  EXPECT_GT(Check({.opcode = 0x014, .fields = {{73, 1}}, .fixed = {{81, 3, 7}}},
                  [](const Instruction& w, const State&, uint32_t, const Sources& s) {
                    const bool is_signed = w.Bits(73, 1) != 0;
                    const Int d = Value(s.a.low, is_signed) - Value(s.b.low, is_signed);
                    return Result{static_cast<uint32_t>((d < 0 ? -d : d) + s.c.low)};
                  }),
            180);
}
TEST_F(Integer, DotProducts) {
  EXPECT_GT(Check({.opcode = 0x026, .forms = {1, 5, 6}, .fields = {{73, 2}, {76, 2}}},
                  [](const Instruction& w, const State&, uint32_t, const Sources& s) {
                    const bool sa = w.Bits(73, 1) != 0, sb = w.Bits(74, 1) != 0;
                    const bool two = w.Bits(76, 1) != 0, high = w.Bits(77, 1) != 0;
                    const auto part = [](uint32_t v, uint32_t at, uint32_t width, bool sign) {
                      Int x = v >> at & ((1u << width) - 1);
                      if (sign && (x >> (width - 1) & 1) != 0) x -= Int{1} << width;
                      return x;
                    };
                    Int sum = s.c.low;
                    for (uint32_t i = 0; i < (two ? 2 : 4); ++i) {
                      sum += part(s.a.low, (two ? 16 : 8) * i, two ? 16 : 8, sa) *
                             part(s.b.low, 8 * i + (two && high ? 16 : 0), 8, sb);
                    }
                    return Result{static_cast<uint32_t>(sum)};
                  }),
            90);
}
TEST_F(Integer, Saturation) {
  EXPECT_GT(Check({.opcode = 0x038,
                   .forms = {1, 4, 5, 6},
                   .fields = {{76, 2}},
                   .fixed = {{24, 8, 0}, {64, 8, 0}}},
                  [](const Instruction& w, const State&, uint32_t, const Sources& s) {
                    const bool is_signed = w.Bits(76, 1) != 0;
                    const uint32_t bits = w.Bits(77, 1) != 0 ? 16 : 8;
                    const Int high = (Int{1} << (is_signed ? bits - 1 : bits)) - 1;
                    const Int low = is_signed ? -high - 1 : 0;
                    return Result{static_cast<uint32_t>(std::clamp(Signed(s.b.low), low, high))};
                  }),
            150);
}

}  // namespace
}  // namespace iket::sim::testing
