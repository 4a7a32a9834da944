// testing_property.h: one instruction against a reference, on random operands, in all its forms.
//
// A test says which opcode, which fields are its modifiers, and what a lane's result is, written
// from the definition and without a look at the executor. Checked is the whole state of the warp:
// what is not the result must be as it was.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "sim/testing_one_warp.h"

namespace iket::sim::testing {

// Where the tests put operands: R20 = R8 op R12 op R16 (each with the next register, for wide
// ones), the same numbers of uniform registers, P1 and P2 as results.
inline constexpr uint32_t kD = 20, kA = 8, kB = 12, kC = 16, kP = 1, kQ = 2;

inline sass::Instruction With(sass::Instruction word, uint32_t at, uint32_t width, uint64_t value) {
  const uint64_t mask = ((uint64_t{1} << width) - 1) << at % 64;
  uint64_t& half = at < 64 ? word.low : word.high;
  half = (half & ~mask) | (value << at % 64 & mask);
  return word;
}

// A source of 64 bits; of narrower instructions the low half is all.
struct Source {
  uint32_t low = 0, high = 0;
  bool is_immediate = false;
  uint64_t wide() const { return uint64_t{high} << 32 | low; }
};
struct Sources {
  Source a, b, c;
};
// What an instruction leaves: values, and which of them there are.
struct Result {
  uint64_t d = 0;
  bool p = false, q = false;
};
enum class Writes { kWord, kPair, kPredicates, kWordAndPredicate, kWordAndBoth, kPairAndPredicate };

class Property : public ::testing::Test {
 protected:
  using State = OneWarp::State;
  struct Field {
    uint32_t at, width;
  };
  using Lane =
      std::function<Result(const sass::Instruction&, const State&, uint32_t lane, const Sources&)>;
  struct Case {
    uint32_t opcode;  // the low nine bits
    std::vector<uint32_t> forms = {1, 2, 3, 4, 5, 6, 7};
    std::vector<Field> fields = {};  // modifiers, each of which takes random values
    Writes writes = Writes::kWord;
    bool uniform = false;
    // Fields that hold a value.
    std::vector<std::array<uint32_t, 3>> fixed = {};
    bool swaps = true;  // in forms 2, 3 and 7 the operand at bit 32 is the third
  };

  static bool PredicateIn(const State& state, const sass::Instruction& word, uint32_t at,
                          uint32_t lane, bool uniform = false) {
    const uint32_t n = word.Bits(at, 3);
    const bool value = uniform ? state.uniform_predicate[n] : (state.predicate[n] >> lane & 1) != 0;
    return value != (word.Bits(at + 3, 1) != 0);
  }

  // Runs `count` random words of the case; returns how many were known and so compared.
  int Check(const Case& c, const Lane& reference, int count = 200) {
    Draw random(c.opcode);
    int compared = 0;
    for (int i = 0; i < count; ++i) {
      const uint32_t form = c.forms[random() % c.forms.size()];
      const sass::Instruction word = Random(c, form, random);
      if (!OneWarp::IsBound(word)) continue;
      ++compared;
      CheckWord(c, word, reference, random);
      if (::testing::Test::HasFailure()) return compared;
    }
    return compared;
  }

  OneWarp warp_;

 private:
  static sass::Instruction Random(const Case& c, uint32_t form, Draw& random) {
    sass::Instruction word{c.opcode | form << 9 | 0x7000, uint64_t{1} << sass::kControlShift};
    const uint32_t bits = c.uniform ? 6 : 8;
    word = With(word, 16, bits, kD);
    word = With(word, 24, bits, kA);
    word = With(word, 64, bits, form == 2 || form == 3 || form == 7 ? kB : kC);
    switch (form) {
      case 2:
      case 4:
        word = With(word, 32, 32, OneWarp::Value(random));
        break;
      case 3:
      case 5:
        word = With(word, 38, 16, random() % 1000 * 4);
        word = With(word, 54, 5, random() % 4);
        break;
      default:
        word = With(word, 32, form == 1 && !c.uniform ? 8 : 6, form == 7 ? kC : kB);
        break;
    }
    if (form >= 6 || c.uniform) word = With(word, 91, 1, 1);
    const bool immediate = form == 2 || form == 4;
    for (const Field& field : c.fields) {
      if (field.at >= 60 && field.at < 64 && immediate) continue;
      word = With(word, field.at, field.width, random());
    }
    for (const auto& [at, width, value] : c.fixed) word = With(word, at, width, value);
    return word;
  }

  Source At32(const sass::Instruction& word, const State& state, uint32_t lane,
              bool uniform) const {
    const uint32_t form = word.Bits(9, 3);
    switch (form) {
      case 2:
      case 4:
        return {word.Bits(32, 32), 0, true};
      case 3:
      case 5: {
        const uint32_t bank = word.Bits(54, 5), offset = word.Bits(38, 16);
        return {warp_.constant(bank, offset), warp_.constant(bank, offset + 4), false};
      }
      default:
        if (uniform || form >= 6) {
          const uint32_t n = word.Bits(32, 6);
          return {state.uniform[n], state.uniform[n + 1], false};
        }
        return General(state, word.Bits(32, 8), lane);
    }
  }
  static Source General(const State& state, uint32_t number, uint32_t lane) {
    const auto at = [&](uint32_t n) {
      return state.registers[(size_t{kFirstRow} + n) * kLanes + lane];
    };
    return {at(number), at(number + 1), false};
  }
  Sources Read(const Case& c, const sass::Instruction& word, const State& state,
               uint32_t lane) const {
    const uint32_t form = word.Bits(9, 3);
    Sources sources;
    if (c.uniform) {
      sources.a = {state.uniform[kA], state.uniform[kA + 1], false};
    } else {
      sources.a = General(state, kA, lane);
    }
    const Source at32 = At32(word, state, lane, c.uniform);
    const uint32_t n = word.Bits(64, c.uniform ? 6 : 8);
    const Source at64 =
        c.uniform ? Source{state.uniform[n], state.uniform[n + 1], false} : General(state, n, lane);
    const bool swapped = c.swaps && (form == 2 || (!c.uniform && (form == 3 || form == 7)));
    sources.b = swapped ? at64 : at32;
    sources.c = swapped ? at32 : at64;
    return sources;
  }

