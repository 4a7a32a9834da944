// The table of instructions in docs/design/software-device.md is the decoder's own.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "sass/decode.h"
#include "sim/testing.h"

namespace iket::sim::testing {
namespace {

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
