// Loads, stores and atomics of all sizes, types and spaces, against bytes that are moved one by one
// and numbers that are added exactly.
#include <algorithm>
#include <cstring>

#include "sim/testing_exact.h"
#include "sim/testing_property.h"

namespace iket::sim::testing {
namespace {

using sass::Instruction;

enum class Where { kGlobal, kShared, kLocal };

class Memory : public Property {
 protected:
  // Aligned to 16 bytes and, if `apart`, another one for each lane.
  struct Place {
    Where where;
    uint32_t offset;
  };
  std::byte* BytesAt(State& state, const Place& place, uint32_t lane) const {
    switch (place.where) {
      case Where::kGlobal:
        return &state.global[place.offset];
      case Where::kShared:
        return &state.shared[place.offset];
      default:
        return &state.local[size_t{lane} * OneWarp::kLocalBytes + place.offset];
    }
  }
  // What a lane's address register holds.
  uint64_t AddressOf(const Place& place, bool generic) const {
    switch (place.where) {
      case Where::kGlobal:
        return warp_.global_address() + place.offset;
      case Where::kShared:
        return (generic ? kSharedWindow : 0) + place.offset;
      default:
        return (generic ? kLocalWindow : 0) + place.offset;
    }
  }
  static Instruction Word(uint32_t opcode, Draw& random) {
    Instruction word{opcode | 0x7000, uint64_t{1} << sass::kControlShift};
    word = With(With(word, 16, 8, kD), 24, 8, kA);
    return With(word, 40, 24, random());
  }
  static uint64_t OffsetOf(const Instruction& word) {
    return static_cast<uint64_t>(int64_t{static_cast<int32_t>(word.Bits(40, 24) << 8) >> 8});
  }
  // Sets the addresses of all lanes; `wide`: pairs of registers.
  void Aim(const Instruction& word, State& state, const std::vector<Place>& places, bool generic,
           bool wide) const {
    for (uint32_t i = 0; i < kLanes; ++i) {
      const uint64_t value = AddressOf(places[i], generic) - OffsetOf(word);
      state.Register(kA, i) = static_cast<uint32_t>(value);
      if (wide) state.Register(kA + 1, i) = static_cast<uint32_t>(value >> 32);
    }
  }
  // `generic`: each lane in a space of its own.
  static std::vector<Place> Places(Where where, bool generic, uint32_t size, bool apart,
                                   Draw& random) {
    std::vector<Place> places;
    for (uint32_t i = 0; i < kLanes; ++i) {
      const uint32_t slot = apart ? (i * 5 + 3) % kLanes : random() % 6;
      const uint32_t part = apart ? random() % (16 / size) * size : 0;
      const Where own = generic ? static_cast<Where>(random() % 3) : where;
      places.push_back({own, 128 + 16 * slot + part});
    }
    return places;
  }
  void Expect(const Instruction& word, State& state, State& expected) {
    warp_.Execute(word, state);
    ASSERT_TRUE(state == expected) << fmt::format(
        "{} ({:016x}_{:016x}) {}", sass::Disassemble(word), word.low, word.high, state.fault);
  }
  static State Before(uint32_t seed) {
    constexpr OneWarp::Kind kKinds[] = {OneWarp::Kind::kMixed, OneWarp::Kind::kSpecial,
                                        OneWarp::Kind::kFloats, OneWarp::Kind::kSmall};
    return OneWarp::Random(seed, kKinds[seed % 4], seed % 3 != 0);
  }
  static bool Runs(const State& state, uint32_t lane) { return (state.active >> lane & 1) != 0; }
};

constexpr uint32_t kSizes[7] = {1, 1, 2, 2, 4, 8, 16};

TEST_F(Memory, Loads) {
  Draw random(1);
  struct Kind {
    uint32_t opcode;
    Where where;
    bool generic, wide;
  };
  for (const Kind& kind :
       {Kind{0x381, Where::kGlobal, false, true}, Kind{0x380, Where::kGlobal, true, true},
        Kind{0x984, Where::kShared, false, false}, Kind{0x983, Where::kLocal, false, false}}) {
    for (uint32_t code = 0; code < 7; ++code) {
      for (uint32_t seed = 0; seed < 12; ++seed) {
        Instruction word = With(Word(kind.opcode, random), 73, 3, code);
        if (kind.wide) word = With(word, 72, 1, 1);
        if (kind.opcode == 0x381) word = With(word, 81, 3, 7);
        ASSERT_TRUE(OneWarp::IsBound(word)) << sass::Disassemble(word);
        State state = Before(seed);
        const auto places = Places(kind.where, kind.generic, kSizes[code], true, random);
        Aim(word, state, places, kind.generic, kind.wide);
        State expected = state;
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
          if (!Runs(state, lane)) continue;
          const std::byte* const from = BytesAt(expected, places[lane], lane);
          for (uint32_t i = 0; i < std::max(kSizes[code], 4u); i += 4) {
            uint32_t value = 0;
            for (uint32_t byte = 0; byte < std::min(kSizes[code], 4u); ++byte) {
              value |= static_cast<uint32_t>(from[i + byte]) << (8 * byte);
            }
            const uint32_t bits = 8 * kSizes[code];
            if ((code == 1 || code == 3) && (value >> (bits - 1) & 1) != 0) value |= ~0u << bits;
            expected.Register(kD + i / 4, lane) = value;
          }
        }
        Expect(word, state, expected);
      }
    }
  }
}

TEST_F(Memory, Stores) {
  Draw random(2);
  struct Kind {
    uint32_t opcode;
    Where where;
    bool generic, wide;
  };
  for (const Kind& kind :
       {Kind{0x386, Where::kGlobal, false, true}, Kind{0x385, Where::kGlobal, true, true},
        Kind{0x388, Where::kShared, false, false}, Kind{0x387, Where::kLocal, false, false}}) {
    for (uint32_t code = 0; code < 7; ++code) {
      for (uint32_t seed = 0; seed < 12; ++seed) {
        Instruction word = With(With(Word(kind.opcode, random), 16, 8, 0), 73, 3, code);
        word = With(word, 32, 8, kB);
        if (kind.wide) word = With(word, 72, 1, 1);
        ASSERT_TRUE(OneWarp::IsBound(word)) << sass::Disassemble(word);
        State state = Before(seed);
        const auto places = Places(kind.where, kind.generic, kSizes[code], true, random);
        Aim(word, state, places, kind.generic, kind.wide);
        State expected = state;
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
          if (!Runs(state, lane)) continue;
          std::byte* const to = BytesAt(expected, places[lane], lane);
          for (uint32_t byte = 0; byte < kSizes[code]; ++byte) {
            to[byte] =
                static_cast<std::byte>(expected.Register(kB + byte / 4, lane) >> (8 * (byte % 4)));
          }
        }
        Expect(word, state, expected);
      }
    }
  }
}

