// NVIDIA's own reader of cubins as a referee: what we wrote must disassemble to what it was.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <regex>
#include <sstream>

#include "cubin/testing.h"

namespace iket::cubin {
namespace {

using testing::Bytes;
using testing::ParseData;

// What nvdisasm prints for a cubin, one instruction or label a line; fails the test if it
// complains.
std::vector<std::string> Disassemble(const Bytes& cubin) {
  std::string path = ::testing::TempDir() + "/iket_referee_XXXXXX";
  const int descriptor = mkstemp(path.data());
  EXPECT_GE(descriptor, 0);
  EXPECT_EQ(write(descriptor, cubin.data(), cubin.size()), static_cast<ssize_t>(cubin.size()));
  close(descriptor);
  const std::string command = std::string(IKET_NVDISASM) + " -c -ndf '" + path + "' 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  while (pipe != nullptr && std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  EXPECT_TRUE(pipe != nullptr && pclose(pipe) == 0) << text;
  std::filesystem::remove(path);
  std::vector<std::string> lines;
  std::istringstream stream(text);
  const std::regex label("\\.L_[a-z]+_[0-9]+");
  for (std::string line; std::getline(stream, line);) {
    if (line.find("/*") != std::string::npos) lines.push_back(std::regex_replace(line, label, ""));
  }
  return lines;
}

class Referee : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Cubins, Referee,
                         ::testing::Values("pipeline.sm_80.cubin", "pipeline.sm_90a.cubin",
                                           "pipeline.sm_100a.cubin", "saxpy.sm_120.cubin",
                                           "pointers.sm_90a.linked.cubin",
                                           "saxpy.sm_90a.debug.cubin"),
                         testing::TestName);

TEST_P(Referee, AcceptsGrownCodeAndAnAddedConstant) {
  // NOP: lo 0x7918, hi nothing but stall 1 in the control bits.
  constexpr uint64_t kNop[2] = {0x7918, 0x000fc20000000000};
  constexpr size_t kNops = 8;
  Image image = ParseData(GetParam());
  const auto before = Disassemble(image.Serialize());
  ASSERT_GT(before.size(), 10u);

  size_t grown = 0;
  for (uint32_t i = 0; i < image.symbols().size(); ++i) {
    const Symbol symbol = image.symbols()[i];
    if (symbol.type != kSymbolFunction || symbol.other != kOtherCudaEntry) continue;
    const auto code = image.sections()[symbol.section].data;
    Bytes longer(code.begin(), code.end());
    for (size_t n = 0; n < kNops; ++n) {
      const auto nop = std::as_bytes(std::span(kNop));
      longer.insert(longer.end(), nop.begin(), nop.end());
    }
    ASSERT_TRUE(image.SetSymbolSize(i, longer.size()));
    ASSERT_TRUE(image.SetSectionData(symbol.section, longer));
    ++grown;
  }
  ASSERT_GE(grown, 1u);
  NewSection section;
  section.name = ".nv.constant3";
  section.flags = kFlagAlloc;
  section.align = 8;
  section.data.resize(8);
  const auto existing = image.FindSection(section.name);
  const auto constant = existing ? existing : image.AddSection(section).value();
  NewSymbol symbol;
  symbol.name = "iket_ring";
  symbol.section = *constant;
  symbol.size = 8;
  ASSERT_TRUE(image.AddSymbol(symbol));

  const auto after = Disassemble(image.Serialize());
  // Every instruction is still there, in the same order, and what is new are the NOPs.
  size_t matched = 0;
  std::vector<std::string> added;
  for (const std::string& line : after) {
    if (matched < before.size() && line == before[matched]) {
      ++matched;
    } else {
      added.push_back(line);
    }
  }
  EXPECT_EQ(matched, before.size()) << "lost: " << (matched < before.size() ? before[matched] : "");
  EXPECT_EQ(added.size(), grown * kNops);
  for (const std::string& line : added) EXPECT_NE(line.find("NOP"), std::string::npos) << line;
}

}  // namespace
}  // namespace iket::cubin
