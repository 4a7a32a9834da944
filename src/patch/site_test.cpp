// Sites in instruction vectors made by hand: every order that ptxas may choose, and what must be
// refused.
#include "patch/site.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "sass/encode.h"

namespace iket::patch {
namespace {

using sass::Instruction;
using Code = std::vector<Instruction>;

constexpr sass::Control kPlain{.stall = 1};
const uint64_t kEntry[] = {0};

// Raw words, as ptxas 13.0 writes them for a mark.
const Instruction kClock = sass::Cs2r32(2, sass::SpecialRegister::kClockLow, kPlain);
constexpr Instruction kTime{0xfffff802ff007988, 0x000fe20008000a04};     // STS.64 [UR4+-0x8], R2
constexpr Instruction kPayload{0xfffff006ff000988, 0x000fe20008000804};  // @P0 STS [UR4+-0x10], R6
constexpr Instruction kTimeByRegister{0xfffff80203007388, 0x000fe20000000a00};  // STS.64 [R3+-0x8]
constexpr Instruction kAdvance{0x0000e11000007801, 0x000fe20000000000};         // PMTRIG 0xe110
constexpr Instruction kRing{0x0000e20000007801, 0x000fe20000000000};            // PMTRIG 0xe200
constexpr Instruction kExit{0x000000000000794d, 0x000fea0003800000};
const Instruction kOther = sass::MovImmediate(9, 1, kPlain);

Instruction Guarded(Instruction instruction) {
  instruction.low &= ~uint64_t{0x7000};  // @P0
  return instruction;
}

Sites Find(const Code& code) { return FindSites(code, kEntry); }

// The one site of `code`; fails the test if there is not exactly one.
Site OnlySite(const Code& code) {
  const Sites sites = Find(code);
  for (const SiteProblem& problem : sites.problems) ADD_FAILURE() << problem.reason;
  EXPECT_EQ(sites.all.size(), 1u);
  return sites.all.empty() ? Site{} : sites.all.front();
}
std::string OnlyProblem(const Code& code) {
  const Sites sites = Find(code);
  EXPECT_EQ(sites.problems.size(), 1u);
  return sites.problems.empty() ? "" : sites.problems.front().reason;
}

TEST(FindSites, FindsNothingInOrdinaryCode) {
  const Sites sites = Find({kOther, kClock, kExit});
  EXPECT_TRUE(sites.all.empty());
  EXPECT_TRUE(sites.problems.empty());
}

TEST(FindSites, TakesAMarkWithoutPayload) {
  const Site site = OnlySite({kOther, kClock, kTime, kAdvance, kRing, kExit});
  EXPECT_EQ(site.time, 2u);
  EXPECT_EQ(site.payload, Site::kNone);
  EXPECT_EQ(site.first_slot, 3u);
  EXPECT_EQ(site.second_slot, 4u);
  EXPECT_EQ(site.bytes, 16u);
}

TEST(FindSites, TakesAStoreThroughAGeneralRegister) {
  EXPECT_EQ(OnlySite({kClock, kTimeByRegister, kAdvance, kRing, kExit}).time, 1u);
}

TEST(FindSites, LooksThroughOtherInstructionsAndEitherOrderOfTheStores) {
  const Code orders[] = {
      {kClock, kPayload, kTime, kAdvance, kRing, kExit},
      {kClock, kTime, kPayload, kAdvance, kRing, kExit},
      {kPayload, kOther, kClock, kTime, kOther, kOther, kAdvance, kOther, kRing, kExit},
      {kClock, kOther, kTime, kOther, kPayload, kOther, kAdvance, kOther, kOther, kRing, kExit},
  };
  for (const Code& code : orders) {
    const Site site = OnlySite(code);
    EXPECT_EQ(code[site.time], kTime);
    ASSERT_NE(site.payload, Site::kNone);
    EXPECT_EQ(code[site.payload], kPayload);
    EXPECT_EQ(code[site.first_slot], kAdvance);
    EXPECT_EQ(code[site.second_slot], kRing);
  }
}

TEST(FindSites, KeepsTwoMarksInARowApart) {
  const Code code = {kClock, kPayload, kTime,  kAdvance, kRing, kClock,
                     kTime,  kAdvance, kOther, kRing,    kExit};
  const Sites sites = Find(code);
  EXPECT_TRUE(sites.problems.empty());
  ASSERT_EQ(sites.all.size(), 2u);
  EXPECT_EQ(sites.all[0].time, 2u);
  EXPECT_EQ(sites.all[0].payload, 1u);
  EXPECT_EQ(sites.all[0].second_slot, 4u);
  EXPECT_EQ(sites.all[1].time, 6u);
  EXPECT_EQ(sites.all[1].payload, Site::kNone);
  EXPECT_EQ(sites.all[1].second_slot, 9u);
}

// A program's own store at offset -8 of some pointer is no time stamp unless it stores the clock.
TEST(FindSites, IgnoresStoresOfOtherData) {
  const Instruction own = sass::Cs2r32(8, sass::SpecialRegister::kGlobalTimerLow, kPlain);
  Instruction store = kTimeByRegister;
  store.low = (store.low & ~(uint64_t{0xff} << 32)) | uint64_t{8} << 32;
  EXPECT_EQ(OnlySite({own, store, kClock, kTime, kAdvance, kRing, kExit}).time, 3u);
}

TEST(FindSites, RefusesWhatIsNotWhole) {
  EXPECT_EQ(OnlyProblem({kClock, kTime, kAdvance, kOther, kExit}), "its second slot is missing");
  EXPECT_NE(OnlyProblem({kOther, kAdvance, kRing, kExit}).find("no time stamp"), std::string::npos);
  EXPECT_EQ(OnlyProblem({kClock, kTime, kRing, kExit}), "1 second slots for 0 sites");
}

TEST(FindSites, RefusesGuards) {
  EXPECT_EQ(OnlyProblem({kClock, Guarded(kTime), kAdvance, kRing, kExit}),
            "its time stamp is guarded");
  EXPECT_EQ(OnlyProblem({kClock, kTime, Guarded(kAdvance), kRing, kExit}), "its slot is guarded");
  EXPECT_EQ(OnlyProblem({kClock, kTime, kAdvance, Guarded(kRing), kExit}),
            "its second slot is guarded");
}

TEST(FindSites, RefusesMarksThatMixed) {
  EXPECT_EQ(OnlyProblem({kClock, kTime, kClock, kTime, kAdvance, kRing, kExit}),
            "two time stamps in one site");
  EXPECT_EQ(OnlyProblem({kPayload, kPayload, kClock, kTime, kAdvance, kRing, kExit}),
            "two payloads in one site");
  // Neither of the two is whole.
  EXPECT_EQ(Find({kClock, kTime, kAdvance, kAdvance, kRing, kRing, kExit}).problems.size(), 2u);
}

TEST(FindSites, RefusesRecordsOfAnotherSize) {
  Instruction advance = kAdvance;
  advance.low ^= uint64_t{0x08 ^ 0x10} << 32;
  EXPECT_EQ(OnlyProblem({kClock, kTime, advance, kRing, kExit}),
            "a record of 8 bytes is of a newer version of the header");
}

// A lane that jumps into the middle of a site would move the cursor without having stored.
TEST(FindSites, RefusesSitesThatSomebodyCanJumpInto) {
  const auto branch_to = [](uint64_t target) {
    return Guarded(sass::Bra(0, target * sass::kInstructionBytes, {.stall = 5}));
  };
  EXPECT_EQ(OnlySite({branch_to(1), kClock, kTime, kAdvance, kRing, kExit}).time, 2u);
  EXPECT_NE(
      OnlyProblem({branch_to(3), kClock, kTime, kAdvance, kRing, kExit}).find("no time stamp"),
      std::string::npos);
  EXPECT_EQ(Find({branch_to(4), kClock, kTime, kAdvance, kRing, kExit}).problems.front().reason,
            "its second slot is missing");
}

TEST(FindSites, StaysInsideAFunction) {
  const Code code = {kClock, kTime, kAdvance, kRing, kExit};
  const uint64_t second_function[] = {0, 2 * sass::kInstructionBytes};
  EXPECT_EQ(FindSites(code, second_function).problems.size(), 1u);
}

TEST(BlockStarts, BeginBehindControlFlowAndAtItsTargets) {
  const Code code = {kOther, sass::Bra(16, 64, {.stall = 5}), kOther, kOther, kOther, kExit,
                     kOther};
  const std::vector<bool> starts = BlockStarts(code, kEntry);
  EXPECT_EQ(starts, (std::vector<bool>{true, false, true, false, true, false, true, false}));
}

TEST(BlockStarts, IgnoresTargetsOutsideOfTheSection) {
  const uint64_t entries[] = {0, uint64_t{1} << 40};
  for (const uint64_t target : {uint64_t{1} << 20, uint64_t{1} << 33, uint64_t{0} - 4096}) {
    const Code code = {sass::Bra(0, target, {.stall = 5}), kOther};
    EXPECT_EQ(BlockStarts(code, entries).size(), 3u);
  }
}

}  // namespace
}  // namespace iket::patch
