#include "cubin/nvinfo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cubin/testing.h"

namespace iket::cubin {
namespace {

using testing::Bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ParseData;

Bytes FromHex(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(AttributeReader, WalksEveryFormat) {
  const Bytes bytes = FromHex({1, 0x54, 0,    0,                                // REG_RECONFIG
                               3, 0x1b, 0xff, 0,                                // MAXREG_COUNT 255
                               4, 0x1c, 8,    0, 0x70, 0, 0, 0, 0x20, 1, 0, 0,  // EXIT offsets
                               2, 0x4c, 1,    0});                              // NUM_BARRIERS 1
  AttributeReader reader(bytes);
  auto attribute = reader.Next();
  ASSERT_TRUE(attribute);
  EXPECT_TRUE(attribute->Is(AttributeCode::kRegReconfig));
  attribute = reader.Next();
  ASSERT_TRUE(attribute);
  EXPECT_EQ(attribute->value, 255);
  attribute = reader.Next();
  ASSERT_TRUE(attribute);
  EXPECT_EQ(attribute->offset, 8u);
  EXPECT_EQ(attribute->size, 12u);
  EXPECT_EQ(attribute->Word(0), 0x70u);
  EXPECT_EQ(attribute->Word(1), 0x120u);
  EXPECT_EQ(attribute->Word(2), std::nullopt);
  attribute = reader.Next();
  ASSERT_TRUE(attribute);
  EXPECT_EQ(attribute->value, 1);
  EXPECT_FALSE(reader.Next());
  EXPECT_FALSE(reader.failed());
}

TEST(AttributeReader, StopsAtWhatIsNoRecord) {
  for (const Bytes& bytes : {FromHex({4, 0x1c, 8, 0, 1, 2, 3}),  // payload cut short
                             FromHex({4, 0x1c, 0}),              // head cut short
                             FromHex({5, 0x1c, 0, 0}),           // format unknown
                             FromHex({0, 0, 0, 0})}) {
    AttributeReader reader(bytes);
    EXPECT_FALSE(reader.Next());
    EXPECT_TRUE(reader.failed());
    EXPECT_FALSE(reader.Next()) << "a failed reader stays failed";
    EXPECT_EQ(reader.offset(), 0u);
  }
}

TEST(Encode, MakesWhatTheReaderReads) {
  const uint32_t words[] = {7, 0x01020304};
  EXPECT_EQ(EncodeWords(AttributeCode::kRegCount, words),
            FromHex({4, 0x2f, 8, 0, 7, 0, 0, 0, 4, 3, 2, 1}));
  EXPECT_EQ(EncodeValue(AttributeCode::kMaxRegCount, AttributeFormat::kHalf, 0x1ff),
            FromHex({3, 0x1b, 0xff, 1}));
}

class EveryInfo : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Cubins, EveryInfo, ::testing::ValuesIn(testing::DataNames(".cubin")),
                         testing::TestName);

TEST_P(EveryInfo, EveryStreamIsWholeAndEncodesToItself) {
  const Image image = ParseData(GetParam());
  int streams = 0;
  for (const Section& section : image.sections()) {
    if (section.type != kSectionCudaInfo && section.type != kSectionCudaCompat) continue;
    ++streams;
    AttributeReader reader(section.data);
    Bytes again;
    while (const auto attribute = reader.Next()) {
      const auto code = static_cast<AttributeCode>(attribute->code);
      Bytes record = EncodeValue(code, attribute->format, attribute->value);
      record.insert(record.end(), attribute->payload.begin(), attribute->payload.end());
      EXPECT_EQ(record.size(), attribute->size);
      again.insert(again.end(), record.begin(), record.end());
    }
    EXPECT_FALSE(reader.failed()) << section.name;
    EXPECT_EQ(again, Bytes(section.data.begin(), section.data.end())) << section.name;
  }
  EXPECT_GE(streams, 2);
}

TEST(NvInfo, AllRegisterCountsAtOnce) {
  for (const char* file : {"pointers.sm_90a.linked.cubin", "saxpy.sm_80.cubin"}) {
    const Image image = ParseData(file);
    const std::map<uint32_t, uint32_t> all = RegisterCounts(image);
    EXPECT_GE(all.size(), 1u);
    for (uint32_t i = 0; i < image.symbols().size(); ++i) {
      const auto one = GetRegisterCount(image, i);
      ASSERT_EQ(all.contains(i), one.has_value()) << i;
      if (one) {
        EXPECT_EQ(all.at(i), *one);
      }
    }
  }
}

// Figures as `cuobjdump -res-usage` and nvdisasm print them for the same files.
TEST(NvInfo, RegisterCounts) {
  for (const char* file : {"saxpy.sm_80.cubin", "saxpy.sm_90a.cubin", "saxpy.sm_100a.cubin"}) {
    Image image = ParseData(file);
    const uint32_t kernel = image.FindSymbol("saxpy").value();
    const auto before = image.sections();
    EXPECT_EQ(GetRegisterCount(image, kernel).value(), 10u) << file;
    ASSERT_TRUE(SetRegisterCount(image, kernel, 24));
    const auto again = Image::Parse(UntrustedBytes(image.Serialize())).value();
    EXPECT_EQ(GetRegisterCount(again, kernel).value(), 24u) << file;
    // Nothing but the number itself changed.
    const uint32_t info = image.FindSection(".nv.info").value();
    const uint32_t text = image.FindSection(".text.saxpy").value();
    for (uint32_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(again.sections()[i].size, before[i].size);
      const uint32_t expected = i == text && image.sm() < 90 ? 24u << 24 | kernel : before[i].info;
      EXPECT_EQ(again.sections()[i].info, expected) << file << " section " << i;
      if (i != info) {
        EXPECT_TRUE(std::ranges::equal(again.sections()[i].data, before[i].data)) << i;
      }
    }
  }
}

TEST(NvInfo, RegisterCountsThatAreNotThere) {
  Image image = ParseData("saxpy.sm_90a.cubin");
  EXPECT_THAT(GetRegisterCount(image, 999).error().message, HasSubstr("no symbol 999"));
  EXPECT_THAT(GetRegisterCount(image, 1).error().message, HasSubstr("no register count"));
  EXPECT_THAT(SetRegisterCount(image, 1, 24).error().message, HasSubstr("no register count"));
  EXPECT_THAT(SetRegisterCount(image, 8, 256).error().message, HasSubstr("256"));
  EXPECT_EQ(image.Serialize(), testing::Data("saxpy.sm_90a.cubin"));
}

TEST(NvInfo, ExitOffsets) {
  const Image image = ParseData("saxpy.sm_90a.cubin");
  const uint32_t text = image.FindSection(".text.saxpy").value();
  const auto offsets = ExitOffsets(image, text);
  ASSERT_TRUE(offsets) << offsets.error().message;
  EXPECT_THAT(*offsets, ElementsAre(0x70, 0x120));
  for (const uint32_t offset : *offsets) {
    const auto word = UntrustedBytes(image.sections()[text].data).Read<uint64_t>(offset);
    EXPECT_EQ(*word & 0xfff, 0x94du) << "not an EXIT at " << offset;
  }
}

TEST(NvInfo, ExitOffsetsOutsideTheCode) {
  Image image = ParseData("saxpy.sm_90a.cubin");
  const uint32_t text = image.FindSection(".text.saxpy").value();
  const uint32_t info = InfoSectionOf(image, text).value();
  const auto data = image.sections()[info].data;
  const auto exits = FindAttribute(data, AttributeCode::kExitOffsets).value();
  const uint32_t words[] = {0x70, 0x100000};
  ASSERT_TRUE(image.SetSectionData(
      info, ReplaceRecord(data, exits, EncodeWords(AttributeCode::kExitOffsets, words))));
  EXPECT_THAT(ExitOffsets(image, text).error().message,
              ::testing::AllOf(HasSubstr(".nv.info.saxpy"), HasSubstr("0x100000")));
}

TEST(NvInfo, SetMaxNReg) {
  const Image with = ParseData("setmaxnreg.sm_90a.cubin");
  EXPECT_TRUE(UsesSetMaxNReg(with, with.FindSection(".text.reconfigure").value()));
  const Image without = ParseData("saxpy.sm_90a.cubin");
  EXPECT_FALSE(UsesSetMaxNReg(without, without.FindSection(".text.saxpy").value()));
}

TEST(NvInfo, FindsTheSectionByItsLinkWhateverItsName) {
  Image image = ParseData("pipeline.sm_90a.cubin");
  for (const char* kernel : {"work32", "work64"}) {
    const uint32_t text = image.FindSection(std::string(".text.") + kernel).value();
    EXPECT_EQ(InfoSectionOf(image, text), image.FindSection(std::string(".nv.info.") + kernel));
  }
  EXPECT_FALSE(InfoSectionOf(image, image.FindSection(".nv.constant3").value()));
  EXPECT_FALSE(InfoSectionOf(image, 9999));
  // The two exchange their links: the link decides.
  const uint32_t info32 = image.FindSection(".nv.info.work32").value();
  const uint32_t info64 = image.FindSection(".nv.info.work64").value();
  const uint32_t text32 = image.FindSection(".text.work32").value();
  ASSERT_TRUE(image.SetSectionInfo(info64, text32));
  ASSERT_TRUE(image.SetSectionInfo(info32, image.FindSection(".text.work64").value()));
  EXPECT_EQ(InfoSectionOf(image, text32), info64);
}

}  // namespace
}  // namespace iket::cubin