// ---- atomics -----------------------------------------------------------------------------------
// Types at 73..76: of integers U32 S32 U64 S64; of floats F16x2 (0), BF16x2 (3), F32 flushed (9),
// F32 (12), F64 (15).
struct Type {
  uint32_t code;
  bool is_float;
  uint32_t bytes() const { return is_float ? (code == 15 ? 8 : 4) : code < 2 ? 4 : 8; }
};

// `nan`: what a NaN that comes in becomes; one that arises in fp64 has the other sign.
uint64_t AddFloats(const Format& f, uint64_t x, uint64_t y, uint64_t nan) {
  if (f.IsNan(x) || f.IsNan(y)) return nan;
  const uint64_t arisen = f.bits() == 64 ? nan | f.sign() : nan;
  if (f.IsInfinite(x)) return f.IsInfinite(y) && x != y ? arisen : x;
  if (f.IsInfinite(y)) return y;
  return Rounded(f, Sum(ExactOf(f, x), ExactOf(f, y), 0), 0);
}
uint64_t After(const Type& type, uint32_t function, uint64_t old, uint64_t value) {
  if (type.is_float) {
    if (type.code == 0 || type.code == 3) {
      const Format& f = type.code == 0 ? kHalf : kBfloat;
      return AddFloats(f, old & 0xffff, value & 0xffff, 0x7fff) |
             AddFloats(f, old >> 16 & 0xffff, value >> 16 & 0xffff, 0x7fff) << 16;
    }
    if (type.code == 15) return AddFloats(kDouble, old, value, 0x7ff8000000000000);
    const auto flushed = [&](uint64_t v) {
      return type.code == 9 && kSingle.IsDenormal(v) ? v & kSingle.sign() : v;
    };
    return flushed(AddFloats(kSingle, flushed(old), flushed(value), 0x7fffffff));
  }
  const uint32_t bits = 8 * type.bytes();
  const __int128 modulus = __int128{1} << bits;
  const auto number = [&](uint64_t v) {
    __int128 n = v;
    if (type.code % 2 != 0 && (n >> (bits - 1) & 1) != 0) n -= modulus;
    return n;
  };
  const __int128 a = number(old), b = number(value);
  __int128 result = b;
  switch (function) {
    case 0:
      result = a + b;
      break;
    case 1:
      result = std::min(a, b);
      break;
    case 2:
      result = std::max(a, b);
      break;
    case 3:
      result = a >= b ? 0 : a + 1;
      break;
    case 4:
      result = a == 0 || a > b ? b : a - 1;
      break;
    case 5:
      result = a & b;
      break;
    case 6:
      result = a | b;
      break;
    case 7:
      result = a ^ b;
      break;
    default:  // EXCH
      break;
  }
  return static_cast<uint64_t>((result % modulus + modulus) % modulus);
}

