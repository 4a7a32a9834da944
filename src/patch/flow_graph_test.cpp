#include "patch/flow_graph.h"

#include <gtest/gtest.h>

#include "sass/encode.h"
#include "sass/operands.h"

namespace iket::patch {
namespace {

using sass::Generation;
using sass::Instruction;

constexpr uint8_t kValue = 36;
const Instruction kMake = sass::MovImmediate(kValue, 1, {});
const Instruction kUse = sass::AndImmediate(4, kValue, 1, {});
const Instruction kExit{0x000000000000794d, 0x000fea0003800000};

// Does what the first instruction makes reach a reader?
bool Reaches(std::vector<Instruction> code, Generation generation = Generation::kHopper) {
  code.push_back(kExit);
  const uint64_t entry = 0;
  const FlowGraph flow(code, {&entry, 1}, generation);
  return flow.MayReach(
      0, [&](uint32_t i) { return sass::MayReadRegister(code[i], kValue); },
      [&](uint32_t i) { return sass::WritesRegister(code[i], kValue); });
}

TEST(MayReach, UntilItIsWritten) {
  EXPECT_TRUE(Reaches({kMake, kUse}));
  EXPECT_FALSE(Reaches({kMake}));
  EXPECT_FALSE(Reaches({kMake, kMake, kUse}));
  EXPECT_TRUE(Reaches({kMake, kUse, kMake})) << "the reader comes first";
}

// @!P0 LDC R36; @!P0 IMAD.WIDE R40, R36: by ptxas, behind a mark of CUB's scan.
TEST(MayReach, WritersUnderAGuardHideFromReadersUnderIt) {
  EXPECT_FALSE(Reaches({kMake, kMake.WithNegatedGuard(0), kUse.WithNegatedGuard(0)}));
  EXPECT_TRUE(Reaches({kMake, kMake.WithNegatedGuard(0), kUse.WithGuard(0)}));
  EXPECT_TRUE(Reaches({kMake, kMake.WithNegatedGuard(0), kUse.WithNegatedGuard(1)}));
  EXPECT_TRUE(Reaches({kMake, kMake.WithNegatedGuard(0), kUse}));
  EXPECT_TRUE(Reaches({kMake, kUse.WithGuard(2), kMake.WithGuard(2)}));
}

TEST(MayReach, BothGuardsHideFromAll) {
  EXPECT_FALSE(Reaches({kMake, kMake.WithGuard(6), kMake.WithNegatedGuard(6), kUse}));
  EXPECT_TRUE(Reaches({kMake, kMake.WithNegatedGuard(1), kMake.WithGuard(2), kUse}));
}

TEST(MayReach, UntilThePredicateIsAnother) {
  const Instruction another = sass::TestImmediate(3, 5, 1, {});
  EXPECT_TRUE(Reaches({kMake, kMake.WithGuard(3), another, kUse.WithGuard(3)}));
  EXPECT_FALSE(Reaches({kMake, kMake.WithGuard(2), another, kUse.WithGuard(2)}));
}

// Two ways meet: hidden is what both hid.
TEST(MayReach, OnEveryWay) {
  const auto ways = [](const Instruction& one, const Instruction& other, const Instruction& use) {
    const auto branch = [](uint64_t from, uint64_t to, uint8_t guard) {
      return sass::Bra(Generation::kHopper, from * 16, to * 16, {}).WithGuard(guard);
    };
    //               0      1                2    3                                4      5
    return Reaches({kMake, branch(1, 4, 5), one, branch(3, 5, sass::kPredicateTrue), other, use});
  };
  EXPECT_FALSE(ways(kMake.WithGuard(0), kMake.WithGuard(0), kUse.WithGuard(0)));
  EXPECT_TRUE(ways(kMake.WithGuard(0), kMake.WithGuard(1), kUse.WithGuard(0)));
  EXPECT_TRUE(ways(kMake.WithGuard(1), kMake.WithGuard(0), kUse.WithGuard(0)));
  EXPECT_FALSE(ways(kMake, kMake.WithGuard(0), kUse.WithGuard(0)));
}

// A guard may be a uniform predicate there.
TEST(MayReach, NoGuardHidesFromSm100On) {
  EXPECT_TRUE(Reaches({kMake, kMake.WithGuard(0), kUse.WithGuard(0)}, Generation::kBlackwell));
  EXPECT_FALSE(Reaches({kMake, kMake, kUse}, Generation::kBlackwell));
}

}  // namespace
}  // namespace iket::patch
