#include "trace/declarations.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace iket::trace {
namespace {

using capture::Declaration;
using Kind = capture::EventKind;
using Payload = capture::PayloadType;

struct Tables {
  explicit Tables(const std::vector<Declaration>& declared)
      : interner(strings), declarations(declared, interner, rows) {}

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

}  // namespace
}  // namespace iket::trace