class Atomics : public Memory {
 protected:
  static uint64_t Load(const std::byte* at, uint32_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, at, bytes);
    return value;
  }
  // Lanes one after another, in order of their numbers. `update` gives what is there afterwards.
  template <typename F>
  void Run(const Instruction& word, uint32_t bytes, Where where, bool generic, bool has_result,
           uint32_t seed, Draw& random, F update) {
    State state = Before(seed);
    const auto places = Places(where, generic, bytes, false, random);
    Aim(word, state, places, generic, where == Where::kGlobal || generic);
    // Compare and swap finds what it expects now and then.
    for (uint32_t lane = 0; lane < kLanes; lane += 3) {
      const uint64_t there = Load(BytesAt(state, places[lane], lane), bytes);
      state.Register(kB, lane) = static_cast<uint32_t>(there);
      if (bytes == 8) state.Register(kB + 1, lane) = static_cast<uint32_t>(there >> 32);
    }
    State expected = state;
    const uint32_t predicate = generic ? word.Bits(81, 3) : 7;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if (!Runs(state, lane)) continue;
      // With a predicate, what shared memory cannot do: done in global memory alone.
      const bool done = predicate == 7 || places[lane].where == Where::kGlobal;
      if (predicate != 7) {
        uint32_t& lanes = expected.predicate[predicate];
        lanes = (lanes & ~(1u << lane)) | uint32_t{done} << lane;
      }
      uint64_t result = 0;
      if (done) {
        const auto wide = [&](uint32_t reg) {
          return uint64_t{expected.Register(reg + 1, lane)} << 32 | expected.Register(reg, lane);
        };
        std::byte* const at = BytesAt(expected, places[lane], lane);
        const uint64_t old = Load(at, bytes);
        const uint64_t after = update(old, wide(kB), wide(kC), result);
        std::memcpy(at, &after, bytes);
      }
      if (!has_result) continue;
      expected.Register(kD, lane) = static_cast<uint32_t>(result);
      if (bytes == 8) expected.Register(kD + 1, lane) = static_cast<uint32_t>(result >> 32);
    }
    Expect(word, state, expected);
  }
};

