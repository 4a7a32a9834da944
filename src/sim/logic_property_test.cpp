// Logic, shifts, bit fields, bytes and predicates as data, bit by bit.
#include <algorithm>

#include "sim/testing_property.h"

namespace iket::sim::testing {
namespace {

using sass::Instruction;

bool BitOf(uint64_t v, uint32_t at) { return at < 64 && (v >> at & 1) != 0; }
// Bit (a, b, c) of a table: the first operand counts most.
bool Table(uint32_t lut, bool a, bool b, bool c) {
  return (lut >> ((a ? 4 : 0) + (b ? 2 : 0) + (c ? 1 : 0)) & 1) != 0;
}

class Logic : public Property {
 protected:
  static Result Lop3(const Instruction& w, const State& state, uint32_t lane, const Sources& s,
                     bool uniform) {
    uint32_t out = 0;
    for (uint32_t i = 0; i < 32; ++i) {
      out |= uint32_t{Table(w.Bits(72, 8), BitOf(s.a.low, i), BitOf(s.b.low, i), BitOf(s.c.low, i))}
             << i;
    }
    const bool other = PredicateIn(state, w, 87, lane, uniform);
    return {out, w.Bits(80, 1) != 0 ? out != 0 && other : out != 0 || other};
  }
  // PTX shf and the shifts that SHF stands in for: bit i of the result comes from bit i -+ count.
  static Result Shift(const Instruction& w, const Sources& s) {
    const uint32_t type = w.Bits(73, 2), bits = type < 2 ? 64 : 32;  // S64, U64, S32, U32
    const bool is_signed = type % 2 == 0, right = w.Bits(76, 1) != 0;
    const uint32_t count = w.Bits(75, 1) != 0 ? s.b.low % bits : std::min(s.b.low, bits);
    const uint64_t value = uint64_t{s.c.low} << 32 | s.a.low;
    uint32_t out = 0;
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t place = i + (w.Bits(80, 1) != 0 ? 32 : 0);
      bool bit = false;
      if (right) {
        const uint32_t from = place + count;
        bit = from < 64 ? BitOf(value, from) : is_signed && BitOf(value, 63);
      } else if (place >= count) {
        bit = BitOf(value, place - count);
      }
      out |= uint32_t{bit} << i;
    }
    return {out};
  }
  static Result Permute(const Instruction& w, const Sources& s) {
    const auto byte = [&](uint32_t n) {
      return (n < 4 ? s.a.low : s.c.low) >> (8 * (n % 4)) & 0xff;
    };
    const uint32_t mode = w.Bits(72, 3), n = s.b.low % 4;
    // PTX prmt, modes f4e, b4e, rc8, ecl, ecr, rc16: bytes 3, 2, 1, 0 for each value of n.
    static constexpr uint32_t kModes[7][4] = {{},
                                              {0x3210, 0x4321, 0x5432, 0x6543},
                                              {0x5670, 0x6701, 0x7012, 0x0123},
                                              {0x0000, 0x1111, 0x2222, 0x3333},
                                              {0x3210, 0x3211, 0x3222, 0x3333},
                                              {0x0000, 0x1110, 0x2210, 0x3210},
                                              {0x1010, 0x3232, 0x1010, 0x3232}};
    const uint32_t picks = mode == 0 ? s.b.low : kModes[mode][n];
    uint32_t out = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t pick = picks >> (4 * i) & 15;
      uint32_t value = byte(pick & 7);
      if ((pick & 8) != 0) value = value >= 0x80 ? 0xff : 0;
      out |= value << (8 * i);
    }
    return {out};
  }
};

