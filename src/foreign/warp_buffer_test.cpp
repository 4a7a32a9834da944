#include "foreign/warp_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace iket::foreign {
namespace {

using Words = std::vector<uint32_t>;

// The buffer of a warp on SM 5 that began at 2^32 + `begin` and stored `words`.
Words Buffer(uint32_t begin, Words words) {
  Words all{static_cast<uint32_t>(16 + 4 * words.size()), 5u << 20, begin, 1};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

struct Read {
  WarpBuffer warp;
  std::vector<WarpRecord> records;
};

Read ReadOf(const Words& buffer, const RecordForms& forms) {
  Read read;
  const auto warp =
      ReadWarpBuffer(UntrustedBytes(buffer.data(), 4 * buffer.size()), forms, read.records);
  EXPECT_TRUE(warp.has_value());
  if (warp) read.warp = *warp;
  return read;
}

constexpr uint64_t kHigh = uint64_t{1} << 32;

RecordForms Native(uint32_t max_payload_bytes) {
  return {{.events = {{.id = 1},
                      {.id = 2, .payload = 5},
                      {.id = 3, .payload = 7},
                      {.id = 4, .payload = 1}}},
          max_payload_bytes};
}

::testing::Matcher<WarpRecord> Is(uint64_t ns, uint32_t event, uint64_t payload) {
  return ::testing::AllOf(::testing::Field(&WarpRecord::ns, ns),
                          ::testing::Field(&WarpRecord::event, event),
                          ::testing::Field(&WarpRecord::payload, payload));
}

TEST(WarpBuffer, NativeDump) {
  const Read read =
      ReadOf(Buffer(64, {96 | 1, 128 | 2, 0xfffffff9, 128 | 4, 0xf8, 160}), Native(4));
  EXPECT_EQ(read.warp.sm, 5);
  EXPECT_EQ(read.warp.begin_ns, kHigh + 64);
  EXPECT_EQ(read.warp.end_ns, kHigh + 160);
  EXPECT_TRUE(read.warp.has_end);
  EXPECT_THAT(read.records,
              ::testing::ElementsAre(Is(kHigh + 96, 1, 0), Is(kHigh + 128, 2, 0xfffffff9),
                                     Is(kHigh + 128, 4, 0xf8)));
}

TEST(WarpBuffer, WithWidePayloadsRecordsBeginAtMultiplesOfEight) {
  const Read read =
      ReadOf(Buffer(0, {32 | 1, 0, 64 | 2, 7, 96 | 3, 0, 0x11, 0x22, 128 | 1, 0, 160}), Native(8));
  EXPECT_THAT(read.records,
              ::testing::ElementsAre(Is(kHigh + 32, 1, 0), Is(kHigh + 64, 2, 7),
                                     Is(kHigh + 96, 3, 0x22'0000'0011), Is(kHigh + 128, 1, 0)));
  EXPECT_TRUE(read.warp.has_end);
}

TEST(WarpBuffer, ExtendedNativeDump) {
  const RawContext module{
      .events = {{.id = 64, .method = Method::kExtendedNativeDump},
                 {.id = 4000, .method = Method::kExtendedNativeDump, .payload = 6},
                 {.id = 65, .method = Method::kExtendedNativeDump, .payload = 14}}};
  const Words words{32, 64, 64, 4000, 7, 0, 0, 0, 96, 65, 1, 2};
  for (const Words& end : {Words{128}, Words{128, 0}}) {  // of four bytes, and of eight
    Words all = words;
    all.insert(all.end(), end.begin(), end.end());
    const Read read = ReadOf(Buffer(0, all), RecordForms(module, 8));
    EXPECT_THAT(read.records, ::testing::ElementsAre(Is(kHigh + 32, 64, 0), Is(kHigh + 64, 4000, 7),
                                                     Is(kHigh + 96, 65, 0x2'0000'0001)));
    EXPECT_TRUE(read.warp.has_end);
    EXPECT_EQ(read.warp.end_ns, kHigh + 128);
  }
}

TEST(WarpBuffer, HolesArePassedOver) {
  const Read read = ReadOf(Buffer(0, {32 | 1, 0, 64 | 1, 0, 0, 96}), Native(4));
  EXPECT_EQ(read.records.size(), 2u);
  EXPECT_TRUE(read.warp.has_end);
  EXPECT_EQ(read.warp.early_exits, 0u);
}

TEST(WarpBuffer, TheTimerWraps) {
  const Read read = ReadOf(Buffer(0xffffffc0, {0xffffffe0 | 1, 32 | 1, 0}), Native(4));
  EXPECT_THAT(read.records,
              ::testing::ElementsAre(Is(kHigh + 0xffffffe0, 1, 0), Is(2 * kHigh + 32, 1, 0)));
  EXPECT_FALSE(read.warp.has_end);  // a hole at the end
  const Read ends_at_zero = ReadOf(Buffer(0xffffffc0, {0xffffffe0 | 1, 0}), Native(4));
  EXPECT_TRUE(ends_at_zero.warp.has_end);
  EXPECT_EQ(ends_at_zero.warp.end_ns, 2 * kHigh);
}

TEST(WarpBuffer, LanesThatLeaveEarlier) {
  const Read read = ReadOf(Buffer(0, {32 | 1, 64, 96 | 1, 128}), Native(4));
  EXPECT_EQ(read.records.size(), 2u);
  EXPECT_TRUE(read.warp.has_end);
  EXPECT_EQ(read.warp.early_exits, 1u);
  EXPECT_EQ(read.warp.end_ns, kHigh + 128);
}

TEST(WarpBuffer, AWarpWithoutEnd) {
  const Read read = ReadOf(Buffer(0, {32 | 1, 64, 96 | 1}), Native(4));
  EXPECT_FALSE(read.warp.has_end);
  EXPECT_EQ(read.warp.early_exits, 1u);
  EXPECT_EQ(read.warp.end_ns, kHigh + 96);
}

TEST(WarpBuffer, StepsBackAreCounted) {
  const Read read = ReadOf(Buffer(0, {320 | 1, 288 | 1, 352}), Native(4));
  EXPECT_EQ(read.warp.backward, 1u);
  EXPECT_THAT(read.records, ::testing::ElementsAre(Is(kHigh + 320, 1, 0), Is(kHigh + 320, 1, 0)));
}

TEST(WarpBuffer, EventsThatNobodyDeclared) {
  const Read read = ReadOf(Buffer(0, {32 | 9, 64 | 1, 96}), Native(4));
  EXPECT_EQ(read.warp.unknown, 1u);
  EXPECT_THAT(read.records, ::testing::ElementsAre(Is(kHigh + 32, 9, 0), Is(kHigh + 64, 1, 0)));
}

TEST(WarpBuffer, MoreWrittenThanThereIsRoomFor) {
  Words buffer = Buffer(0, {32 | 1, 64 | 2});
  buffer[0] = 400;
  const Read read = ReadOf(buffer, Native(4));
  EXPECT_EQ(read.warp.lost_bytes, 376u);
  EXPECT_FALSE(read.warp.has_end);
  EXPECT_THAT(read.records, ::testing::ElementsAre(Is(kHigh + 32, 1, 0)));  // the second is cut
}

TEST(WarpBuffer, HeadersThatCannotBe) {
  std::vector<WarpRecord> records;
  const auto read = [&](const Words& words) {
    return ReadWarpBuffer(UntrustedBytes(words.data(), 4 * words.size()), Native(4), records);
  };
  EXPECT_FALSE(read({0, 0, 0, 0}));  // not recorded
  EXPECT_FALSE(read({20, 0, 0}));
  EXPECT_TRUE(read({12, 0, 0, 0})->malformed);
  EXPECT_TRUE(read({18, 0, 0, 0, 33})->malformed);
  EXPECT_TRUE(read({20, 0, 0, 0xffffffff, 33})->malformed);
  EXPECT_TRUE(records.empty());
}

}  // namespace
}  // namespace iket::foreign
