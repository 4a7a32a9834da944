#include "sass/instruction.h"

#include <gtest/gtest.h>

#include "sass/encode.h"

namespace iket::sass {
namespace {

// `@!P0 STS [UR4+-0x10], R3` as ptxas 13.0 built it.
constexpr Instruction kGuardedStore{0xfffff003ff008988, 0x0001e20008000804};

TEST(Instruction, FieldsOfACompiledWord) {
  EXPECT_EQ(kGuardedStore.opcode(), kOpStsUniform);
  EXPECT_EQ(kGuardedStore.guard(), 0);
  EXPECT_TRUE(kGuardedStore.guard_negated());
  EXPECT_FALSE(kGuardedStore.is_unguarded());
  EXPECT_TRUE(kGuardedStore.is_uniform_form());
  EXPECT_EQ(kGuardedStore.Bits(40, 24), 0xfffff0u);
  EXPECT_EQ(kGuardedStore.control(),
            (Control{.stall = 1, .write_barrier = 7, .read_barrier = 0, .wait = 0}));
}

TEST(Instruction, WithControlKeepsEverythingElse) {
  const Control control{.stall = 4, .wait = 3};
  const Instruction changed = kGuardedStore.WithControl(control);
  EXPECT_EQ(changed.low, kGuardedStore.low);
  EXPECT_EQ(changed.control(), control);
  EXPECT_EQ(changed.WithControl(kGuardedStore.control()), kGuardedStore);
}

TEST(Instruction, GuardMovesOver) {
  const Instruction nop = Nop({}).WithGuardOf(kGuardedStore);
  EXPECT_EQ(nop.guard(), 0);
  EXPECT_TRUE(nop.guard_negated());
  EXPECT_EQ(nop.opcode(), kOpNop);
}

TEST(Instruction, BranchTargets) {
  for (const auto generation : {Generation::kAmpere, Generation::kHopper, Generation::kBlackwell}) {
    for (int64_t target : {0x0, 0x10, 0x400, 0x12340, 0x7fffff0}) {
      const Instruction branch = Bra(generation, 0x100, static_cast<uint64_t>(target), {});
      EXPECT_TRUE(HasRelativeTarget(branch));
      EXPECT_EQ(RelativeTarget(branch, 0x100, generation), target);
    }
  }
  // `BSSY B0, 0x700` at 0x640, by ptxas 13.0.
  EXPECT_TRUE(HasRelativeTarget({0x000000b000007945, 0x000fe20003800000}));
  EXPECT_FALSE(EndsBasicBlock({0x000000b000007945, 0x000fe20003800000}));
  EXPECT_EQ(RelativeTarget({0x000000b000007945, 0x000fe20003800000}, 0x640, Generation::kHopper),
            0x700);
  // `CALL.REL.NOINC 0x3d0` at 0x110.
  EXPECT_EQ(RelativeTarget({0x0000000000ac7944, 0x000fea0003c00000}, 0x110, Generation::kHopper),
            0x3d0);
}

// What ptxas 13.0 made for sm_80 and sm_100.
TEST(Instruction, BranchTargetsOfOtherGenerations) {
  const Instruction self{0xfffffff000007947, 0x000fc0000383ffff};  // BRA 0xc0 at 0xc0
  EXPECT_EQ(RelativeTarget(self, 0xc0, Generation::kAmpere), 0xc0);
  const Instruction call{0x0000019000007944, 0x003fea0003c00000};  // CALL.REL.NOINC
  EXPECT_EQ(RelativeTarget(call, 0x40, Generation::kAmpere), 0x1e0);
  const Instruction uniform{0x0000000100fc7547, 0x000fea000b800000};  // BRA.U UP0, 0x600 at 0x100
  EXPECT_TRUE(HasRelativeTarget(uniform));
  EXPECT_TRUE(EndsBasicBlock(uniform));
  EXPECT_EQ(RelativeTarget(uniform, 0x100, Generation::kBlackwell), 0x100 + 16 + 4 * 0xfc);
}

// Nothing but the target changes, and the words of ptxas come out again.
TEST(Instruction, BranchesGetNewTargets) {
  constexpr Instruction kBssy{0x000000b000007945, 0x000fe20003800000};
  constexpr Instruction kCall{0x0000000000ac7944, 0x000fea0003c00000};
  constexpr Instruction kUniform{0x0000000100fc7547, 0x000fea000b800000};
  constexpr Instruction kSelf{0xfffffff000007947, 0x000fc0000383ffff};
  const auto same = [](const Instruction& i, uint64_t pc, Generation generation) {
    const int64_t target = RelativeTarget(i, pc, generation);
    EXPECT_EQ(WithRelativeTarget(i, pc, target, generation), i);
    for (const int64_t other : {0l, 0x40l, 0x123450l}) {
      const Instruction moved = WithRelativeTarget(i, pc + 0x800, other, generation);
      EXPECT_EQ(RelativeTarget(moved, pc + 0x800, generation), other);
      EXPECT_EQ(WithRelativeTarget(moved, pc, target, generation), i);
    }
  };
  same(kBssy, 0x640, Generation::kHopper);
  same(kCall, 0x110, Generation::kHopper);
  same(kUniform, 0x100, Generation::kBlackwell);
  same(kSelf, 0xc0, Generation::kAmpere);
  same(Bra(Generation::kHopper, 0x2000, 0x10, {.stall = 5}).WithGuard(3), 0x2000,
       Generation::kHopper);
}

TEST(Instruction, WhatIsCollective) {
  EXPECT_TRUE(BeginsCollective({0x00000000020c7348, 0x000fea0003c00000}));
  EXPECT_FALSE(BeginsCollective({0x0000000009007348, 0x000fea0003800000}));  // WARPSYNC R9
  EXPECT_FALSE(BeginsCollective({0x0000000000007948, 0x000fea0003800000}));  // WARPSYNC.ALL
}

TEST(Instruction, WhatEndsABlock) {
  EXPECT_TRUE(EndsBasicBlock(Bra(Generation::kHopper, 0, 16, {})));
  EXPECT_TRUE(EndsBasicBlock({0x000000000000794d, 0x000fea0003800000}));  // EXIT
  EXPECT_FALSE(EndsBasicBlock(Nop({})));
  EXPECT_FALSE(EndsBasicBlock(kGuardedStore));
}

// `CALL.REL.NOINC R8 (kernel)` of ptxas 13.0: the register holds where it goes from there.
TEST(Instruction, CallsThroughARegisterHaveNoTargetToRead) {
  EXPECT_FALSE(HasRelativeTarget({0xfffffffc084c7344, 0x003fea0003c3ffff}));
  EXPECT_TRUE(HasRelativeTarget({0x0000000000647944, 0x003fea0003c00000}));
}

}  // namespace
}  // namespace iket::sass
