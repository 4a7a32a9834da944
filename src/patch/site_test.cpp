// Sites in instruction vectors made by hand: every order that ptxas may choose, and what must be
// refused.
#include "patch/site.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "sass/encode.h"

namespace iket::patch {
namespace {

constexpr sass::Generation kHopper = sass::Generation::kHopper;

using sass::Instruction;
using Code = std::vector<Instruction>;

constexpr sass::Control kPlain{.stall = 1};
const uint64_t kEntry[] = {0};

// Raw words, as ptxas 13.0 writes them for a mark and for one with payload.
const Instruction kClock = sass::Cs2r32(2, sass::SpecialRegister::kClockLow, kPlain);
constexpr Instruction kCompare{0x123456780200780c, 0x000fda0003f05070};  // ISETP.NE.U32.AND P0, R2
constexpr Instruction kId{0x1234567800038802, 0x000fca0000000f00};       // @!P0 MOV R3
constexpr Instruction kStore{0xfffff802ff008988, 0x0001e20008000a04};  // @!P0 STS.64 [UR4+-0x8], R2
constexpr Instruction kStoreByRegister{0xfffff80203008388, 0x0001e20000000a00};  // [R3+-0x8]
constexpr Instruction kAdvance{0x0000e11000007801, 0x000fe20000000000};          // PMTRIG 0xe110

constexpr Instruction kAddress{0x0000e20000007801, 0x000fe20000000000};  // PMTRIG 0xe200
const Instruction kWideClock = sass::Cs2r32(4, sass::SpecialRegister::kClockLow, kPlain);
constexpr Instruction kWideCompare{0x123456790400780c, 0x000fda0003f05070};
constexpr Instruction kWideStore{0xfffff004ff008988, 0x0003e20008000c04};  // STS.128 [UR4+-0x10]

constexpr Instruction kNext{0x0000e31000007801, 0x000fe20000000000};  // PMTRIG 0xe310
constexpr Instruction kMore{0x0000e40000007801, 0x000fe20000000000};  // PMTRIG 0xe400
// @!P0 STS.128 [UR4+-0x10], R8
constexpr Instruction kMoreStore{0xfffff008ff008988, 0x0003e20008000c04};

constexpr Instruction kExit{0x000000000000794d, 0x000fea0003800000};
const Instruction kOther = sass::MovImmediate(9, 1, kPlain);

Instruction Guarded(const Instruction& instruction) { return instruction.WithGuard(3); }

// A whole mark and a whole one with payload.
const Code kMark = {kClock, kCompare, kId, kStore, kAdvance};
const Code kWideMark = {kAddress, kWideClock, kWideCompare, kWideStore, kAdvance};
// One with three records.
const Code kLongMark = {kAddress, kWideClock, kWideCompare, kNext,  kWideStore, kMore,
                        kNext,    kMoreStore, kMore,        kOther, kMoreStore, kAdvance};
Code Join(std::initializer_list<Code> parts) {
  Code all;
  for (const Code& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
// `mark` with instruction `at` replaced, and an exit.
Code With(Code mark, size_t at, const Instruction& instruction) {
  mark[at] = instruction;
  mark.push_back(kExit);
  return mark;
}
Code Without(Code mark, size_t at) {
  mark.erase(mark.begin() + static_cast<ptrdiff_t>(at));
  mark.push_back(kExit);
  return mark;
}

Sites Find(const Code& code) { return FindSites(code, kEntry, kHopper); }

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
  const Site site = OnlySite(Join({{kOther}, kMark, {kExit}}));
  EXPECT_FALSE(site.has_payload());
  EXPECT_EQ(site.compare, 2u);
  EXPECT_EQ(site.store, 4u);
  EXPECT_EQ(site.advance, 5u);
  EXPECT_EQ(site.bytes, 16u);
}

TEST(FindSites, TakesAMarkWithPayload) {
  const Site site = OnlySite(Join({{kOther}, kWideMark, {kExit}}));
  EXPECT_TRUE(site.has_payload());
  EXPECT_EQ(site.address, 1u);
  EXPECT_EQ(site.compare, 3u);
  EXPECT_EQ(site.store, 4u);
  EXPECT_EQ(site.advance, 5u);
}

TEST(FindSites, TakesAMarkWithSeveralRecords) {
  const Site site = OnlySite(Join({{kOther}, kLongMark, {kExit}}));
  EXPECT_EQ(site.address, 1u);
  EXPECT_EQ(site.store, 5u);
  ASSERT_EQ(site.more.size(), 2u);
  EXPECT_EQ(site.more[0].next, 4u);
  EXPECT_EQ(site.more[0].address, 6u);
  EXPECT_EQ(site.more[0].store, 8u);
  EXPECT_EQ(site.more[1].next, 7u);
  EXPECT_EQ(site.more[1].address, 9u);
  EXPECT_EQ(site.more[1].store, 11u);
  EXPECT_EQ(site.last_store(), 11u);
  EXPECT_EQ(Find(Join({kLongMark, kWideMark, kLongMark, {kExit}})).all.size(), 3u);
}

// Whatever of such a site is missing, guarded or elsewhere, it is not taken for another one.
TEST(FindSites, RefusesSeveralRecordsThatAreNotWhole) {
  const std::string apart = "stores and slots in it do not belong together";
  for (const size_t at : {3, 5, 6, 7, 8, 10}) {
    EXPECT_FALSE(Find(Without(kLongMark, at)).problems.empty()) << at;
  }
  EXPECT_EQ(OnlyProblem(Without(kLongMark, 3)), apart);
  EXPECT_EQ(OnlyProblem(With(kLongMark, 6, Guarded(kNext))), "its slot is guarded");
  EXPECT_EQ(OnlyProblem(With(kLongMark, 8, Guarded(kMore))), "its slot is guarded");
  EXPECT_EQ(OnlyProblem(With(kLongMark, 7, Guarded(kMoreStore))),
            "its stores have different guards");
  EXPECT_EQ(OnlyProblem(With(kLongMark, 9, kWideCompare)), "its stores have different guards");
  Code swapped = kLongMark;
  std::swap(swapped[5], swapped[6]);
  EXPECT_EQ(OnlyProblem(Join({swapped, {kExit}})), apart);
}

// The comparison may be where the address is made, before sm_90 always: behind the slot that moves
// the cursor on it would be the next record's.
TEST(FindSites, WantsTheComparisonFirstWhereItMakesTheAddress) {
  Code late = kLongMark;
  std::swap(late[2], late[3]);
  late.push_back(kExit);
  EXPECT_EQ(Find(late).problems.size(), 0u);
  EXPECT_EQ(FindSites(late, kEntry, sass::Generation::kAmpere).all.size(), 0u);
}

TEST(FindSites, TakesAStoreThroughAGeneralRegister) {
  EXPECT_EQ(OnlySite(With(kMark, 3, kStoreByRegister)).store, 3u);
}

// ptxas may turn the comparison around: P0 where the clock equals, and a store under @P0.
TEST(FindSites, TakesEitherSenseOfTheGuard) {
  const Code code = {kClock, kCompare, kId.WithGuard(0), kStore.WithGuard(0), kAdvance, kExit};
  EXPECT_EQ(OnlySite(code).store, 3u);
}

TEST(FindSites, LooksThroughOtherInstructions) {
  const Code apart = {kAddress, kOther, kWideClock, kOther,   kOther, kWideCompare,
                      kOther,   kOther, kWideStore, kAdvance, kExit};
  const Site site = OnlySite(apart);
  EXPECT_EQ(site.address, 0u);
  EXPECT_EQ(site.compare, 5u);
  EXPECT_EQ(site.store, 8u);
}

TEST(FindSites, KeepsMarksInARowApart) {
  const Sites sites = Find(Join({kWideMark, kMark, {kOther}, kWideMark, kMark, {kExit}}));
  EXPECT_TRUE(sites.problems.empty());
  ASSERT_EQ(sites.all.size(), 4u);
  EXPECT_EQ(sites.all[0].store, 3u);
  EXPECT_EQ(sites.all[1].store, 8u);
  EXPECT_FALSE(sites.all[1].has_payload());
  EXPECT_EQ(sites.all[2].address, 11u);
  EXPECT_EQ(sites.all[3].advance, 20u);
}

// Where registers are short the clock may be copied, or go through local memory.
TEST(FindSites, TakesAClockThatWasCopied) {
  // MOV R2, R8 and IMAD.MOV.U32 R2, RZ, RZ, R8
  constexpr Instruction kCopies[] = {{0x0000000800027202, 0x000fe20000000f00},
                                     {0x000000ffff027224, 0x000fe200078e0008}};
  const Instruction clock = sass::Cs2r32(8, sass::SpecialRegister::kClockLow, kPlain);
  for (const Instruction& copy : kCopies) {
    EXPECT_EQ(OnlySite({clock, copy, kCompare, kId, kStore, kAdvance, kExit}).store, 4u);
  }
  const Instruction timer = sass::Cs2r32(2, sass::SpecialRegister::kGlobalTimerLow, kPlain);
  EXPECT_EQ(OnlySite({timer, clock, kCopies[0], kCompare, kId, kStore, kAdvance, kExit}).store, 5u);
}

// A program's own store of a clock, without a guard, at the same offset of some pointer.
TEST(FindSites, IgnoresUnguardedStoresOfAClock) {
  const Instruction own = kStoreByRegister.WithGuard(sass::kPredicateTrue);
  EXPECT_EQ(OnlySite({kClock, own, kClock, kCompare, kId, kStore, kAdvance, kExit}).store, 5u);
}

// Which event a site stores is asked only where the code says it for certain.
TEST(FindSites, ShowsTheEventThatIsStored) {
  constexpr uint32_t kEvent = 0x12345678;
  EXPECT_EQ(OnlySite(With(kMark, 4, kAdvance)).event, kEvent);
  // IMAD.MOV.U32 R3, RZ, RZ, 0x378ed356, under the guard and before all of it.
  constexpr Instruction kImad{0x378ed356ff038424, 0x000fe200078e00ff};
  EXPECT_EQ(OnlySite(With(kMark, 2, kImad)).event, 0x378ed356u);
  const Instruction always = kImad.WithGuard(sass::kPredicateTrue);
  EXPECT_EQ(OnlySite({always, kClock, kCompare, kStore, kAdvance, kExit}).event, 0x378ed356u);
  EXPECT_EQ(OnlySite({always, kClock, kCompare, kOther, kStore, kAdvance, kExit}).event,
            0x378ed356u);
}

TEST(FindSites, SaysWhenTheEventDoesNotShow) {
  constexpr uint32_t kNobody = 0;
  EXPECT_EQ(OnlySite(Without(kMark, 2)).event, kNobody);
  // Under another guard, or that of an earlier predicate of the same number.
  EXPECT_EQ(OnlySite(With(kMark, 2, kId.WithGuard(1))).event, kNobody);
  EXPECT_EQ(OnlySite({kClock, kId, kCompare, kStore, kAdvance, kExit}).event, kNobody);
  // Copied, with its top bit set, or written again: by a word that is known and by one that is not.
  EXPECT_EQ(OnlySite(With(kMark, 2, {0x0000000900038202, 0x000fca0000000f00})).event, kNobody);
  EXPECT_EQ(OnlySite(With(kMark, 2, {0x8234567800038802, 0x000fca0000000f00})).event, kNobody);
  const Instruction add{0x0000000403037210, 0x000fe20007ffe0ff};  // IADD3 R3, R3, R4, RZ
  EXPECT_EQ(OnlySite({kClock, kCompare, kId, add, kStore, kAdvance, kExit}).event, kNobody);
  const Instruction unknown{0x00000000000075f0, 0x000fe20000000000};
  EXPECT_EQ(OnlySite({kClock, kCompare, kId, unknown, kStore, kAdvance, kExit}).event, kNobody);
  // IMAD.MOV of a register, and an IMAD that multiplies.
  EXPECT_EQ(OnlySite(With(kMark, 2, {0x00000009ff038224, 0x000fe200078e00ff})).event, kNobody);
  EXPECT_EQ(OnlySite(With(kMark, 2, {0x378ed35604038424, 0x000fe200078e00ff})).event, kNobody);
  // Made in another block.
  const Instruction always = kId.WithGuard(sass::kPredicateTrue);
  const Instruction branch = sass::Bra(kHopper, 16, 32, kPlain);
  EXPECT_EQ(OnlySite({always, branch, kClock, kCompare, kStore, kAdvance, kExit}).event, kNobody);
}

// The predicate may serve again once the store is done.
TEST(FindSites, LeavesThePredicateToOthersBehindTheStore) {
  const Code user = {sass::TestImmediate(0, 7, 1, kPlain), kOther.WithGuard(0)};
  EXPECT_EQ(OnlySite(Join({kMark, user, {kExit}})).store, 3u);
}

// A program's own store at offset -8 of some pointer is no time stamp unless it stores the clock.
TEST(FindSites, IgnoresStoresOfOtherData) {
  const Instruction own = sass::Cs2r32(8, sass::SpecialRegister::kGlobalTimerLow, kPlain);
  Instruction store = kStoreByRegister;
  store.low = (store.low & ~(uint64_t{0xff} << 32)) | uint64_t{8} << 32;
  EXPECT_EQ(OnlySite(Join({{own, store}, kMark, {kExit}})).store, 5u);
}

TEST(FindSites, RefusesWhatIsNotWhole) {
  EXPECT_EQ(OnlyProblem(Without(kWideMark, 0)), "its address slot is missing");
  EXPECT_EQ(OnlyProblem(Join({{kAddress}, kMark, {kExit}})), "an address slot without a payload");
  EXPECT_EQ(OnlyProblem(Without(kMark, 1)), "the comparison that guards its store is missing");
  const Instruction of_others = {uint64_t{0x12345678} << 32 | 0x700780c, kCompare.high};  // R7
  EXPECT_EQ(OnlyProblem(With(kMark, 1, of_others)),
            "its store is guarded by something else than its clock");
  EXPECT_NE(OnlyProblem(Without(kMark, 3)).find("no guarded store"), std::string::npos);
  EXPECT_EQ(OnlyProblem({kOther, kAddress, kExit}), "1 of 1 slots before stores are of no site");
}

TEST(FindSites, RefusesGuards) {
  EXPECT_EQ(OnlyProblem(With(kMark, 4, Guarded(kAdvance))), "its slot is guarded");
  EXPECT_EQ(OnlyProblem(With(kWideMark, 0, Guarded(kAddress))), "its address slot is guarded");
  EXPECT_NE(
      OnlyProblem(With(kMark, 3, kStore.WithGuard(sass::kPredicateTrue))).find("no guarded store"),
      std::string::npos);
  EXPECT_EQ(OnlyProblem(With(kMark, 1, Guarded(kCompare))),
            "the comparison that guards its store depends on more than its clock");
}

TEST(FindSites, RefusesAGuardThatDependsOnMoreThanTheClock) {
  constexpr uint32_t kSource = 87 - 64, kNegated = 90 - 64, kSecond = 84 - 64;
  const uint64_t changed[] = {kCompare.high ^ uint64_t{7} << kSource,
                              kCompare.high ^ uint64_t{1} << kNegated,
                              kCompare.high ^ uint64_t{7} << kSecond};
  for (const uint64_t high : changed) {
    EXPECT_EQ(OnlyProblem(With(kMark, 1, {kCompare.low, high})),
              "the comparison that guards its store depends on more than its clock");
  }
  EXPECT_EQ(OnlyProblem(With(kMark, 2, kId.WithGuard(0))),
            "the predicate of its store guards other code");
}

TEST(FindSites, RefusesMarksThatMixed) {
  EXPECT_EQ(OnlyProblem({kClock, kCompare, kStore, kStore, kAdvance, kExit}),
            "two stores in one site");
  EXPECT_EQ(OnlyProblem(Join({{kAddress}, kWideMark, {kExit}})), "two address slots in one site");
  // Of the second slot nothing is left.
  EXPECT_EQ(Find(Join({kMark, {kAdvance, kExit}})).problems.size(), 1u);
}

TEST(FindSites, RefusesRecordsOfAnotherSize) {
  Instruction advance = kAdvance;
  advance.low ^= uint64_t{0x08 ^ 0x10} << 32;
  EXPECT_EQ(OnlyProblem(With(kMark, 4, advance)),
            "a record of 8 bytes is of a newer version of the header");
}

// A lane that jumps into the middle of a site would move the cursor without having stored.
TEST(FindSites, RefusesSitesThatSomebodyCanJumpInto) {
  const auto branch_to = [](uint64_t target) {
    return Guarded(sass::Bra(kHopper, 0, target * sass::kInstructionBytes, {.stall = 5}));
  };
  EXPECT_EQ(OnlySite(Join({{branch_to(1)}, kMark, {kExit}})).store, 4u);
  // At the comparison a clock that was read elsewhere may come in.
  EXPECT_EQ(OnlySite(Join({{branch_to(2)}, kMark, {kExit}})).store, 4u);
  for (const uint64_t target : {3, 4, 5}) {
    EXPECT_EQ(Find(Join({{branch_to(target)}, kMark, {kExit}})).problems.size(), 1u) << target;
  }
}

TEST(FindSites, StaysInsideAFunction) {
  const uint64_t second_function[] = {0, 2 * sass::kInstructionBytes};
  EXPECT_EQ(FindSites(Join({kMark, {kExit}}), second_function, kHopper).problems.size(), 1u);
}

TEST(BlockStarts, BeginBehindControlFlowAndAtItsTargets) {
  const Code code = {
      kOther, sass::Bra(kHopper, 16, 64, {.stall = 5}), kOther, kOther, kOther, kExit, kOther};
  const std::vector<bool> starts = BlockStarts(code, kEntry, kHopper);
  EXPECT_EQ(starts, (std::vector<bool>{true, false, true, false, true, false, true, false}));
}

TEST(BlockStarts, IgnoresTargetsOutsideOfTheSection) {
  const uint64_t entries[] = {0, uint64_t{1} << 40};
  for (const uint64_t target : {uint64_t{1} << 20, uint64_t{1} << 33, uint64_t{0} - 4096}) {
    const Code code = {sass::Bra(kHopper, 0, target, {.stall = 5}), kOther};
    EXPECT_EQ(BlockStarts(code, entries, kHopper).size(), 3u);
  }
}

}  // namespace
}  // namespace iket::patch