TEST_F(Logic, Lop3) {
  for (const bool uniform : {false, true}) {
    Case c = {.opcode = uniform ? 0x092u : 0x012u,
              .forms = {1, 4, 5, 6},
              .fields = {{72, 9}, {87, 4}},
              .writes = Writes::kWordAndPredicate,
              .uniform = uniform,
              .fixed = {{81, 3, kP}}};
    if (uniform) c.forms = {1, 4};
    const auto reference = [uniform](const Instruction& w, const State& state, uint32_t lane,
                                     const Sources& s) { return Lop3(w, state, lane, s, uniform); };
    EXPECT_GT(Check(c, reference), 180);
    c.fixed = {{81, 3, 7}};
    EXPECT_GT(Check(c, reference), 180);
    // Those that have a handler of their own.
    for (const uint32_t lut : {0xc0u, 0x3cu, 0xfcu, 0x30u, 0x0cu, 0x33u, 0xf8u, 0xeau}) {
      c.fixed = {{81, 3, 7}, {72, 8, lut}};
      EXPECT_GT(Check(c, reference, 20), 15);
    }
  }
}
TEST_F(Logic, Shf) {
  const auto reference = [](const Instruction& w, const State&, uint32_t, const Sources& s) {
    return Shift(w, s);
  };
  EXPECT_GT(Check({.opcode = 0x019, .fields = {{73, 4}, {80, 1}}}, reference, 600), 500);
  EXPECT_GT(
      Check({.opcode = 0x099, .forms = {1, 2, 4}, .fields = {{73, 4}, {80, 1}}, .uniform = true},
            reference, 600),
      500);
  // Counts of immediates that matter.
  for (uint32_t count = 0; count < 70; ++count) {
    EXPECT_GT(Check({.opcode = 0x019,
                     .forms = {4},
                     .fields = {{73, 4}, {80, 1}},
                     .fixed = {{32, 32, count}}},
                    reference, 20),
              15);
  }
}
TEST_F(Logic, Prmt) {
  const auto reference = [](const Instruction& w, const State&, uint32_t, const Sources& s) {
    return Permute(w, s);
  };
  EXPECT_GT(Check({.opcode = 0x016, .fields = {{72, 3}}}, reference, 400), 300);
  EXPECT_GT(Check({.opcode = 0x096, .forms = {1, 4}, .fields = {{72, 3}}, .uniform = true},
                  reference, 400),
            300);
}
TEST_F(Logic, Sel) {
  for (const bool uniform : {false, true}) {
    Case c = {.opcode = uniform ? 0x087u : 0x007u,
              .forms = {1, 4, 5, 6},
              .fields = {{87, 4}},
              .uniform = uniform,
              .fixed = {{64, 8, 0}}};
    if (uniform) c.forms = {1, 4};
    EXPECT_GT(
        Check(c,
              [uniform](const Instruction& w, const State& state, uint32_t lane, const Sources& s) {
                return Result{PredicateIn(state, w, 87, lane, uniform) ? s.a.low : s.b.low};
              }),
        150);
  }
}
TEST_F(Logic, Moves) {
  EXPECT_GT(
      Check(
          {.opcode = 0x002, .forms = {1, 4, 5, 6}, .fixed = {{24, 8, 0}, {64, 8, 0}, {72, 4, 15}}},
          [](const Instruction&, const State&, uint32_t, const Sources& s) {
            return Result{s.b.low};
          }),
      180);
  EXPECT_GT(Check({.opcode = 0x082,
                   .forms = {4, 6},
                   .uniform = true,
                   .fixed = {{24, 8, 0}, {64, 8, 0}, {91, 1, 0}}},
                  [](const Instruction&, const State&, uint32_t, const Sources& s) {
                    return Result{s.b.low};
                  }),
            50);
}

