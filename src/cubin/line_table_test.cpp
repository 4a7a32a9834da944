#include "cubin/line_table.h"

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <sstream>

#include "cubin/kernels.h"
#include "cubin/testing.h"

namespace iket::cubin {
namespace {

using testing::Data;
using testing::ParseData;

// "file:line", from the inside out.
std::string TextOf(const std::vector<SourceLine>& lines) {
  std::string text;
  for (const SourceLine& line : lines) {
    const size_t slash = line.file.rfind('/');
    text +=
        fmt::format("{}{}:{}", text.empty() ? "" : " < ", line.file.substr(slash + 1), line.line);
  }
  return text;
}

TEST(LineTable, WithoutLinesNothingIsKnown) {
  const Image image = ParseData("saxpy.sm_90a.cubin");
  const LineTable table(image);
  EXPECT_TRUE(table.empty());
  EXPECT_TRUE(table.At(1, 0).empty());
}

TEST(LineTable, EndsWhereTheCodeEnds) {
  const Image image = ParseData("lines.sm_90a.cubin");
  const LineTable table(image);
  EXPECT_FALSE(table.empty());
  const uint32_t section = image.FindSection(".text.lines_two").value();
  const uint64_t size = image.sections()[section].data.size();
  EXPECT_FALSE(table.At(section, 0).empty());
  EXPECT_FALSE(table.At(section, size - 16).empty());
  EXPECT_TRUE(table.At(section, size).empty());
  EXPECT_TRUE(table.At(section, ~uint64_t{0}).empty());
  EXPECT_TRUE(table.At(section + 1000, 0).empty());
}

// Whatever is cut off or flipped: no crash (the sanitizer build watches), no endless chain, and
// nothing but lines of files that are named.
TEST(LineTable, DamageIsSurvived) {
  const Image whole = ParseData("lines.sm_90a.cubin");
  const uint32_t lines = whole.FindSection(".debug_line").value();
  const auto old = whole.sections()[lines].data;
  const std::vector<std::byte> bytes(old.begin(), old.end());
  const uint32_t code = whole.FindSection(".text.lines_one").value();
  const auto look = [&](std::vector<std::byte> damaged) {
    Image image = whole;
    ASSERT_TRUE(image.SetSectionData(lines, std::move(damaged)));
    const LineTable table(image);
    for (uint64_t offset = 0; offset < 0x400; offset += 16) {
      for (const SourceLine& line : table.At(code, offset)) EXPECT_NE(line.line, 0u);
    }
  };
  for (size_t size = 0; size < bytes.size(); ++size) look({bytes.begin(), bytes.begin() + size});
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const uint8_t value : std::initializer_list<uint8_t>{0x00, 0x7f, 0x80, 0xff}) {
      std::vector<std::byte> damaged = bytes;
      damaged[at] = std::byte{value};
      look(std::move(damaged));
    }
  }
}

#ifdef IKET_NVDISASM
// The chains that nvdisasm prints before each instruction, by section and offset.
std::map<std::pair<std::string, uint64_t>, std::string> ChainsOf(const std::string& path) {
  std::FILE* pipe =
      popen((std::string(IKET_NVDISASM) + " -c -gi '" + path + "' 2>&1").c_str(), "r");
  std::string text;
  char buffer[4096];
  while (pipe != nullptr && std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  EXPECT_TRUE(pipe != nullptr && pclose(pipe) == 0) << text;
  std::map<std::pair<std::string, uint64_t>, std::string> chains;
  std::string section, chain;
  bool whole = true;  // the chain has its outermost line
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (const size_t at = line.find("\t.section\t"); at != std::string::npos) {
      section = line.substr(at + 10, line.find(',') - at - 10);
      chain.clear();
    } else if (const size_t file = line.find("//## File \""); file != std::string::npos) {
      if (whole) chain.clear();
      const size_t end = line.find('"', file + 11);
      const std::string path_of = line.substr(file + 11, end - file - 11);
      chain +=
          fmt::format("{}{}:{}", chain.empty() ? "" : " < ", path_of.substr(path_of.rfind('/') + 1),
                      std::atoi(line.c_str() + line.find("line ", end) + 5));
      whole = line.find("inlined at", end) == std::string::npos;
    } else if (const size_t address = line.find("/*0");
               address != std::string::npos && line.find(';') != std::string::npos) {
      chains[{section, std::stoull(line.substr(address + 2), nullptr, 16)}] = chain;
    }
  }
  return chains;
}

class LinesOf : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Cubins, LinesOf,
                         ::testing::Values("lines.sm_80.cubin", "lines.sm_90a.cubin",
                                           "lines.sm_100a.cubin", "lines.sm_90a.linked.cubin",
                                           "saxpy.sm_90a.lineinfo.cubin"),
                         testing::TestName);

TEST_P(LinesOf, AreThoseOfNvdisasm) {
  const Image image = ParseData(GetParam());
  const LineTable table(image);
  const auto chains = ChainsOf((testing::DataFolder() / GetParam()).string());
  size_t known = 0, deepest = 0;
  for (const auto& [place, chain] : chains) {
    const auto lines = table.At(image.FindSection(place.first).value(), place.second);
    if (lines.empty()) continue;  // of a function that is inlined at several places
    EXPECT_EQ(TextOf(lines), chain) << place.first << " " << std::hex << place.second;
    ++known;
    deepest = std::max(deepest, lines.size());
  }
  EXPECT_GT(known, 10u);
  EXPECT_EQ(deepest, GetParam().starts_with("lines") ? 3u : 1u);
}
#endif

}  // namespace
}  // namespace iket::cubin
