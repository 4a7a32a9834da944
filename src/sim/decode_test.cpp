// The decoder's table against nvdisasm: every instruction of the cubins that the build makes has a
// row, and names the same registers, predicates and constants in the same order.
#include "sass/decode.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <regex>

#include "sim/testing.h"

namespace iket::sim::testing {
namespace {

// The names in a disassembled instruction, behind its mnemonic.
std::vector<std::string> Names(const std::string& text) {
  static const std::regex kName(
      R"(c\[0x[0-9a-f]+\]\[0x[0-9a-f]+\]|\b(?:UR|R|UP|P|B)(?:\d+|Z|T)\b)");
  std::vector<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), kName), end; it != end; ++it) {
    names.push_back(it->str());
  }
  return names;
}

class Decoder : public ::testing::TestWithParam<std::string> {};

TEST_P(Decoder, NamesWhatNvdisasmNames) {
  const std::string command =
      std::string(IKET_NVDISASM) + " -hex -c " IKET_BINARY_DIR "/src/sim/" + GetParam() + ".cubin";
  FILE* const pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  static const std::regex kFirst(
      R"(\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s*/\* 0x([0-9a-f]{16}) \*/\s*)");
  static const std::regex kSecond(R"(\s+/\* 0x([0-9a-f]{16}) \*/\s*)");
  static const std::regex kNoise(R"(\(\*.*?\*\)|`\([^)]*\)|32@\w+\([^)]*\))");
  static const std::regex kMnemonic(R"(^(?:@!?U?P\w+ +)?([A-Z0-9]+)\S*(.*)$)");
  char line[4096];
  std::string text;
  sass::Instruction word;
  int compared = 0;
  std::map<std::string, std::string> wrong;
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    std::string row(line);
    if (!row.empty() && row.back() == '\n') row.pop_back();
    std::smatch match;
    if (std::regex_match(row, match, kFirst)) {
      text = match[1];
      word.low = std::stoull(match[2], nullptr, 16);
    } else if (!text.empty() && std::regex_match(row, match, kSecond)) {
      word.high = std::stoull(match[1], nullptr, 16);
      const std::string theirs = std::regex_replace(text, kNoise, "");
      std::smatch parts;
      ASSERT_TRUE(std::regex_match(theirs, parts, kMnemonic)) << theirs;
      const std::string ours = sass::Disassemble(word);
      std::smatch own;
      ++compared;
      if (!std::regex_match(ours, own, kMnemonic) || own[1] != parts[1] ||
          Names(own[2]) != Names(parts[2])) {
        wrong.emplace(parts[1].str() + " " + std::to_string(word.opcode()),
                      theirs + "   ours: " + ours);
      }
      text.clear();
    }
  }
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_GT(compared, 20);
  for (const auto& [key, what] : wrong) ADD_FAILURE() << what;
}

INSTANTIATE_TEST_SUITE_P(Cubins, Decoder,
                         ::testing::Values("saxpy", "saxpy_marked", "gemm_mma", "gemm_mma_marked",
                                           "oracle", "kernels", "kernels_debug", "saxpy_debug",
                                           "gemm_mma_debug", "forms"));

}  // namespace
}  // namespace iket::sim::testing
