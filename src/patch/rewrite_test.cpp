// Code made by hand, tighter than ptxas was seen to make it: rewritten, nothing may be read too
// early.
#include "patch/rewrite.h"

#include <gtest/gtest.h>

#include "patch/testing_warp.h"
#include "sass/encode.h"

namespace iket::patch {
namespace {

using sass::Instruction;
using Code = std::vector<Instruction>;

constexpr Instruction kTime{0xfffff802ff007988, 0x000fe20008000a04};     // STS.64 [UR4+-0x8], R2
constexpr Instruction kAdvance{0x0000e11000007801, 0x000fe20000000000};  // PMTRIG 0xe110
constexpr Instruction kRing{0x0000e20000007801, 0x000fe20000000000};     // PMTRIG 0xe200
constexpr Instruction kExit{0x000000000000794d, 0x000fea0003800000};

ring::Layout TestLayout() { return ring::MakeLayout(32 << 10, 132).value(); }

CodeSection SectionOf(Code code) {
  CodeSection section;
  section.functions.push_back({.name = "kernel", .is_kernel = true});
  const uint64_t entries[] = {0};
  section.sites = FindSites(code, entries);
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
void Stall(Instruction& instruction, uint32_t cycles) {
  instruction = instruction.WithControl({.stall = static_cast<uint8_t>(cycles)});
}

// Marks with `between` other instructions after each word, each of them `stall` cycles long, then a
// branch over nothing, another mark and the exit.
Code TightMarks(uint32_t between, uint32_t stall) {
  Code code = {sass::Nop({.stall = 1})};
  const auto mark = [&] {
    for (const Instruction& word : {kTime, kAdvance, kRing}) {
      code.push_back(word);
      for (uint32_t i = 0; i < between; ++i) code.push_back(sass::Nop({.stall = 1}));
    }
  };
  mark();
  mark();
  const uint64_t branch = code.size() * sass::kInstructionBytes;
  code.push_back(sass::Bra(branch, branch + sass::kInstructionBytes, {.stall = 1}));
  mark();
  for (Instruction& instruction : code) Stall(instruction, stall);
  code.push_back(kExit);
  code.push_back(sass::Bra(0, 0, {.stall = 1}));
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
      EXPECT_EQ(warp.ring_stores.size(), 2u + 3u);
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

TEST(Rewrite, KeepsGuardAndSourcePredicateOfAnExit) {
  Instruction guarded = kExit;
  guarded.low &= ~uint64_t{0x7000};
  guarded.low |= 0xa000;                                                         // @!P2
  guarded.high = (guarded.high & ~(uint64_t{0xf} << 23)) | uint64_t{0x9} << 23;  // !P1
  const Code code = {sass::Nop({.stall = 1}), kTime, kAdvance, kRing, guarded, kExit};
  const RewrittenCode after = RewriteKernel(SectionOf(code));
  EXPECT_EQ(after.code[4].opcode(), sass::kOpBra);
  EXPECT_EQ(after.code[4].Bits(12, 4), 0xau);
  EXPECT_EQ(after.code[4].Bits(87, 4), 0x9u);
  ASSERT_EQ(after.exit_offsets.size(), 2u);
  for (const uint32_t offset : after.exit_offsets) {
    const Instruction& exit = after.code[offset / sass::kInstructionBytes];
    EXPECT_EQ(exit.opcode(), sass::kOpExit);
    EXPECT_TRUE(exit.is_unguarded());
    EXPECT_EQ(exit.Bits(87, 4), 7u) << "met by whoever arrives";
  }
}

TEST(Rewrite, FillsSectionsTo128Bytes) {
  const Code code = {sass::Nop({.stall = 1}), kTime, kAdvance, kRing, kExit};
  EXPECT_EQ(RewriteKernel(SectionOf(code)).code.size() * sass::kInstructionBytes % 128, 0u);
}

TEST(Rewrite, WithoutAnEntryLeavesTheFirstInstruction) {
  const CodeSection section = SectionOf({sass::Nop({.stall = 1}), kTime, kAdvance, kRing, kExit});
  EXPECT_EQ(Rewrite(section, TestLayout(), nullptr).code[0], section.code[0]);
}

}  // namespace
}  // namespace iket::patch
