// What made addresses of stores that are gone, and what others still need.
#include "patch/dead_address.h"

#include <gtest/gtest.h>

#include <vector>

#include "patch/testing_code.h"
#include "sass/encode.h"

namespace iket::patch {
namespace {

using sass::Instruction;
using testing::Branch;
using testing::kExit;

constexpr sass::Generation kHopper = sass::Generation::kHopper;

// Of ptxas 13.0: S2UR UR4, SR_CgaCtaId; USHF.L.U32 UR5, UR4, 0x18, URZ; ULEA UR4, UR4, 0x3f0, 0x18;
// STS [UR5+0x3f0], R2; STS [UR4], R2.
constexpr Instruction kRank{0x00000000000479c3, 0x000e240000008800};
constexpr Instruction kShift{0x0000001804057899, 0x001fc8000800063f};
constexpr Instruction kAddress{0x000003f004047891, 0x000fc4000f8ec03f};
constexpr Instruction kStoreByUr5{0x0003f002ff007988, 0x0001e20008000805};
constexpr Instruction kStoreByUr4{0x00000002ff007988, 0x0001e20008000804};
// ULDC.64 UR4, c[0x0][0x208]: writes UR4 and UR5.
constexpr Instruction kNewUr4{0x0000820000047ab9, 0x000fe20000000a00};

std::set<uint32_t> Dead(const std::vector<Instruction>& code, const std::set<uint32_t>& removed) {
  const uint64_t entries[] = {0};
  const FlowGraph flow(code, entries, kHopper);
  return DeadAddressCode(code, flow, removed, kHopper);
}
using Set = std::set<uint32_t>;

TEST(DeadAddress, WhatOnlyRemovedStoresTake) {
  EXPECT_EQ(Dead({kRank, kShift, kStoreByUr5, kExit}, {2}), (Set{0, 1}));
  EXPECT_EQ(Dead({kRank, kShift, kAddress, kStoreByUr5, kStoreByUr4, kExit}, {3, 4}),
            (Set{0, 1, 2}));
}

TEST(DeadAddress, NotWhatAnotherStoreTakes) {
  EXPECT_EQ(Dead({kRank, kShift, kStoreByUr5, kExit}, {}), Set());
  EXPECT_EQ(Dead({kRank, kShift, kStoreByUr5, kStoreByUr5, kExit}, {2}), Set());
  EXPECT_EQ(Dead({kRank, kShift, kAddress, kStoreByUr5, kStoreByUr4, kExit}, {4}), Set{2});
}

TEST(DeadAddress, OnEveryWay) {
  // A loop, whose next turn takes it.
  EXPECT_EQ(Dead({kRank, kShift, kStoreByUr5, Branch(3, 2).WithGuard(0), kStoreByUr5, kExit}, {2}),
            Set());
  EXPECT_EQ(Dead({kRank, kShift, kStoreByUr5, Branch(3, 2).WithGuard(0), kExit}, {2}), (Set{0, 1}));
  // Written anew before it is read.
  EXPECT_EQ(Dead({kRank, kShift, kStoreByUr5, kNewUr4, kStoreByUr5, kExit}, {2}), (Set{0, 1}));
  EXPECT_EQ(Dead({kRank, kShift, kStoreByUr5, kNewUr4.WithGuard(1), kStoreByUr5, kExit}, {2}),
            Set())
      << "perhaps not";
}

TEST(DeadAddress, NotWhereTheWayLeadsAnywhere) {
  constexpr Instruction kIndirect{0x0000000004007949, 0x000fea0003800000};  // BRX R4
  EXPECT_EQ(Dead({kRank, kShift, kStoreByUr5, kIndirect}, {2}), Set());
  constexpr Instruction kUnknown{0x0000000004007bff, 0x000fea0003800000};  // may read UR4 to UR11
  EXPECT_EQ(Dead({kRank, kShift, kStoreByUr5, kUnknown, kExit}, {2}), Set());
}

TEST(DeadAddress, NotOtherCode) {
  // USHF by another number of bits.
  constexpr Instruction kOther{0x0000001004057899, 0x001fc8000800063f};
  EXPECT_EQ(Dead({kRank, kOther, kStoreByUr5, kExit}, {2}), Set());
}

}  // namespace
}  // namespace iket::patch
