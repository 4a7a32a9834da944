// What lanes tell each other: votes, shuffles, matches, reductions, against the definitions of PTX.
#include <algorithm>

#include "sim/testing_property.h"

namespace iket::sim::testing {
namespace {

using sass::Instruction;

class Warpwide : public Property {
 protected:
  static uint32_t Voters(const State& state, const Instruction& w) {
    uint32_t votes = 0;
    for (uint32_t i = 0; i < kLanes; ++i) votes |= uint32_t{PredicateIn(state, w, 87, i)} << i;
    return votes & state.active;
  }
  static uint32_t A(const State& state, uint32_t lane) {
    return state.registers[(size_t{kFirstRow} + kA) * kLanes + lane];
  }
  static uint64_t WideA(const State& state, uint32_t lane) {
    return uint64_t{state.registers[(size_t{kFirstRow} + kA + 1) * kLanes + lane]} << 32 |
           A(state, lane);
  }
};

TEST_F(Warpwide, Vote) {
  const Lane reference = [](const Instruction& w, const State& state, uint32_t, const Sources&) {
    const uint32_t votes = Voters(state, w), mode = w.Bits(72, 2);  // ALL, ANY, EQ
    const bool all = votes == state.active, none = votes == 0;
    return Result{votes, mode == 0 ? all : mode == 1 ? !none : all || none};
  };
  EXPECT_GT(Check({.opcode = 0x006,
                   .forms = {4},
                   .fields = {{72, 2}, {87, 4}},
                   .writes = Writes::kWordAndPredicate,
                   .fixed = {{24, 8, 0}, {32, 32, 0}, {64, 8, 0}, {81, 3, kP}}},
                  reference),
            100);
}
TEST_F(Warpwide, Shfl) {
  // c holds the clamp in bits 0..4 and the mask of the segment in bits 8..12.
  const auto shuffle = [](const Instruction& w, const State& state, uint32_t lane, uint32_t b,
                          uint32_t c) {
    const int n = static_cast<int>(lane), delta = static_cast<int>(b % 32);
    const int clamp = static_cast<int>(c % 32), segment = static_cast<int>(c >> 8 & 31);
    const int least = n & segment, most = least | (clamp & (31 ^ segment));
    int from = 0;
    bool inside = false;
    switch (w.Bits(58, 2)) {
      case 0:  // idx
        from = least | (delta & (31 ^ segment));
        inside = from <= most;
        break;
      case 1:  // up
        from = n - delta;
        inside = from >= most;
        break;
      case 2:  // down
        from = n + delta;
        inside = from <= most;
        break;
      default:  // bfly
        from = n ^ delta;
        inside = from <= most;
        break;
    }
    if (!inside) from = n;
    // From a lane that does not take part comes nothing that is defined: here 0.
    const bool there = (state.active >> from & 1) != 0;
    return Result{there ? A(state, static_cast<uint32_t>(from)) : 0, inside};
  };
  Case c = {
      .opcode = 0x189, .forms = {1}, .fields = {{58, 2}}, .writes = Writes::kWordAndPredicate};
  c.fixed = {{81, 3, kP}};
  const Lane registers = [&](const Instruction& w, const State& state, uint32_t lane,
                             const Sources& s) {
    return shuffle(w, state, lane, s.b.low, s.c.low);
  };
  EXPECT_GT(Check(c, registers, 400), 350);
  // Immediates: b at 53, c at 40. Full warps, halves, quarters.
  for (const uint32_t clamp : {0x1fu, 0x0u, 0x100fu, 0x1807u, 0x1800u, 0x1f1fu, 0x181fu, 0x0aau}) {
    c = {.opcode = 0x189,
         .forms = {7},
         .fields = {{53, 5}, {58, 2}},
         .writes = Writes::kWordAndPredicate,
         .fixed = {{32, 8, 0}, {40, 13, clamp}, {64, 8, 0}, {81, 3, kP}, {91, 1, 0}}};
    EXPECT_GT(Check(
                  c,
                  [&](const Instruction& w, const State& state, uint32_t lane, const Sources&) {
                    return shuffle(w, state, lane, w.Bits(53, 5), w.Bits(40, 13));
                  },
                  60),
              50);
  }
}
TEST_F(Warpwide, Match) {
  for (const bool all : {false, true}) {
    Case c = {.opcode = 0x1a1,
              .forms = {1},
              .fields = {{73, 1}},
              .writes = Writes::kWordAndPredicate,
              .fixed = {{32, 8, 0}, {64, 8, 0}, {79, 1, all ? 0u : 1u}, {81, 3, all ? kP : 7u}}};
    EXPECT_GT(Check(c,
                    [&](const Instruction& w, const State& state, uint32_t lane, const Sources&) {
                      uint32_t same = 0;
                      for (uint32_t i = 0; i < kLanes; ++i) {
                        const bool equal = w.Bits(73, 1) != 0
                                               ? WideA(state, i) == WideA(state, lane)
                                               : A(state, i) == A(state, lane);
                        same |= uint32_t{equal} << i;
                      }
                      same &= state.active;
                      if (!all) return Result{same};
                      return Result{same == state.active ? same : 0, same == state.active};
                    }),
              180);
  }
}

// What goes to a uniform register, of the lanes that run.
class Reductions : public Warpwide {
 protected:
  void CheckUniform(const Instruction& word,
                    const std::function<void(const State&, State&)>& expect) {
    ASSERT_TRUE(OneWarp::IsBound(word)) << sass::Disassemble(word);
    for (uint32_t seed = 0; seed < 60; ++seed) {
      constexpr OneWarp::Kind kKinds[] = {OneWarp::Kind::kMixed, OneWarp::Kind::kTwoValues,
                                          OneWarp::Kind::kOneValue, OneWarp::Kind::kSmall};
      const State before = OneWarp::Random(seed, kKinds[seed % 4], seed % 3 == 0);
      State state = before, expected = before;
      expect(before, expected);
      warp_.Execute(word, state);
      ASSERT_EQ(state == expected, true)
          << fmt::format("{}: {:08x}, expected {:08x}", sass::Disassemble(word), state.uniform[kD],
                         expected.uniform[kD]);
    }
  }
  static Instruction Word(uint32_t opcode) {
    Instruction word{opcode | 0x7000, uint64_t{1} << sass::kControlShift};
    return With(With(word, 16, 6, kD), 24, 8, kA);
  }
  static uint32_t First(const State& state) {
    uint32_t lane = 0;
    while ((state.active >> lane & 1) == 0) ++lane;
    return lane;
  }
};

TEST_F(Reductions, Redux) {
  for (uint32_t function = 0; function < 6; ++function) {  // AND, OR, XOR, SUM, MIN, MAX
    for (const uint32_t is_signed : {0u, 1u}) {
      const Instruction word = With(With(Word(0x3c4), 73, 1, is_signed), 78, 3, function);
      CheckUniform(word, [&](const State& before, State& expected) {
        const uint32_t first = First(before);
        int64_t result = 0;
        for (uint32_t i = first; i < kLanes; ++i) {
          if ((before.active >> i & 1) == 0) continue;
          const uint32_t raw = A(before, i);
          const int64_t v = is_signed != 0 ? static_cast<int32_t>(raw) : int64_t{raw};
          if (i == first) {
            result = v;
          } else if (function == 0) {
            result &= v;
          } else if (function == 1) {
            result |= v;
          } else if (function == 2) {
            result ^= v;
          } else if (function == 3) {
            result += v;
          } else {
            result = function == 4 ? std::min(result, v) : std::max(result, v);
          }
        }
        expected.uniform[kD] = static_cast<uint32_t>(result);
      });
    }
  }
}
TEST_F(Reductions, Voteu) {
  for (uint32_t mode = 0; mode < 3; ++mode) {
    for (uint32_t source = 0; source < 16; ++source) {
      Instruction word = With(With(Word(0x886), 24, 8, 0), 72, 2, mode);
      word = With(With(word, 81, 3, kP), 87, 4, source);
      CheckUniform(word, [&](const State& before, State& expected) {
        const uint32_t votes = Voters(before, word);
        const bool all = votes == before.active, none = votes == 0;
        expected.uniform[kD] = votes;
        expected.uniform_predicate[kP] = mode == 0 ? all : mode == 1 ? !none : all || none;
      });
    }
  }
}
TEST_F(Reductions, Elect) {
  Instruction word = With(With(Word(0x82f), 24, 8, 0), 81, 3, kP);
  word = With(word, 87, 4, 7);
  CheckUniform(word, [&](const State& before, State& expected) {
    const uint32_t leader = 1u << First(before);
    expected.uniform[kD] = leader;
    expected.predicate[kP] = (before.predicate[kP] & ~before.active) | leader;
  });
}
TEST_F(Reductions, R2ur) {
  for (const uint32_t accumulates : {0u, 1u}) {
    const Instruction word = With(With(Word(0x2ca), 81, 3, kP), 84, 1, accumulates);
    CheckUniform(word, [&](const State& before, State& expected) {
      const uint32_t value = A(before, First(before));
      expected.uniform[kD] = value;
      for (uint32_t i = 0; i < kLanes; ++i) {
        if ((before.active >> i & 1) == 0) continue;
        const bool had = accumulates != 0 && (before.predicate[kP] >> i & 1) != 0;
        const bool differs = had || A(before, i) != value;
        expected.predicate[kP] = (expected.predicate[kP] & ~(1u << i)) | uint32_t{differs} << i;
      }
    });
  }
}

}  // namespace
}  // namespace iket::sim::testing
