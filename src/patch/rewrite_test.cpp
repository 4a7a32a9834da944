// Code made by hand, tighter than ptxas was seen to make it: rewritten, nothing may be read too
// early.
#include "patch/rewrite.h"

#include <gtest/gtest.h>

#include "patch/testing_warp.h"
#include "sass/encode.h"

namespace iket::patch {
namespace {

constexpr sass::Generation kHopper = sass::Generation::kHopper;

using sass::Instruction;
using Code = std::vector<Instruction>;

// As ptxas 13.0 writes them: the clock, a comparison of it with the id or the payload, the id,
// the store, and the slots.
const Instruction kClock = sass::Cs2r32(2, sass::SpecialRegister::kClockLow, {.stall = 4});
constexpr Instruction kCompare{0x123456780200780c, 0x000fda0003f05070};  // ISETP.NE.U32.AND P0, R2
constexpr Instruction kId{0x1234567800038802, 0x000fca0000000f00};       // @!P0 MOV R3
constexpr Instruction kStore{0xfffff802ff008988, 0x0001e20008000a04};  // @!P0 STS.64 [UR4+-0x8], R2
constexpr Instruction kAdvance{0x0000e11000007801, 0x000fe20000000000};  // PMTRIG 0xe110
constexpr Instruction kAddress{0x0000e20000007801, 0x000fe20000000000};  // PMTRIG 0xe200
const Instruction kWideClock = sass::Cs2r32(4, sass::SpecialRegister::kClockLow, {.stall = 4});
constexpr Instruction kWideCompare{0x123456790400780c, 0x000fda0003f05070};
constexpr Instruction kWideId{0x1234567900058802, 0x000fca0000000f00};     // @!P0 MOV R5
constexpr Instruction kWideStore{0xfffff004ff008988, 0x0003e20008000c04};  // STS.128 [UR4+-0x10]
constexpr Instruction kNext{0x0000e31000007801, 0x000fe20000000000};       // PMTRIG 0xe310
constexpr Instruction kMore{0x0000e40000007801, 0x000fe20000000000};       // PMTRIG 0xe400
constexpr Instruction kMoreId{0x8000140100098802, 0x000fca0000000f00};     // @!P0 MOV R9
constexpr Instruction kMoreStore{0xfffff008ff008988, 0x0003e20008000c04};  // STS.128, R8
constexpr Instruction kExit{0x000000000000794d, 0x000fea0003800000};

const Code kMark = {kClock, kCompare, kId, kStore, kAdvance};
const Code kWideMark = {kAddress, kWideClock, kWideCompare, kWideId, kWideStore, kAdvance};
// Of three records. As ptxas does it, the slot behind the comparison waits for its predicate.
Code LongMark() {
  Code code = {kAddress, kWideClock, kWideCompare, kNext, kWideId, kWideStore, kMore,
               kNext,    kMoreId,    kMoreStore,   kMore, kMoreId, kMoreStore, kAdvance};
  sass::Control control = kWideCompare.control();
  control.stall = 1;
  code[2] = code[2].WithControl(control);
  control.stall = 12;
  code[3] = code[3].WithControl(control);
  return code;
}

ring::Layout TestLayout() { return ring::MakeLayout(32 << 10, 132).value(); }

CodeSection SectionOf(Code code, sass::Generation generation = kHopper) {
  CodeSection section;
  section.generation = generation;
  section.functions.push_back({.name = "kernel", .is_kernel = true});
  const uint64_t entries[] = {0};
  section.sites = FindSites(code, entries, generation);
  EXPECT_TRUE(section.sites.problems.empty());
  for (uint32_t i = 0; i < code.size(); ++i) {
    if (code[i].opcode() == sass::kOpExit) section.exits.push_back(i);
  }
  section.code = std::move(code);
  section.exit_registers = 4;
  return section;
}
RewrittenCode RewriteKernel(const CodeSection& section) {
  const EntryOptions entry{.layout = TestLayout()};
  return Rewrite(section, TestLayout(), &entry);
}
// A kernel of `words` behind a first instruction that can move.
Code Kernel(const Code& words, const Code& end = {kExit}) {
  Code code = {sass::Nop({.stall = 1})};
  code.insert(code.end(), words.begin(), words.end());
  code.insert(code.end(), end.begin(), end.end());
  return code;
}
void Stall(Instruction& instruction, uint32_t cycles) {
  instruction = instruction.WithControl({.stall = static_cast<uint8_t>(cycles)});
}

// Marks, two with payload among them, with `between` other instructions after each word, each of
// them `stall` cycles long, then a branch over nothing, another mark and the exit.
Code TightMarks(uint32_t between, uint32_t stall) {
  Code code = {sass::Nop({.stall = 1})};
  const auto mark = [&](const Code& words) {
    for (const Instruction& word : words) {
      code.push_back(word);
      for (uint32_t i = 0; i < between; ++i) code.push_back(sass::Nop({.stall = 1}));
    }
  };
  mark(kMark);
  mark(kWideMark);
  mark(kWideMark);
  mark(LongMark());
  mark(kMark);
  mark(LongMark());
  const uint64_t branch = code.size() * sass::kInstructionBytes;
  code.push_back(sass::Bra(kHopper, branch, branch + sass::kInstructionBytes, {.stall = 1}));
  mark(kMark);
  for (Instruction& instruction : code) Stall(instruction, stall);
  code.push_back(kExit);
  code.push_back(sass::Bra(kHopper, 0, 0, {.stall = 1}));
  return code;
}

TEST(Rewrite, WaitsForUniformResultsHoweverTightTheCode) {
  for (uint32_t between = 0; between <= 6; ++between) {
    for (uint32_t stall = 1; stall <= 6; ++stall) {
      SCOPED_TRACE(fmt::format("{} between, stalls of {}", between, stall));
      testing::Warp warp;
      warp.Walk(RewriteKernel(SectionOf(TightMarks(between, stall))).code,
                [](uint32_t) { return false; });
      EXPECT_TRUE(warp.exited);
      EXPECT_EQ(warp.ring_stores.size(), 2u + 5u + 6u);
      EXPECT_TRUE(warp.hazards.empty()) << warp.hazards.front();
    }
  }
}

TEST(Rewrite, AddsNoWaitWhereThereIsTime) {
  const CodeSection section = SectionOf(TightMarks(6, 6));
  const Code after = RewriteKernel(section).code;
  for (size_t i = 1; i + 2 < section.code.size(); ++i) {
    EXPECT_EQ(after[i].control().stall, section.code[i].control().stall) << i;
  }
}

// Without a payload all lanes store the same: no guard, and the comparison makes the address.
TEST(Rewrite, StoresAPlainMarkFromEveryLane) {
  const Code after = RewriteKernel(SectionOf(Kernel(kMark))).code;
  EXPECT_EQ(after[1], kClock);
  EXPECT_EQ(after[2].low, RingSlot(TestLayout(), {}).low);
  EXPECT_EQ(after[3].low, kId.WithGuard(sass::kPredicateTrue).low);
  EXPECT_EQ(after[4],
            sass::StgEvictFirst(sass::Width::k64, sass::kRegisterZero, 0, 0, 2, kStore.control()));
  EXPECT_EQ(after[5].low, AdvanceSlot(kHopper, 16, {}).low);
}

// In one piece, the lane is elected before the clock is read.
TEST(Rewrite, StoresAPayloadFromTheFirstLane) {
  const Code after = RewriteKernel(SectionOf(Kernel(kWideMark))).code;
  EXPECT_EQ(after[1].low, sass::Elect(kHopper, 0, {}).low);
  EXPECT_EQ(after[2], kWideClock);
  EXPECT_EQ(after[3].low, RingSlot(TestLayout(), {}).low);
  EXPECT_EQ(after[4].low, kWideId.WithGuard(sass::kPredicateTrue).low);
  EXPECT_EQ(
      after[5].low,
      sass::StgEvictFirst(sass::Width::k128, sass::kRegisterZero, 0, 0, 4, {}).WithGuard(0).low);
  EXPECT_EQ(after[6].low, AdvanceSlot(kHopper, 16, {}).low);
}

// Each record has the next place in the ring, and the cursor is behind the last. The lane is
// elected once, before the clock is read.
TEST(Rewrite, StoresEveryRecordOfALongMark) {
  Code words = LongMark();
  for (const Instruction& word : kMark) words.push_back(word);
  const Code after = RewriteKernel(SectionOf(Kernel(words))).code;
  EXPECT_EQ(after[1].low, sass::Elect(kHopper, 0, {}).low);
  EXPECT_EQ(after[3].low, RingSlot(TestLayout(), {}).low);
  EXPECT_EQ(after[4].low, AdvanceSlot(kHopper, 16, {}).low);
  EXPECT_LT(after[4].control().stall, 12u);
  EXPECT_EQ(
      after[10].low,
      sass::StgEvictFirst(sass::Width::k128, sass::kRegisterZero, 0, 0, 8, {}).WithGuard(0).low);
  testing::Warp warp;
  warp.Walk(after, [](uint32_t) { return false; });
  ASSERT_EQ(warp.ring_stores.size(), 2u + 4u);
  EXPECT_TRUE(warp.hazards.empty()) << warp.hazards.front();
  const uint32_t ring_bytes = 32 << 10;
  const uint32_t first = warp.ring_stores[2].address;
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(warp.ring_stores[2 + i].address,
              first / ring_bytes * ring_bytes + (first + 16 * i) % ring_bytes)
        << i;
  }
}

// Before sm_90 nothing elects a lane in one word: code beside the function does, with the clock's
// register, which it reads again.
TEST(Rewrite, ElectsBesideTheCodeBeforeSm90) {
  Code words = kWideMark;
  sass::Control control = words[2].control();
  control.wait = 1 << 3;  // for the payload
  words[2] = words[2].WithControl(control);
  const auto generation = sass::Generation::kAmpere;
  const CodeSection section = SectionOf(Kernel(words), generation);
  const size_t old_size = section.code.size();
  const Code after = RewriteKernel(section).code;
  EXPECT_EQ(after[1].low, sass::Nop({}).low);
  EXPECT_EQ(after[2], words[1]);
  ASSERT_TRUE(sass::HasRelativeTarget(after[3]));
  EXPECT_EQ(after[3].control().wait, 1 << 3);
  EXPECT_EQ(after[5].low, sass::StgEvictFirst(sass::Width::k128, sass::kRegisterZero, 0, 0, 4, {})
                              .WithNegatedGuard(0)
                              .low);
  const auto target = [&](size_t i) {
    return static_cast<size_t>(
               sass::RelativeTarget(after[i], i * sass::kInstructionBytes, generation)) /
           sass::kInstructionBytes;
  };
  const size_t stub = target(3);
  ASSERT_GE(stub, old_size);
  EXPECT_EQ(after[stub].low, sass::ActiveLanes(0, {}).low);
  EXPECT_EQ(after[stub + 1].low, sass::S2r(4, sass::SpecialRegister::kLowerLanes, {}).low);
  EXPECT_EQ(after[stub + 2].low, sass::TestUniform(0, 4, 0, {}).low);
  EXPECT_NE(after[stub + 2].control().wait & 1 << after[stub + 1].control().write_barrier, 0);
  EXPECT_EQ(after[stub + 3].low, sass::Cs2r32(4, sass::SpecialRegister::kClockLow, {}).low);
  EXPECT_EQ(after[stub + 4].low, RingSlot(TestLayout(), {}).low);
  EXPECT_EQ(target(stub + 5), 4u);
  uint32_t cycles = 0;
  for (size_t i = stub + 2; i < stub + 6; ++i) cycles += after[i].control().stall;
  EXPECT_GE(cycles, 13u) << "from the predicate to what it guards";
  EXPECT_GE(after[stub + 4].control().stall + after[stub + 5].control().stall, 9u);
}

// With other code inside, somebody there may still need the predicate: it is elected where it was
// compared.
TEST(Rewrite, ElectsWhereTheComparisonWasIfOtherCodeIsBetween) {
  Code words = kWideMark;
  words.insert(words.begin() + 2, sass::Nop({.stall = 1}));
  const Code after = RewriteKernel(SectionOf(Kernel(words))).code;
  EXPECT_EQ(after[1].low, RingSlot(TestLayout(), {}).low);
  EXPECT_EQ(after[4].low, sass::Elect(kHopper, 0, {}).low);
  EXPECT_EQ(after[4].control(), kWideCompare.control());
}

// Whatever is shortened: 9 cycles from the address to its store, 13 from the election to the store
// that it guards, and 13 across the whole, for readers of what was computed before.
TEST(Rewrite, KeepsTheDistancesOfACompactSite) {
  const auto cycles = [](const Code& code, size_t from, size_t to) {
    uint32_t sum = 0;
    for (size_t i = from; i < to; ++i) sum += code[i].control().stall;
    return sum;
  };
  for (uint32_t before = 1; before <= 6; ++before) {
    for (uint32_t behind = 1; behind <= 9; ++behind) {
      SCOPED_TRACE(fmt::format("{} before the comparison, {} behind", before, behind));
      Code plain = kMark, wide = kWideMark;
      Stall(plain[0], before);
      Stall(plain[2], behind);
      Stall(wide[1], before);
      Stall(wide[3], behind);
      const Code one = RewriteKernel(SectionOf(Kernel(plain))).code;
      EXPECT_GE(cycles(one, 2, 4), 9u);
      EXPECT_GE(cycles(one, 1, 5), 13u);
      EXPECT_LT(one[2].control().stall, kCompare.control().stall);
      const Code two = RewriteKernel(SectionOf(Kernel(wide))).code;
      EXPECT_GE(cycles(two, 3, 5), 9u);
      EXPECT_GE(cycles(two, 1, 5), 13u);
      EXPECT_LT(two[3].control().stall, kWideCompare.control().stall);
    }
  }
}

TEST(Rewrite, KeepsGuardAndSourcePredicateOfAnExit) {
  Instruction guarded = kExit;
  guarded.low &= ~uint64_t{0x7000};
  guarded.low |= 0xa000;                                                         // @!P2
  guarded.high = (guarded.high & ~(uint64_t{0xf} << 23)) | uint64_t{0x9} << 23;  // !P1
  const RewrittenCode after = RewriteKernel(SectionOf(Kernel(kMark, {guarded, kExit})));
  const Instruction& branch = after.code[1 + kMark.size()];
  EXPECT_EQ(branch.opcode(), sass::kOpBra);
  EXPECT_EQ(branch.Bits(12, 4), 0xau);
  EXPECT_EQ(branch.Bits(87, 4), 0x9u);
  ASSERT_EQ(after.exit_offsets.size(), 2u);
  for (const uint32_t offset : after.exit_offsets) {
    const Instruction& exit = after.code[offset / sass::kInstructionBytes];
    EXPECT_EQ(exit.opcode(), sass::kOpExit);
    EXPECT_TRUE(exit.is_unguarded());
    EXPECT_EQ(exit.Bits(87, 4), 7u) << "met by whoever arrives";
  }
}

TEST(Rewrite, FillsSectionsTo128Bytes) {
  EXPECT_EQ(RewriteKernel(SectionOf(Kernel(kMark))).code.size() * sass::kInstructionBytes % 128,
            0u);
}

TEST(Rewrite, WithoutAnEntryLeavesTheFirstInstruction) {
  const CodeSection section = SectionOf(Kernel(kMark));
  EXPECT_EQ(Rewrite(section, TestLayout(), nullptr).code[0], section.code[0]);
}

}  // namespace
}  // namespace iket::patch
