#include "cubin/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cubin/testing.h"

namespace iket::cubin {
namespace {

using testing::Bytes;
using testing::Data;
using ::testing::HasSubstr;
using testing::ParseData;

class EveryCubin : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Cubins, EveryCubin, ::testing::ValuesIn(testing::DataNames(".cubin")),
                         testing::TestName);

TEST_P(EveryCubin, ComesBackByteForByte) {
  const Bytes bytes = Data(GetParam());
  const auto image = Image::Parse(UntrustedBytes(bytes));
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->Serialize(), bytes);
}

// Setting everything to what it is makes Serialize encode and place all of it anew.
TEST_P(EveryCubin, ComesBackByteForByteWhenAllIsSetToItself) {
  const Bytes bytes = Data(GetParam());
  auto image = Image::Parse(UntrustedBytes(bytes));
  ASSERT_TRUE(image) << image.error().message;
  for (uint32_t i = 0; i < image->sections().size(); ++i) {
    const Section section = image->sections()[i];
    (void)image->SetSectionData(i, Bytes(section.data.begin(), section.data.end()));
    ASSERT_TRUE(image->SetSectionInfo(i, section.info));
  }
  for (uint32_t i = 0; i < image->symbols().size(); ++i) {
    ASSERT_TRUE(image->SetSymbolSize(i, image->symbols()[i].size));
  }
  EXPECT_EQ(image->Serialize(), bytes);
}

TEST(Image, KnowsItsArchitecture) {
  EXPECT_EQ(ParseData("saxpy.sm_80.cubin").ArchName(), "sm_80");
  EXPECT_EQ(ParseData("saxpy.sm_90.cubin").ArchName(), "sm_90");
  EXPECT_EQ(ParseData("saxpy.sm_90a.cubin").ArchName(), "sm_90a");
  EXPECT_EQ(ParseData("saxpy.sm_100a.cubin").ArchName(), "sm_100a");
  EXPECT_EQ(ParseData("saxpy.sm_120.cubin").sm(), 120);
  EXPECT_EQ(SmOf(0x00500550, 7), 0x50) << "toolkits before CUDA 13";
}

TEST(Image, KnowsWhetherItIsLinked) {
  EXPECT_TRUE(ParseData("pointers.sm_90a.linked.cubin").linked());
  EXPECT_FALSE(ParseData("pointers.sm_90a.rdc.cubin").linked());
}

TEST(Image, FindsSectionsAndSymbols) {
  const Image image = ParseData("pipeline.sm_90a.cubin");
  const auto text = image.FindSection(".text.work32");
  ASSERT_TRUE(text);
  EXPECT_EQ(image.sections()[*text].align, 128u);
  const auto symbol = image.FindSymbol("work32");
  ASSERT_TRUE(symbol);
  EXPECT_EQ(image.symbols()[*symbol].section, *text);
  EXPECT_EQ(image.symbols()[*symbol].type, kSymbolFunction);
  EXPECT_EQ(image.symbols()[*symbol].bind, kBindGlobal);
  EXPECT_EQ(image.symbols()[*symbol].other, kOtherCudaEntry);
  EXPECT_EQ(image.symbols()[*symbol].size, image.sections()[*text].size);
  EXPECT_FALSE(image.FindSection(".text.work"));
  EXPECT_FALSE(image.FindSymbol("work"));
}

TEST(Image, SectionsWithoutBytesHaveASizeAndNoData) {
  const Image image = ParseData("pipeline.sm_90a.cubin");
  const auto shared = image.FindSection(".nv.shared.work64");
  ASSERT_TRUE(shared);
  EXPECT_GE(image.sections()[*shared].size, 0x400u + 256);
  EXPECT_TRUE(image.sections()[*shared].data.empty());
}

TEST(Image, ViewsOutliveEditsAndTheOriginal) {
  std::string_view name;
  std::span<const std::byte> before;
  Bytes expected;
  Image copy = [&] {
    Image image = ParseData("saxpy.sm_90a.cubin");
    const uint32_t text = image.FindSection(".text.saxpy").value();
    name = image.sections()[text].name;
    before = image.sections()[text].data;
    expected.assign(before.begin(), before.end());
    Image kept = image;
    EXPECT_TRUE(image.SetSectionData(text, Bytes(16)));
    return kept;
  }();
  EXPECT_EQ(name, ".text.saxpy");
  EXPECT_EQ(Bytes(before.begin(), before.end()), expected);
  EXPECT_EQ(copy.Serialize(), Data("saxpy.sm_90a.cubin")) << "an edit reached a copy";
}

TEST(Image, RefusesEditsThatMakeNoSense) {
  Image image = ParseData("saxpy.sm_90a.cubin");
  const Bytes before = image.Serialize();
  const auto message = [](const auto& result) { return result ? "done" : result.error().message; };
  EXPECT_THAT(message(image.SetSectionData(999, {})), HasSubstr("no section 999"));
  EXPECT_THAT(message(image.SetSectionData(0, {})), HasSubstr("no bytes"));
  for (const char* name : {".shstrtab", ".strtab", ".symtab"}) {
    EXPECT_THAT(message(image.SetSectionData(image.FindSection(name).value(), {})),
                HasSubstr("symbols and names"));
  }
  EXPECT_THAT(message(image.SetSectionAlign(1, 3)), HasSubstr("alignment"));
  EXPECT_THAT(message(image.SetSymbolSize(999, 1)), HasSubstr("no symbol 999"));
  NewSection section;
  section.name = ".bad";
  section.type = kSectionNoBits;
  EXPECT_THAT(message(image.AddSection(section)), HasSubstr(".bad"));
  NewSymbol symbol;
  symbol.name = std::string("a\0b", 3);
  EXPECT_THAT(message(image.AddSymbol(symbol)), HasSubstr("NUL"));
  symbol.name = "far";
  symbol.section = 999;
  EXPECT_THAT(message(image.AddSymbol(symbol)), HasSubstr("no section 999"));
  EXPECT_EQ(image.Serialize(), before);
}

}  // namespace
}  // namespace iket::cubin
