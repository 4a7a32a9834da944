#include "sass/known_bits.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "sass/decode.h"

namespace iket::sass {
namespace {

constexpr Instruction kNone{};

Instruction Flip(Instruction word, uint32_t bit) {
  (bit < 64 ? word.low : word.high) ^= uint64_t{1} << bit % 64;
  return word;
}
Instruction Only(uint32_t bit) { return Flip({}, bit); }

TEST(KnownBits, WordsOfTheCompilerAreKnownInFull) {
  const Instruction words[] = {
      {0x0000000407067223, 0x000fc80000000100},  // FFMA R6, -R7, R4, R0
      {0x000000060404798a, 0x00321e00089ee3c4},  // ATOM.E.MIN.S32.STRONG.GPU PT, R4, desc[U
      {0x0000000000047945, 0x000fe20003800000},  // BSSY B4, ...
      {0x0000000402067981, 0x00321e000c1e1900},  // LDG.E R6, desc[UR4][R2.64]
  };
  for (const Instruction& word : words) {
    EXPECT_EQ(UnknownBits(word), kNone) << Disassemble(word);
  }
}

TEST(KnownBits, NamesTheBitThatNoRowSpeaksOf) {
  const Instruction ffma{0x0000000407067223, 0x000fc80000000100};
  EXPECT_EQ(UnknownBits(Flip(ffma, 76)), Only(76));  // .FMZ
  EXPECT_EQ(UnknownBits(Flip(ffma, 80)), kNone);     // .FTZ
  EXPECT_EQ(UnknownBits(Flip(ffma, 91)), Only(91));
  EXPECT_EQ(UnknownBits(Flip(ffma, 127)), Only(127));
  const Instruction load{0x0000000402067981, 0x00321e000c1e1900};
  EXPECT_EQ(UnknownBits(Flip(load, 64)), Only(64));  // a predicate of the lanes
  EXPECT_EQ(UnknownBits(Flip(load, 82)), Only(82));  // a predicate result
  EXPECT_EQ(UnknownBits(Flip(load, 79)), kNone);     // a scope
}

TEST(KnownBits, OperandsThatAreNotThereNameNothing) {
  // IADD3 R4, R5, R6, RZ: without .X its carries are !PT.
  const Instruction sum{0x0000000605047210, 0x000fe20007ffe0ff};
  EXPECT_EQ(UnknownBits(sum), kNone);
  EXPECT_EQ(UnknownBits(Flip(sum, 87)), Only(87));
  EXPECT_EQ(UnknownBits(Flip(Flip(sum, 87), 74)), kNone);  // .X
  // An immediate has no sign beside it.
  const Instruction immediate{0x8000000605047810, 0x000fe20007ffe0ff};
  EXPECT_EQ(UnknownBits(immediate), kNone);
}

TEST(KnownBits, AWordWithoutARowIsNotKnownAtAll) {
  const Instruction word{0xfff, 0};
  EXPECT_EQ(UnknownBits(word), (Instruction{~uint64_t{0}, ~uint64_t{0}}));
}

TEST(KnownBits, RowsAreWellFormed) {
  const std::regex field(
      R"(\((\d+)(-\d+)?\)|(91:|X:)?\d+(-\d+)?(=\d+)?|-[aABCcEFGWXYZ]|\|[aBCWXZ]\|)");
  for (const OpcodeRow& row : OpcodeTable()) {
    std::string rest = row.modifiers;
    while (!rest.empty()) {
      const std::string token = rest.substr(0, rest.find(' '));
      EXPECT_TRUE(std::regex_match(token, field)) << row.mnemonic << ": " << token;
      rest.erase(0, token.size() + 1);
    }
  }
}

}  // namespace
}  // namespace iket::sass
