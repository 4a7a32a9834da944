// What may be borrowed, and above all what may not.
#include "patch/spare_registers.h"

#include <gtest/gtest.h>

#include "patch/testing_code.h"
#include "sass/encode.h"

namespace iket::patch {
namespace {

using sass::Instruction;
using Code = std::vector<Instruction>;
using testing::Branch;
using testing::kExit;

constexpr sass::Generation kHopper = sass::Generation::kHopper;

constexpr uint64_t kEntries[] = {0};

Instruction Names(uint8_t r) { return sass::MovImmediate(r, 1, {.stall = 1}); }
// USETMAXREG.TRY_ALLOC.CTAPOOL UP0, count.
Instruction SetMaxReg(uint32_t count) {
  return Instruction{uint64_t{count} << 32 | 0x79c8, 0x000fe20008000700};
}

std::vector<uint8_t> PairsAt(const Code& code, uint32_t at, uint32_t registers) {
  const FlowGraph flow(code, kEntries, kHopper);
  return SpareRegisters(code, flow, registers).PairsAt(at);
}
std::optional<uint8_t> PairAt(const Code& code, uint32_t at, uint32_t registers) {
  const std::vector<uint8_t> pairs = PairsAt(code, at, registers);
  return pairs.empty() ? std::nullopt : std::optional(pairs.front());
}

TEST(SpareRegisters, TheFirstPairThatNobodyNames) {
  EXPECT_EQ(PairAt({Names(2), Names(5), kExit}, 0, 24), 6);
  EXPECT_EQ(PairAt({Names(2), Names(5), kExit}, 0, 10), 6);
  // Two of those that a kernel asks for it cannot use.
  EXPECT_EQ(PairAt({Names(2), Names(5), kExit}, 0, 9), std::nullopt);
}

TEST(SpareRegisters, NoMoreThanThereCanBe) {
  // Whatever a damaged image states, or its code asks for: R254 is the last one.
  Code code;
  for (uint32_t r = 2; r < 255; ++r) code.push_back(Names(static_cast<uint8_t>(r)));
  code.push_back(SetMaxReg(1023));
  code.push_back(kExit);
  EXPECT_EQ(PairAt(code, 0, 100'000), std::nullopt);
}

TEST(SpareRegisters, TwoPairsWhereThereAreTwo) {
  // Each has a scoreboard of its own, so R8 does not do beside R4.
  EXPECT_EQ(PairsAt({Names(2), Names(7), kExit}, 0, 24), (std::vector<uint8_t>{4, 10}));
  EXPECT_EQ(PairsAt({Names(2), Names(7), kExit}, 0, 11), (std::vector<uint8_t>{4}));
}

TEST(SpareRegisters, NamedBehindTheSiteOrBeforeIt) {
  // 0: to 3, or on; 1, 2: one role; 3, 4: the other.
  const Code code{Branch(0, 3).WithGuard(0), Names(2), kExit, Names(4), kExit};
  EXPECT_EQ(PairAt(code, 1, 24), 4) << "the other role's registers mean nothing here";
  EXPECT_EQ(PairAt(code, 3, 24), 2);
  EXPECT_EQ(PairAt(code, 0, 24), 6) << "both come behind";
  // A loop: what is named in it is named before and behind.
  EXPECT_EQ(PairAt({Names(2), Names(4), Branch(2, 1).WithGuard(0), Names(6), kExit}, 1, 24), 8);
}

TEST(SpareRegisters, NothingWhereTheWayLeadsAnywhere) {
  constexpr Instruction kIndirect{0x0000000004007949, 0x000fea0003800000};  // BRX R4
  EXPECT_EQ(PairAt({Names(2), kIndirect, kExit}, 0, 24), std::nullopt);
  constexpr Instruction kUnknown{0x0000000004007bff, 0x000fea0003800000};
  EXPECT_EQ(PairAt({Names(2), kUnknown, kExit}, 0, 24), std::nullopt);
}

TEST(SpareRegisters, CallsOfTheSectionCount) {
  constexpr Instruction kRet{0x000000001e007950, 0x000fea0003c3ffff};
  Code code{Names(2), Instruction{}, Names(4), kExit, Names(6), kRet};
  code[1] = sass::WithRelativeTarget({0x0000000000007944, 0x000fea0003c00000}, 16, 4 * 16, kHopper);
  // Of the return's own operand eight registers might be meant.
  const auto pair = PairAt(code, 2, 64);
  ASSERT_TRUE(pair);
  EXPECT_GE(*pair, 8);
}

// A warp group that gave registers away has fewer, one that got some has more.
TEST(SpareRegisters, CountWhatSetMaxRegLeaves) {
  Code code{Branch(0, 3).WithGuard(0), SetMaxReg(24), Names(2), SetMaxReg(232), Names(4), kExit};
  code.insert(code.begin() + 3, kExit);
  code[0] = Branch(0, 4).WithGuard(0);
  for (uint8_t r = 2; r < 22; ++r) code.insert(code.begin() + 3, Names(r));
  code[0] = Branch(0, static_cast<uint32_t>(code.size()) - 3).WithGuard(0);
  EXPECT_EQ(PairAt(code, 2, 168), std::nullopt) << "22 of 24, and all are named";
  EXPECT_EQ(PairAt(code, static_cast<uint32_t>(code.size()) - 2, 168), 2);
}

TEST(SpareRegisters, APredicateThatNobodyNames) {
  const Code code{Names(2).WithGuard(6), Names(3).WithNegatedGuard(5), kExit};
  const FlowGraph flow(code, kEntries, kHopper);
  EXPECT_EQ(SpareRegisters(code, flow, 24).Predicate(), 4);
  constexpr Instruction kAllAtOnce{0x0000007f04007804, 0x000fe20000000000};  // R2P PR, R4, 0x7f
  const Code other{kAllAtOnce, Names(2)};
  const FlowGraph flow_of_other(other, kEntries, kHopper);
  const SpareRegisters spare(other, flow_of_other, 24);
  EXPECT_EQ(spare.Predicate(), std::nullopt);
  EXPECT_EQ(spare.UniformPredicate(), 6) << "of another file";
}

TEST(SpareRegisters, TheScoreboardThatFewestTake) {
  Code code;
  for (uint8_t b = 0; b < 6; ++b) {
    if (b != 3) code.push_back(Names(2).WithControl({.write_barrier = b}));
    if (b != 3 && b != 1) code.push_back(Names(2).WithControl({.read_barrier = b}));
  }
  code.push_back(kExit);
  const FlowGraph flow(code, kEntries, kHopper);
  const SpareRegisters spare(code, flow, 24);
  EXPECT_EQ(spare.BarrierOf(4), 3);
  EXPECT_EQ(spare.BarrierOf(6), 1);
  EXPECT_EQ(spare.BarrierOf(8), 3) << "of a pair always the same";
}

}  // namespace
}  // namespace iket::patch
