// The copy must do what the old code does, whatever the control flow: a walk through random code,
// and what is not to move.
#include "patch/roomy_copy.h"

#include <gtest/gtest.h>

#include <random>

#include "patch/testing_code.h"
#include "sass/encode.h"

namespace iket::patch {
namespace {

using sass::Instruction;
using sass::kInstructionBytes;
using Code = std::vector<Instruction>;
using testing::Branch;
using testing::kExit;

constexpr sass::Generation kHopper = sass::Generation::kHopper;
constexpr Instruction kCall{0x0000000000007944, 0x000fea0003c00000};  // CALL.REL
constexpr Instruction kLepc{0x000000000014734e, 0x000fe40000000000};
constexpr Instruction kCollective{0x00000000020c7348, 0x000fea0003c00000};
constexpr Instruction kEndCollective{0x000000000000791b, 0x000fea0003800000};

Instruction Work(uint32_t n) { return sass::MovImmediate(4, n, {.stall = 1}); }
bool IsBranch(const Instruction& i) { return i.opcode() == sass::kOpBra; }
uint32_t Target(const Code& code, uint32_t at) {
  const int64_t target = sass::RelativeTarget(code[at], uint64_t{at} * kInstructionBytes, kHopper);
  return static_cast<uint32_t>(target / kInstructionBytes);
}

RoomyCopy CopyOf(const Code& code, const std::set<uint32_t>& fixed = {},
                 const Replacements& replacements = {}) {
  return CopyWithRoom(code, fixed, replacements, kHopper);
}

// What runs, but for branches: guarded ones go as the generator says, which both walks ask alike.
std::vector<Instruction> Walk(const Code& code, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Instruction> ran;
  for (uint32_t at = 0, steps = 0; at < code.size() && steps < 3000; ++steps) {
    const Instruction& i = code[at];
    if (i.opcode() == sass::kOpExit) break;
    if (IsBranch(i)) {
      at = i.is_unguarded() || random() % 3 == 0 ? Target(code, at) : at + 1;
      continue;
    }
    ran.push_back(i.WithControl({}));
    if (ran.size() == 300) break;
    ++at;
  }
  return ran;
}

TEST(RoomyCopy, TheOldCodeLeadsToTheCopy) {
  const Code code{Work(0), Work(1), kExit};
  const RoomyCopy copy = CopyOf(code);
  ASSERT_EQ(copy.code.size(), 6u);
  EXPECT_TRUE(IsBranch(copy.code[0]));
  EXPECT_EQ(Target(copy.code, 0), 3u);
  EXPECT_EQ(Target(copy.code, 1), 4u);
  EXPECT_EQ(copy.code[3], code[0]);
}

TEST(RoomyCopy, PaddingIsNotCopied) {
  const Code code{Work(0), kExit, sass::Nop({.stall = 1}), sass::Nop({.stall = 1})};
  const RoomyCopy copy = CopyOf(code);
  EXPECT_EQ(copy.code.size(), 6u);
  EXPECT_EQ(copy.moved[3], RoomyCopy::kNowhere);
}

TEST(RoomyCopy, ALoopStaysInTheCopyAndHasItsRoom) {
  const Code code{Work(0), Work(1), Branch(2, 1).WithGuard(0), kExit};
  const RoomyCopy copy = CopyOf(code, {}, {{1, {Work(10), Work(11), Work(12)}}});
  EXPECT_EQ(copy.moved[1], 5u);
  EXPECT_EQ(copy.moved[2], 8u);
  EXPECT_EQ(Target(copy.code, 8), 5u);
  EXPECT_EQ(copy.code[6], Work(11));
  EXPECT_TRUE(IsBranch(copy.code[1])) << "a branch leads here";
}

// What counts from where it stands goes on standing there, and comes back.
TEST(RoomyCopy, CallsStayAndComeBack) {
  for (const Instruction& call : {kCall, kLepc}) {
    const Code code{Work(0), call, Work(1), kExit};
    const RoomyCopy copy = CopyOf(code);
    EXPECT_EQ(copy.code[1], call);
    EXPECT_EQ(Target(copy.code, copy.moved[1]), 1u);
    EXPECT_TRUE(IsBranch(copy.code[2]));
    EXPECT_EQ(Target(copy.code, 2), copy.moved[2]);
  }
}

TEST(RoomyCopy, CollectiveRegionsStay) {
  const Code code{Work(0), kCollective, Work(1), Work(2), kEndCollective, Work(3), kExit};
  const RoomyCopy copy = CopyOf(code);
  for (uint32_t i = 1; i <= 4; ++i) {
    EXPECT_EQ(copy.code[i], code[i]);
    EXPECT_EQ(Target(copy.code, copy.moved[i]), i);
  }
  EXPECT_EQ(Target(copy.code, 5), copy.moved[5]);
}

TEST(RoomyCopy, FixedInstructionsStay) {
  const Code code{Work(0), Work(1), Work(2), kExit};
  const RoomyCopy copy = CopyOf(code, {0, 1});
  EXPECT_EQ(copy.code[0], code[0]);
  EXPECT_EQ(copy.code[1], code[1]);
  EXPECT_EQ(Target(copy.code, 2), copy.moved[2]);
}

// A register that is kept for the next instruction is not kept for another one.
TEST(RoomyCopy, NoHintOfReuseBeforeWhatIsReplaced) {
  constexpr uint64_t kReuse = uint64_t{1} << (122 - 64);
  Instruction hinting = Work(0);
  hinting.high |= kReuse;
  const RoomyCopy copy = CopyOf({hinting, hinting, Work(1), kExit}, {}, {{2, {Work(5)}}});
  EXPECT_EQ(copy.code[copy.moved[0]].high & kReuse, kReuse);
  EXPECT_EQ(copy.code[copy.moved[1]].high & kReuse, 0u);
}

TEST(RoomyCopy, RunsWhatTheOldCodeRuns) {
  std::mt19937 bits(7);
  const auto random = [&bits] { return static_cast<uint32_t>(bits()); };
  for (int round = 0; round < 500; ++round) {
    const uint32_t size = 4 + random() % 40;
    Code code;
    std::set<uint32_t> fixed;
    Replacements replacements;
    for (uint32_t i = 0; i + 1 < size; ++i) {
      switch (random() % 8) {
        case 0:
          code.push_back(Branch(i, random() % size));
          break;
        case 1:
        case 2:
          code.push_back(Branch(i, random() % size).WithGuard(static_cast<uint8_t>(random() % 7)));
          break;
        case 3:
          code.push_back(kLepc);
          break;
        default:
          code.push_back(Work(i));
          if (random() % 5 == 0) fixed.insert(i);
          if (random() % 3 == 0 && !fixed.contains(i)) {
            // As many as there are, the same work.
            replacements[i] = {Work(i)};
          }
      }
    }
    code.push_back(kExit);
    const RoomyCopy copy = CopyOf(code, fixed, replacements);
    for (uint32_t seed = 0; seed < 4; ++seed) {
      ASSERT_EQ(Walk(copy.code, seed), Walk(code, seed)) << round;
    }
  }
}

}  // namespace
}  // namespace iket::patch