TEST_F(Atomics, OfIntegers) {
  Draw random(3);
  struct Kind {
    uint32_t opcode;
    Where where;
    bool generic, has_result;
  };
  for (const Kind& kind :
       {Kind{0x3a8, Where::kGlobal, false, true}, Kind{0x38a, Where::kGlobal, true, true},
        Kind{0x38c, Where::kShared, false, true}, Kind{0x38e, Where::kGlobal, false, false}}) {
    for (uint32_t code = 0; code < 4; ++code) {
      for (uint32_t function = 0; function < (kind.has_result ? 9 : 8); ++function) {
        if ((function == 3 || function == 4) && code != 0) continue;
        for (uint32_t seed = 0; seed < 6; ++seed) {
          Instruction word = With(With(Word(kind.opcode, random), 32, 8, kB), 73, 4, code);
          word = With(word, 87, kind.has_result ? 4 : 3, function);
          if (kind.where == Where::kGlobal) word = With(word, 72, 1, 1);
          if (!kind.has_result) word = With(word, 16, 8, 0);
          if (kind.where == Where::kGlobal && kind.has_result) {
            word = With(word, 81, 3, kind.generic && seed % 2 != 0 ? kP : 7);
          }
          ASSERT_TRUE(OneWarp::IsBound(word)) << sass::Disassemble(word);
          const Type type{code, false};
          Run(word, type.bytes(), kind.where, kind.generic, kind.has_result, seed, random,
              [&](uint64_t old, uint64_t b, uint64_t, uint64_t& result) {
                result = old;
                return After(type, function, old, type.bytes() == 4 ? b & 0xffffffff : b);
              });
        }
      }
    }
  }
}
TEST_F(Atomics, OfFloats) {
  Draw random(4);
  for (const uint32_t opcode : {0x3a3u, 0x3a2u, 0x3a6u}) {
    const bool generic = opcode == 0x3a2, has_result = opcode != 0x3a6;
    for (const uint32_t code : {0u, 3u, 9u, 12u, 15u}) {
      for (uint32_t seed = 0; seed < 8; ++seed) {
        Instruction word = With(With(Word(opcode, random), 32, 8, kB), 73, 4, code);
        word = With(word, 72, 1, 1);
        if (has_result) word = With(word, 81, 3, generic ? kP : 7);
        if (!has_result) word = With(word, 16, 8, 0);
        ASSERT_TRUE(OneWarp::IsBound(word)) << sass::Disassemble(word);
        const Type type{code, true};
        Run(word, type.bytes(), Where::kGlobal, generic, has_result, seed, random,
            [&](uint64_t old, uint64_t b, uint64_t, uint64_t& result) {
              result = old;
              return After(type, 0, old, type.bytes() == 4 ? b & 0xffffffff : b);
            });
      }
    }
  }
}
TEST_F(Atomics, CompareAndSwap) {
  Draw random(5);
  for (const uint32_t opcode : {0x3a9u, 0x38bu, 0x38du}) {
    const bool generic = opcode == 0x38b;
    const Where where = opcode == 0x38d ? Where::kShared : Where::kGlobal;
    for (const uint32_t cast : {0u, 1u}) {
      for (uint32_t code = 0; code < 3; code += 2) {
        for (uint32_t seed = 0; seed < 8; ++seed) {
          Instruction word = With(With(Word(opcode, random), 32, 8, kB), 73, 4, code);
          word = With(With(word, 64, 8, kC), 87, 1, cast);
          if (where == Where::kGlobal) {
            const bool predicate = generic && cast == 0 && seed % 2 != 0;
            word = With(With(word, 72, 1, 1), 81, 3, predicate ? kP : 7);
          }
          ASSERT_TRUE(OneWarp::IsBound(word)) << sass::Disassemble(word);
          const uint32_t bytes = code == 0 ? 4 : 8;
          Run(word, bytes, where, generic, true, seed, random,
              [&](uint64_t old, uint64_t b, uint64_t c, uint64_t& result) {
                const uint64_t mask = bytes == 4 ? 0xffffffff : ~uint64_t{0};
                const bool equal = old == (b & mask);
                result = cast != 0 ? equal : old;
                return equal ? c & mask : old;
              });
        }
      }
    }
  }
}

}  // namespace
}  // namespace iket::sim::testing