// One source, a register or its complement.
TEST_F(Logic, FirstBit) {
  for (const bool uniform : {false, true}) {
    Case c = {.opcode = uniform ? 0x0bdu : 0x100u,
              .forms = {1, 4, 5, 6},
              .fields = {{63, 1}, {73, 2}},
              .writes = Writes::kWordAndPredicate,
              .uniform = uniform,
              .fixed = {{24, 8, 0}, {64, 8, 0}, {81, 3, kP}}};
    if (uniform) c.forms = {1, 4};
    EXPECT_GT(Check(c,
                    [](const Instruction& w, const State&, uint32_t, const Sources& s) {
                      const uint32_t b = NegatesB(w) ? ~s.b.low : s.b.low;
                      const bool is_signed = w.Bits(73, 1) != 0;
                      for (uint32_t i = 32; i-- > 0;) {
                        const bool sign = is_signed && BitOf(b, 31);
                        if (BitOf(b, i) == sign) continue;
                        return Result{w.Bits(74, 1) != 0 ? 31 - i : i, true};
                      }
                      return Result{0xffffffff, false};
                    }),
              180);
  }
}
TEST_F(Logic, CountsAndReverses) {
  for (const bool uniform : {false, true}) {
    Case c = {.opcode = uniform ? 0x0bfu : 0x109u,
              .forms = {1, 4, 5, 6},
              .fields = {{63, 1}},
              .uniform = uniform,
              .fixed = {{24, 8, 0}, {64, 8, 0}}};
    if (uniform) c.forms = {1, 4};
    EXPECT_GT(Check(c,
                    [](const Instruction& w, const State&, uint32_t, const Sources& s) {
                      uint32_t count = 0;
                      for (uint32_t i = 0; i < 32; ++i) count += BitOf(s.b.low, i) != NegatesB(w);
                      return Result{count};
                    }),
              180);
    c.opcode = uniform ? 0x0be : 0x101;
    c.fields = {};
    EXPECT_GT(Check(c,
                    [](const Instruction&, const State&, uint32_t, const Sources& s) {
                      uint32_t out = 0;
                      for (uint32_t i = 0; i < 32; ++i)
                        out |= uint32_t{BitOf(s.b.low, i)} << (31 - i);
                      return Result{out};
                    }),
              180);
  }
}
TEST_F(Logic, Fields) {
  for (const bool uniform : {false, true}) {
    Case c = {.opcode = uniform ? 0x09bu : 0x01bu,
              .forms = {1, 4, 5, 6},
              .fields = {{75, 1}},
              .uniform = uniform,
              .fixed = {{64, 8, 0}}};
    if (uniform) c.forms = {1, 4};
    // PTX bmsk: b ones from bit a up; .wrap takes both modulo 32, .clamp stops at 32.
    EXPECT_GT(Check(c,
                    [](const Instruction& w, const State&, uint32_t, const Sources& s) {
                      const bool wrap = w.Bits(75, 1) != 0;
                      const uint64_t a = wrap ? s.a.low % 32 : std::min(s.a.low, 32u);
                      const uint64_t b = wrap ? s.b.low % 32 : std::min(s.b.low, 32u);
                      uint32_t out = 0;
                      for (uint32_t i = 0; i < 32; ++i) out |= uint32_t{i >= a && i < a + b} << i;
                      return Result{out};
                    }),
              180);
    c.opcode = uniform ? 0x09a : 0x01a;
    c.fields = {{73, 1}, {75, 1}};
    // PTX szext: the low b bits of a.
    EXPECT_GT(Check(c,
                    [](const Instruction& w, const State&, uint32_t, const Sources& s) {
                      const bool is_signed = w.Bits(73, 1) != 0;
                      const uint32_t b = w.Bits(75, 1) != 0 ? s.b.low % 32 : std::min(s.b.low, 32u);
                      uint32_t out = 0;
                      for (uint32_t i = 0; i < 32; ++i) {
                        const bool bit =
                            i < b ? BitOf(s.a.low, i) : b > 0 && is_signed && BitOf(s.a.low, b - 1);
                        out |= uint32_t{bit} << i;
                      }
                      return Result{out};
                    }),
              180);
  }
}
TEST_F(Logic, Plop3) {
  // Three predicates; of the first table bits 0..2 stand at 64, the others at 72.
  for (const bool uniform : {false, true}) {
    const Case c = {
        .opcode = uniform ? 0x09cu : 0x01cu,
        .forms = {4},
        .fields = {{16, 8}, {64, 3}, {68, 4}, {72, 5}, {77, 4}, {87, 4}},
        .writes = Writes::kPredicates,
        .uniform = uniform,
        .fixed = {{24, 8, 0}, {32, 32, 0}, {67, 1, 0}, {81, 3, kP}, {84, 3, kQ}, {91, 1, 0}}};
    EXPECT_GT(
        Check(c,
              [uniform](const Instruction& w, const State& state, uint32_t lane, const Sources&) {
                const bool a = PredicateIn(state, w, 87, lane, uniform);
                const bool b = PredicateIn(state, w, 77, lane, uniform);
                const bool third = PredicateIn(state, w, 68, lane, uniform);
                return Result{.p = Table(w.Bits(64, 3) | w.Bits(72, 5) << 3, a, b, third),
                              .q = Table(w.Bits(16, 8), a, b, third)};
              }),
        180);
  }
}
TEST_F(Logic, PredicatesAsBits) {
  EXPECT_GT(Check({.opcode = 0x003,
                   .forms = {4},
                   .fields = {{32, 7}, {76, 2}},
                   .fixed = {{39, 25, 0}, {64, 8, 0}}},
                  [](const Instruction& w, const State& state, uint32_t lane, const Sources& s) {
                    uint32_t out = s.a.low;
                    for (uint32_t p = 0; p < 7; ++p) {
                      if (!BitOf(w.Bits(32, 7), p)) continue;
                      const uint32_t at = p + 8 * w.Bits(76, 2);
                      out = (out & ~(1u << at)) | (state.predicate[p] >> lane & 1) << at;
                    }
                    return Result{out};
                  }),
            180);
}

}  // namespace
}  // namespace iket::sim::testing
