#include "trace/declarations.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <unordered_map>

namespace iket::trace {
namespace {

using capture::Declaration;
using Kind = capture::EventKind;
using Payload = capture::PayloadType;

struct Tables {
  explicit Tables(const std::vector<Declaration>& declared) : Tables(declared, {}) {}
  Tables(const std::vector<Declaration>& declared,
         const std::vector<capture::Attribute>& attributes)
      : interner(strings), declarations(declared, attributes, interner, rows) {}

  std::vector<std::string> strings = {""};
  StringInterner interner;
  std::vector<trace::Declaration> rows;
  Declarations declarations;
};

TEST(Declarations, AnIdIsFoundFromEveryImage) {
  Tables tables({{.image = 3, .event = 77, .kind = Kind::kPush, .name = "load"}});
  for (uint32_t image : {0u, 3u, 4711u}) {
    const uint32_t row = tables.declarations.OfImage(image).Find(77);
    ASSERT_NE(row, IdTable::kMissing);
    EXPECT_EQ(tables.strings[tables.rows[row].name], "load");
    EXPECT_EQ(tables.rows[row].kind, EventKind::kPush);
  }
  EXPECT_EQ(tables.declarations.OfImage(3).Find(78), IdTable::kMissing);
}

TEST(Declarations, TheSameMeaningInManyImagesIsOneRow) {
  Tables tables({{.image = 0, .event = 77, .name = "a"},
                 {.image = 1, .event = 77, .name = "a"},
                 {.image = 2, .event = 77, .name = "a"}});
  EXPECT_EQ(tables.rows.size(), 2u);  // and the one for unknown ids
}

TEST(Declarations, AnIdThatImagesDisagreeAboutIsReadAsTheKernelsOwnImageSays) {
  Tables tables({{.image = 0, .event = 77, .name = "a"}, {.image = 1, .event = 77, .name = "b"}});
  auto name = [&](uint32_t image) {
    return tables.strings[tables.rows[tables.declarations.OfImage(image).Find(77)].name];
  };
  EXPECT_EQ(name(0), "a");
  EXPECT_EQ(name(1), "b");
}

TEST(Declarations, PayloadsAreWidenedAndRidOfOldBits) {
  auto read = [](Payload type, uint64_t bits) {
    Tables tables({{.image = 0, .event = 1, .payload = type, .name = "x"}});
    return tables.declarations.Rule(tables.declarations.OfImage(0).Find(1)).Apply(bits);
  };
  constexpr uint64_t kBits = 0xdeadbeef'8899aabbu;
  EXPECT_EQ(read(Payload::kNone, kBits), 0u);
  EXPECT_EQ(read(Payload::kU8, kBits), 0xbbu);
  EXPECT_EQ(read(Payload::kI8, kBits), 0xffffffbbu);
  EXPECT_EQ(read(Payload::kI8, 0x7f), 0x7fu);
  EXPECT_EQ(read(Payload::kI16, kBits), 0xffffaabbu);
  EXPECT_EQ(read(Payload::kU16, kBits), 0xaabbu);
  EXPECT_EQ(read(Payload::kI32, kBits), 0x8899aabbu);
  EXPECT_EQ(read(Payload::kF32, kBits), 0x8899aabbu);
  EXPECT_EQ(read(Payload::kI64, kBits), kBits);
  EXPECT_EQ(read(Payload::kF64, kBits), kBits);
  EXPECT_EQ(read(Payload::kPointer, kBits), kBits);
}

TEST(Declarations, SmallFloatsBecomeFloats) {
  const auto read = [](Payload type, uint64_t bits) {
    Tables tables({{.image = 0, .event = 1, .payload = type, .name = "x"}});
    const uint32_t row = tables.declarations.OfImage(0).Find(1);
    EXPECT_EQ(tables.rows[row].payload, PayloadType::kF32);
    return std::bit_cast<float>(
        static_cast<uint32_t>(tables.declarations.Rule(row).Apply(bits | 0xdead0000)));
  };
  EXPECT_EQ(read(Payload::kF16, 0x3c00), 1.0f);
  EXPECT_EQ(read(Payload::kF16, 0xc248), -3.140625f);
  EXPECT_EQ(read(Payload::kF16, 0x7bff), 65504.0f);
  EXPECT_EQ(read(Payload::kF16, 0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(read(Payload::kF16, 0x83ff), -1023 * std::ldexp(1.0f, -24));
  EXPECT_EQ(read(Payload::kF16, 0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(read(Payload::kF16, 0x7c01)));
  EXPECT_EQ(read(Payload::kBf16, 0xbfc0), -1.5f);
  EXPECT_EQ(read(Payload::kBf16, 0x0001), std::ldexp(1.0f, -133));
  EXPECT_EQ(read(Payload::kBf16, 0x7f80), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(read(Payload::kBf16, 0xff81)));
}

TEST(Declarations, NumbersOfEightBitsBecomeFloats) {
  const auto read = [](Payload type, uint64_t bits) {
    Tables tables({{.image = 0, .event = 1, .payload = type, .name = "x"}});
    return std::bit_cast<float>(static_cast<uint32_t>(
        tables.declarations.Rule(tables.declarations.OfImage(0).Find(1)).Apply(bits)));
  };
  EXPECT_EQ(read(Payload::kE4m3, 0x7e), 448.0f);
  EXPECT_EQ(read(Payload::kE4m3, 0x78), 256.0f);
  EXPECT_EQ(read(Payload::kE4m3, 0x81), -std::ldexp(1.0f, -9));
  EXPECT_TRUE(std::isnan(read(Payload::kE4m3, 0x7f)));
  EXPECT_EQ(read(Payload::kE5m2, 0x7b), 57344.0f);
  EXPECT_EQ(read(Payload::kE5m2, 0x03), 3 * std::ldexp(1.0f, -16));
  EXPECT_EQ(read(Payload::kE5m2, 0x7c), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(read(Payload::kE5m2, 0xfd)));
  // e5m2 is the upper half of a half.
  for (uint64_t bits = 0; bits < 256; ++bits) {
    const float wide = read(Payload::kF16, bits << 8), narrow = read(Payload::kE5m2, bits);
    EXPECT_TRUE(wide == narrow || (std::isnan(wide) && std::isnan(narrow))) << bits;
  }
}

TEST(Declarations, KindsAndTypesOfLaterVersionsAreKept) {
  Tables tables({{.image = 0,
                  .event = 5,
                  .kind = static_cast<Kind>(99),
                  .payload = static_cast<Payload>(99),
                  .name = "new"}});
  const uint32_t row = tables.declarations.OfImage(0).Find(5);
  EXPECT_EQ(tables.rows[row].kind, EventKind::kUnknown);
  EXPECT_EQ(tables.rows[row].payload, PayloadType::kU64);
}

TEST(Declarations, WhatIsLeftOutInOneImageIsWantedInAnother) {
  Tables tables({{.image = 0, .event = 77, .name = "a"},
                 {.image = 1, .event = 77, .name = "a", .left_out = true},
                 {.image = 1, .event = 78, .kind = Kind::kPop, .left_out = true}});
  const auto left_out = [&](uint32_t image, uint32_t id) {
    return tables.rows[tables.declarations.OfImage(image).Find(id)].left_out;
  };
  EXPECT_FALSE(left_out(0, 77));
  EXPECT_TRUE(left_out(1, 77));
  EXPECT_FALSE(left_out(1, 78)) << "a pop is its push's";
}

TEST(IdTable, AgreesWithAHashMap) {
  std::mt19937 random(7);
  IdTable table(5000);
  std::unordered_map<uint32_t, uint32_t> reference;
  for (uint32_t i = 0; i < 5000; ++i) {
    const auto id = static_cast<uint32_t>(random() % 20'000 + 1);
    table.Insert(id, i + 1);
    reference[id] = i + 1;
  }
  for (uint32_t id = 1; id < 25'000; ++id) {
    const auto found = reference.find(id);
    ASSERT_EQ(table.Find(id), found == reference.end() ? IdTable::kMissing : found->second);
  }
}

TEST(Declarations, WhatAnotherToolsMetadataCallsIt) {
  const auto four = [](const char* bytes) { return std::string(bytes, 4); };
  Tables tables(
      {{.image = 0, .event = 7, .kind = Kind::kPush, .payload = Payload::kI8, .name = "a"},
       {.image = 0, .event = 8, .kind = Kind::kMark, .name = "b"},
       {.image = 0, .event = 9, .kind = Kind::kMark, .name = "c"}},
      {{.image = 0,
        .event = 7,
        .position = 0,
        .what = capture::AttributeKind::kForeignEvent,
        .text = four("\x05\0\0\0")},
       {.image = 0,
        .event = 7,
        .position = 1,
        .what = capture::AttributeKind::kForeignRange,
        .text = four("\x01\x02\x03\x84")},
       {.image = 0,
        .event = 9,
        .position = 0,
        .what = capture::AttributeKind::kForeignEvent,
        .text = "cut"}});
  const auto row = [&](uint32_t id) {
    return tables.rows[tables.declarations.OfImage(0).Find(id)];
  };
  EXPECT_EQ(row(7).foreign_event, 5u);
  EXPECT_EQ(row(7).foreign_range, 0x84030201u);
  EXPECT_EQ(row(7).payload, PayloadType::kS32);
  EXPECT_EQ(row(7).payload_declared, 1);
  EXPECT_EQ(row(8).foreign_event, kNoRow);
  EXPECT_EQ(row(8).foreign_range, kNoRow);
  EXPECT_EQ(row(9).foreign_event, kNoRow);
}

}  // namespace
}  // namespace iket::trace
