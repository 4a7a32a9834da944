// What of a cubin is known and what is executed; and that the table of instructions in
// docs/design/software-device.md is the decoder's own.
#include "sim/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "sass/decode.h"
#include "sim/testing.h"

namespace iket::sim::testing {
namespace {

std::vector<std::byte> Forms() { return ReadFile(IKET_BINARY_DIR "/src/sim/forms.cubin"); }

TEST(Coverage, NamesWhatIsRefused) {
  Coverage coverage;
  ASSERT_TRUE(coverage.Add(UntrustedBytes(Forms()), "forms.cubin"));
  EXPECT_EQ(coverage.kernels(), 9u);
  EXPECT_GT(coverage.nops(), 0u);
  EXPECT_LT(coverage.nops(), coverage.words());
  EXPECT_EQ(coverage.unknown(), 0u);
  std::map<std::string, uint64_t> counts;
  uint64_t sum = 0;
  for (const Coverage::Refused& refused : coverage.refused()) {
    EXPECT_EQ(refused.lack, Coverage::Lack::kUnsupported);
    counts[sass::FindOpcode(refused.word)->mnemonic] += refused.count;
    sum += refused.count;
    const bool texture = refused.where.find("forms.cubin: Textures+0x") == 0;
    EXPECT_TRUE(texture || refused.where.find("forms.cubin: BulkCopy+0x") == 0) << refused.where;
  }
  EXPECT_EQ(sum, coverage.unsupported());
  EXPECT_EQ(counts["SUST"], 3u);
  EXPECT_EQ(counts["SULD"], 2u);
  EXPECT_EQ(counts["UBLKCP"], 1u);
  EXPECT_FALSE(counts.contains("HMMA"));
}

TEST(Coverage, CountsWordsThatAreNotInTheTable) {
  auto bytes = Forms();
  Coverage before;
  ASSERT_TRUE(before.Add(UntrustedBytes(bytes), "forms.cubin"));
  // An EXIT becomes a word of an opcode that nothing has.
  constexpr uint64_t kExit = 0x000000000000794d, kNothing = 0x0000000000007fff;
  const auto* const words = reinterpret_cast<const std::byte*>(&kExit);
  const auto exit = std::search(bytes.begin(), bytes.end(), words, words + 8);
  ASSERT_NE(exit, bytes.end());
  std::memcpy(&*exit, &kNothing, sizeof kNothing);
  Coverage after;
  ASSERT_TRUE(after.Add(UntrustedBytes(bytes), "forms.cubin"));
  EXPECT_EQ(after.words(), before.words());
  EXPECT_EQ(after.unknown(), 1u);
  EXPECT_EQ(after.unsupported(), before.unsupported() + 1);
}

TEST(Coverage, OfACutFileCountsNothing) {
  auto bytes = Forms();
  bytes.resize(bytes.size() / 2);
  Coverage coverage;
  const auto added = coverage.Add(UntrustedBytes(bytes), "cut.cubin");
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().message.find("cut.cubin: "), 0u) << added.error().message;
  EXPECT_EQ(coverage.words(), 0u);
}

TEST(Coverage, DocumentListsTheDecodersTable) {
  std::map<std::string, std::set<std::string>> opcodes;
  for (const sass::OpcodeRow& row : sass::OpcodeTable()) {
    opcodes[row.mnemonic].insert(fmt::format("{}{:03x}", row.any_form ? "*" : "", row.opcode));
  }
  std::string table = "| instruction | opcode |\n|---|---|\n";
  for (const auto& [mnemonic, numbers] : opcodes) {
    table += fmt::format("| {} |", mnemonic);
    for (const std::string& number : numbers) table += " " + number;
    table += " |\n";
  }
  const auto bytes = ReadFile(IKET_SOURCE_DIR "/docs/design/software-device.md");
  const std::string document(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_NE(document.find(table), std::string::npos) << "The table is now:\n" << table;
}

}  // namespace
}  // namespace iket::sim::testing