  // Four of each of eight kinds, made once.
  static const std::vector<State>& States() {
    using Kind = OneWarp::Kind;
    static const std::vector<State>* const kStates = [] {
      auto* const states = new std::vector<State>;
      for (uint32_t seed = 0; seed < 4; ++seed) {
        for (const Kind kind : {Kind::kMixed, Kind::kMixed, Kind::kSmall, Kind::kTwoValues,
                                Kind::kOneValue, Kind::kFloats, Kind::kSpecial, Kind::kSpecial}) {
          states->push_back(OneWarp::Random(static_cast<uint32_t>(states->size()) + 100, kind,
                                            states->size() % 3 != 0));
        }
      }
      return states;
    }();
    return *kStates;
  }

  void CheckWord(const Case& c, const sass::Instruction& word, const Lane& reference,
                 Draw& random) {
    for (size_t i = 0; i < 8; ++i) {
      State state = States()[8 * (random() % 4) + i];
      State expected = state;
      const bool wide = c.writes == Writes::kPair || c.writes == Writes::kPairAndPredicate;
      const bool has_d = c.writes != Writes::kPredicates;
      const bool has_q = c.writes == Writes::kPredicates || c.writes == Writes::kWordAndBoth;
      const bool has_p =
          has_q || c.writes == Writes::kWordAndPredicate || c.writes == Writes::kPairAndPredicate;
      for (uint32_t lane = 0; lane < (c.uniform ? 1 : kLanes); ++lane) {
        if (!c.uniform && (state.active >> lane & 1) == 0) continue;
        const Result r = reference(word, state, lane, Read(c, word, state, lane));
        const auto low = static_cast<uint32_t>(r.d), high = static_cast<uint32_t>(r.d >> 32);
        if (has_d && c.uniform) {
          expected.uniform[kD] = low;
          if (wide) expected.uniform[kD + 1] = high;
        } else if (has_d) {
          expected.Register(kD, lane) = low;
          if (wide) expected.Register(kD + 1, lane) = high;
        }
        const auto set = [&](uint32_t number, bool value) {
          if (number == 7) return;
          if (c.uniform) {
            expected.uniform_predicate[number] = value;
          } else {
            uint32_t& lanes = expected.predicate[number];
            lanes = (lanes & ~(1u << lane)) | uint32_t{value} << lane;
          }
        };
        if (has_p) set(word.Bits(81, 3), r.p);
        if (has_q) set(word.Bits(84, 3), r.q);
      }
      const State before = state;
      warp_.Execute(word, state);
      if (state == expected) continue;
      ADD_FAILURE() << Difference(c, word, before, state, expected);
      return;
    }
  }

  std::string Difference(const Case& c, const sass::Instruction& word, const State& before,
                         State& state, State& expected) const {
    std::string text = fmt::format("{} ({:016x}_{:016x}) {}", sass::Disassemble(word), word.low,
                                   word.high, state.fault);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const Sources s = Read(c, word, before, lane);
      const auto result = [&](State& from) {
        return c.uniform ? fmt::format("{:08x} {:08x} {} {}", from.uniform[kD],
                                       from.uniform[kD + 1], uint32_t{from.uniform_predicate[kP]},
                                       uint32_t{from.uniform_predicate[kQ]})
                         : fmt::format("{:08x} {:08x} {} {}", from.Register(kD, lane),
                                       from.Register(kD + 1, lane), from.predicate[kP] >> lane & 1,
                                       from.predicate[kQ] >> lane & 1);
      };
      const std::string got = result(state), want = result(expected);
      if (got == want) continue;
      return text + fmt::format("\nlane {}: a {:016x} b {:016x} c {:016x}: {}, expected {}", lane,
                                s.a.wide(), s.b.wide(), s.c.wide(), got, want);
    }
    return text + "\nsomething that is no result has changed";
  }
};

// Signs of operands: which bits negate and take the absolute value, by place.
inline bool NegatesA(const sass::Instruction& w) { return w.Bits(72, 1) != 0; }
inline bool Swapped(const sass::Instruction& w, bool uniform = false) {
  const uint32_t form = w.Bits(9, 3);
  return form == 2 || (!uniform && (form == 3 || form == 7));
}
inline bool IsImmediate(const sass::Instruction& w) {
  return w.Bits(9, 3) == 2 || w.Bits(9, 3) == 4;
}
inline bool NegatesB(const sass::Instruction& w, bool uniform = false) {
  return Swapped(w, uniform) ? w.Bits(75, 1) != 0 : !IsImmediate(w) && w.Bits(63, 1) != 0;
}
inline bool NegatesC(const sass::Instruction& w, bool uniform = false) {
  return !Swapped(w, uniform) ? w.Bits(75, 1) != 0 : !IsImmediate(w) && w.Bits(63, 1) != 0;
}

}  // namespace iket::sim::testing
