// Where the second part of the entry code may stand: by hand, and random flow against a walk of
// single instructions that looks for any way to come to harm.
#include "patch/late_start.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "patch/testing_code.h"
#include "patch/testing_warp.h"
#include "patch/trampoline.h"
#include "sass/encode.h"
#include "sass/operands.h"

namespace iket::patch {
namespace {

using sass::Instruction;
using Code = std::vector<Instruction>;
using testing::Branch;
using testing::kExit;

constexpr sass::Generation kHopper = sass::Generation::kHopper;
constexpr uint64_t kEntries[] = {0};

// As nvdisasm shows them, for sm_90a.
constexpr Instruction kBar{0x0000000000007b1d, 0x000fec0000010000};     // BAR.SYNC 0x0
constexpr Instruction kArrive{0x00000000000079c7, 0x000fe20000000000};  // UCGABAR_ARV
constexpr Instruction kWait{0x0000000000007dc7, 0x000fe20000000000};    // UCGABAR_WAIT
constexpr Instruction kMaxReg{0x00000028000079c8, 0x000fe20008000500};  // USETMAXREG.DEALLOC
const Instruction kLoad = sass::Ldg(sass::Width::k32, 2, 2, 4, 0, {.stall = 1, .write_barrier = 0});
const Instruction kStsUniform{0xfffff802ff007988, 0x0001e20008000a04};  // STS.64 [UR4+-0x8], R2
const Instruction kSite = sass::UmaskOr(0, 2, 0x7ff0, 3, {.stall = 9});

Instruction Names(uint8_t r) { return sass::MovImmediate(r, 1, {.stall = 1}); }
Code Moves(size_t count) { return Code(count, Names(2)); }
Code operator+(Code a, const Code& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::optional<LateStart> Find(const Code& code, uint32_t registers = 32,
                              std::span<const uint32_t> fixed = {},
                              sass::Generation generation = kHopper) {
  return FindLateStart({.code = code,
                        .entries = kEntries,
                        .fixed = fixed,
                        .registers = registers,
                        .generation = generation});
}
std::optional<uint32_t> PlaceIn(const Code& code) {
  const auto found = Find(code);
  return found ? std::optional(found->at) : std::nullopt;
}

TEST(LateStart, BeforeWhatMayKeepTheWarp) {
  for (const Instruction& stop : {kBar, kWait, kMaxReg, kLoad}) {
    EXPECT_EQ(PlaceIn(Moves(20) + Code{stop, Names(2), kExit}), 20u) << std::hex << stop.low;
  }
}

TEST(LateStart, BeforeAWarpMayEnd) {
  EXPECT_EQ(PlaceIn(Moves(20) + Code{kExit.WithGuard(0), Names(2), kExit}), 19u);
}

TEST(LateStart, BeyondWhatKeepsNobody) {
  for (const Instruction& passed : {kArrive, kStsUniform}) {
    EXPECT_EQ(PlaceIn(Moves(10) + Code{passed} + Moves(9) + Code{kBar, kExit}), 20u)
        << std::hex << passed.low;
  }
}

// A mark begins some instructions before the one that shows it.
TEST(LateStart, NotAmidstAMark) {
  const Code code = Moves(20) + Code{Branch(20, 21).WithGuard(0)} + Moves(3) + Code{kSite, kExit};
  EXPECT_EQ(PlaceIn(code), 21u);
  EXPECT_EQ(PlaceIn(Moves(20) + Code{kSite, kExit}), std::nullopt);
}

TEST(LateStart, NotWhereSomeWarpsDoNotCome) {
  // 20: to 25, where a warp ends, or on to the barrier.
  const Code code =
      Moves(20) + Code{Branch(20, 25).WithGuard(0)} + Moves(2) + Code{kBar, kExit, kExit};
  EXPECT_EQ(PlaceIn(code), 19u);
}

TEST(LateStart, WhereWaysMeetAgain) {
  // 5: to 15, or on to 14, which goes to 20.
  const Code code = Moves(5) + Code{Branch(5, 15).WithGuard(0)} + Code(8, Names(9)) +
                    Code{Branch(14, 20)} + Code(5, Names(17)) + Moves(4) + Code{kBar, kExit};
  const auto found = Find(code);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at, 24u);
  // Neither what one side names nor what the other does.
  EXPECT_EQ(found->begin, 12);
  EXPECT_EQ(found->identity, 20);
  EXPECT_EQ(found->cursor, 24);
  EXPECT_EQ(found->passed, 23u);
}

TEST(LateStart, BeforeALoopAndNotInIt) {
  const Code code =
      Moves(20) + Code{Names(3), Branch(21, 20).WithGuard(0)} + Moves(5) + Code{kBar, kExit};
  EXPECT_EQ(PlaceIn(code), 19u);
  // All of it in a loop whose turns go by the barrier.
  EXPECT_EQ(PlaceIn(Moves(1) + Moves(20) + Code{kBar, Branch(22, 1).WithGuard(0), kExit}),
            std::nullopt);
}

TEST(LateStart, NotWhereItWouldGainNothing) {
  EXPECT_EQ(PlaceIn(Moves(kLeastPassed) + Code{kBar, kExit}), std::nullopt);
  EXPECT_EQ(PlaceIn(Moves(kLeastPassed + 1) + Code{kBar, kExit}), kLeastPassed + 1);
}

TEST(LateStart, NeedsRegistersThatNobodyNames) {
  const Code code = Moves(20) + Code{kBar, kExit};
  EXPECT_EQ(Find(code, 22)->cursor, 16);
  EXPECT_EQ(Find(code, 21), std::nullopt);
  EXPECT_EQ(Find(Code{Names(9)} + code, 32)->begin, 12) << "by the first instruction, too";
  Code all = Code{Names(2)};
  for (uint8_t predicate = 0; predicate < 7; ++predicate)
    all.push_back(Names(2).WithGuard(predicate));
  EXPECT_EQ(Find(all + code), std::nullopt);
  all.pop_back();
  EXPECT_EQ(Find(all + code)->predicate, 6);
}

TEST(LateStart, LeavesWhatMayNotMove) {
  const uint32_t fixed[] = {19, 20};
  EXPECT_EQ(Find(Moves(20) + Code{kBar, kExit}, 32, fixed)->at, 18u);
}

TEST(LateStart, OnlyWhereItWasSeenToWork) {
  EXPECT_EQ(Find(Moves(20) + Code{kBar, kExit}, 32, {}, sass::Generation::kAmpere), std::nullopt);
  EXPECT_EQ(Find(Moves(20) + Code{kBar, kExit}, 32, {}, sass::Generation::kBlackwell),
            std::nullopt);
}

TEST(LateStart, LooksAtNoMoreThanSomeBlocks) {
  Code code = Moves(1);
  for (uint32_t i = 0; i < 100; ++i) {
    code = code + Moves(2);
    code.push_back(
        Branch(static_cast<uint32_t>(code.size()), static_cast<uint32_t>(code.size() + 1))
            .WithGuard(0));
  }
  EXPECT_EQ(PlaceIn(code + Code{kBar, kExit}), std::nullopt);
}

// Everything that may run before the place, one instruction at a time.
void CheckByWalk(const Code& code, const LateStart& found) {
  std::vector<bool> seen(code.size());
  std::vector<uint32_t> pending{1};
  sass::RegisterSet named = sass::NamedRegisters(code[0]);
  const auto next_of = [&](uint32_t i) {
    std::vector<uint32_t> next;
    const bool is_branch = code[i].opcode() == sass::kOpBra;
    if (is_branch) {
      next.push_back(
          static_cast<uint32_t>(sass::RelativeTarget(code[i], uint64_t{i} * 16, kHopper) / 16));
    }
    const bool ends = (is_branch || code[i].opcode() == sass::kOpExit) && code[i].is_unguarded();
    if (!ends && i + 1 < code.size()) next.push_back(i + 1);
    return next;
  };
  while (!pending.empty()) {
    const uint32_t i = pending.back();
    pending.pop_back();
    if (i == found.at || seen[i]) continue;
    seen[i] = true;
    named |= sass::NamedRegisters(code[i]);
    for (const Instruction& stop : {kBar, kLoad, kSite, kExit}) {
      EXPECT_FALSE(code[i].WithGuard(7).low == stop.low) << "a way leads by it, " << i;
    }
    for (const uint32_t next : next_of(i)) pending.push_back(next);
  }
  for (const uint8_t first : {found.begin, found.identity, found.cursor}) {
    EXPECT_EQ(first % 4, 0);
    for (uint32_t r = first; r < first + 4u; ++r) EXPECT_FALSE(named[r]) << "R" << r;
  }
  // Nobody comes there twice.
  std::vector<bool> behind(code.size());
  pending = next_of(found.at);
  while (!pending.empty()) {
    const uint32_t i = pending.back();
    pending.pop_back();
    ASSERT_NE(i, found.at) << "in a loop";
    if (behind[i]) continue;
    behind[i] = true;
    for (const uint32_t next : next_of(i)) pending.push_back(next);
  }
}

TEST(LateStart, NoWayLeadsByIt) {
  std::mt19937 random(1);
  const auto below = [&random](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  uint32_t found_any = 0;
  for (uint32_t round = 0; round < 20'000; ++round) {
    const uint32_t size = 30 + below(40);
    Code code;
    for (uint32_t i = 0; i < size; ++i) {
      const uint32_t kind = below(100);
      const bool is_late = i > 20;
      if (kind < 12) {
        // Mostly on, as compilers have it.
        const uint32_t to =
            below(10) != 0 ? std::min(i + 1 + below(12), size) : 1 + below(size - 1);
        const Instruction branch = Branch(i, to);
        code.push_back(below(3) == 0 && is_late ? branch
                                                : branch.WithGuard(static_cast<uint8_t>(below(4))));
      } else if (kind < 16 && is_late) {
        code.push_back(std::array{kBar, kLoad, kSite, kExit.WithGuard(1)}[below(4)]);
      } else {
        code.push_back(Names(static_cast<uint8_t>(2 + below(22))));
      }
    }
    code[0] = Names(2);
    code.push_back(kExit);
    if (const auto found = Find(code, 48)) {
      ++found_any;
      CheckByWalk(code, *found);
      if (HasFailure()) FAIL() << "round " << round;
    }
  }
  EXPECT_GT(found_any, 2000u);
}

// Both parts, with the kernel between them, leave what the whole does.
TEST(LateStart, StoresWhatTheWholeDoes) {
  const ring::Layout layout = ring::MakeLayout(32 << 10, 132).value();
  const EntryOptions options{.layout = layout, .kernel = 0x1234567, .constant_offset = 24};
  const LateEntryCode parts =
      SplitEntryCode(options, {.at = 20, .begin = 20, .identity = 8, .cursor = 12, .predicate = 3});
  testing::Warp whole, late;
  whole.Walk(EntryCode(options), [](uint32_t) { return false; });
  Code code = parts.first + Moves(20) + parts.second;
  late.Walk(code, [](uint32_t) { return false; });
  ASSERT_EQ(late.ring_stores.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(late.ring_stores[i].address, whole.ring_stores[i].address);
    EXPECT_EQ(late.ring_stores[i].words, whole.ring_stores[i].words);
  }
  ASSERT_EQ(late.header_stores.size(), 1u);
  EXPECT_EQ(late.header_stores.begin()->first, whole.header_stores.begin()->first);
  EXPECT_EQ(late.header_stores.begin()->second.words, whole.header_stores.begin()->second.words);
  for (const uint32_t n : {0, 2, 3}) EXPECT_EQ(late.ur[n], whole.ur[n]) << "UR" << n;
  EXPECT_TRUE(late.hazards.empty()) << late.hazards.front();
  // In one lane of those that come; whoever comes later goes by.
  for (const Instruction& i : parts.second) {
    if (i.opcode() == 0x986) {
      EXPECT_EQ(i.Bits(12, 4), 3u);
    }
  }
  EXPECT_EQ(parts.second[parts.skip].Bits(12, 4), 8u | 3u);
  // What trampoline.h says it costs.
  EXPECT_EQ(parts.first.size() + parts.second.size(), EntryCode(options).size() + 5);
  // The first part waits for no load: only this is why it is one.
  for (const Instruction& i : parts.first) EXPECT_EQ(i.control().wait >> 5 & 1, 0);
}

}  // namespace
}  // namespace iket::patch
