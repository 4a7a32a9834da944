// Which bytes of a ring go into a capture, for each way in which a ring can be found.
#include "session/ring_image.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

namespace iket::session {
namespace {

using ring::Record;
using ring::RingHeader;

constexpr size_t kRecords = 8;
constexpr uint32_t kRingBytes = kRecords * ring::kRecordBytes;

// One ring and its header, written to as warps do it: a record at a time, the end in the header.
class Ring {
 public:
  void Begin(uint32_t clock) {
    Write({clock, ring::BeginTag(3), 0, header.end_clock});
    header.identity = {7, ring::kTagIdentity, 0, 1};
    Write(header.identity);
  }
  void Event(uint32_t clock) { Write({clock, 42, 0, 0}); }
  void End(uint32_t clock) {
    header.cursor = cursor_;
    header.end_clock = clock;
    header.end_timer_low = clock;
  }
  void Write(const Record& record) {
    records[cursor_ / ring::kRecordBytes % kRecords] = record;
    cursor_ += ring::kRecordBytes;
  }
  capture::RingContents Contents() const { return ContentsOf(5, header, records); }
  // As Contents hands them over: the clocks, oldest first.
  std::vector<uint32_t> Clocks() const {
    std::vector<uint32_t> clocks;
    const auto contents = Contents();
    for (const auto part : {contents.older, contents.newer}) {
      for (const Record& record : part) clocks.push_back(record.clock);
    }
    return clocks;
  }

  RingHeader header{};
  std::vector<Record> records = std::vector<Record>(kRecords, Record{});

 private:
  uint32_t cursor_ = 0;
};

TEST(IsUsed, OnceAWarpHasStartedOrEnded) {
  EXPECT_FALSE(IsUsed(RingHeader{}));
  Ring started;
  started.Begin(100);
  EXPECT_TRUE(IsUsed(started.header));
  started.End(200);
  EXPECT_TRUE(IsUsed(started.header));
}

TEST(ContentsOf, AnEndedWarp) {
  Ring ring;
  ring.Begin(100);
  ring.Event(110);
  ring.End(120);
  const auto contents = ring.Contents();
  EXPECT_EQ(contents.ring, 5u);
  EXPECT_EQ(contents.written, 3 * ring::kRecordBytes);
  EXPECT_EQ(contents.lag_bytes, 0u);
  EXPECT_EQ(contents.header.end_clock, 120u);
  EXPECT_EQ(ring.Clocks(), (std::vector<uint32_t>{100, 7, 110}));
}

TEST(ContentsOf, AnEndedWarpThatFilledTheRingExactly) {
  Ring ring;
  ring.Begin(100);
  for (uint32_t i = 0; i < kRecords - 2; ++i) ring.Event(110 + i);
  ring.End(120);
  EXPECT_EQ(ring.Contents().written, kRingBytes);
  EXPECT_EQ(ring.Clocks(), (std::vector<uint32_t>{100, 7, 110, 111, 112, 113, 114, 115}));
}

TEST(ContentsOf, AnEndedWarpThatLapped) {
  Ring ring;
  ring.Begin(100);
  for (uint32_t i = 0; i < 10; ++i) ring.Event(110 + i);
  ring.End(130);
  EXPECT_EQ(ring.Contents().written, 12 * ring::kRecordBytes);
  EXPECT_EQ(ring.Clocks(), (std::vector<uint32_t>{112, 113, 114, 115, 116, 117, 118, 119}));
}

TEST(ContentsOf, ARunningWarpBehindAnEndedOne) {
  Ring ring;
  ring.Begin(100);
  ring.End(120);
  ring.Begin(130);
  ring.Event(140);
  // All of the ring is kept; the reader finds by the clocks that five records are there.
  EXPECT_EQ(ring.Contents().written, 2 * ring::kRecordBytes + kRingBytes);
  EXPECT_EQ(ring.Clocks(), (std::vector<uint32_t>{130, 7, 140, 0, 0, 0, 100, 7}));
}

TEST(ContentsOf, TheFirstWarpOfARingThatStillRuns) {
  Ring ring;
  ring.Begin(100);
  EXPECT_EQ(ring.Contents().written, kRingBytes);
  EXPECT_EQ(ring.Clocks().front(), 100u);
}

// Its begin is overwritten; that records are younger than the last end gives it away.
TEST(ContentsOf, ARunningWarpThatLapped) {
  Ring ring;
  ring.Begin(100);
  ring.End(120);
  ring.Begin(130);
  for (uint32_t i = 0; i < 9; ++i) ring.Event(140 + i);
  EXPECT_EQ(ring.Contents().written, 2 * ring::kRecordBytes + kRingBytes);
  EXPECT_EQ(ring.Clocks().size(), kRecords);
}

TEST(ContentsOf, WhatAnOlderLapLeftIsNoRunningWarp) {
  Ring ring;
  for (uint32_t warp = 0; warp < 5; ++warp) {
    ring.Begin(100 + 100 * warp);
    ring.Event(110 + 100 * warp);
    ring.End(120 + 100 * warp);
  }
  EXPECT_EQ(ring.Contents().written, 15 * ring::kRecordBytes);
  // A begin at the cursor, but one that another end preceded.
  EXPECT_EQ(ring::KindOf(ring.records[15 % kRecords]), ring::RecordKind::kIdentity);
  ring.records[15 % kRecords] = {300, ring::BeginTag(3), 0, 220};
  EXPECT_EQ(ring.Contents().written, 15 * ring::kRecordBytes);
}

TEST(ContentsOf, ClocksThatWrapAround) {
  Ring ring;
  ring.Begin(0xfffffff0);
  ring.Event(0xfffffff8);
  ring.End(5);
  EXPECT_EQ(ring.Contents().written, 3 * ring::kRecordBytes)
      << "older than the end, across the wrap";
  ring.Begin(20);
  for (uint32_t i = 0; i < kRecords; ++i) ring.Event(30 + i);
  EXPECT_EQ(ring.Contents().written, 3 * ring::kRecordBytes + kRingBytes);
}

TEST(ContentsOf, AHeaderOfAnyBytesStaysInsideTheRing) {
  Ring ring;
  for (const uint32_t cursor : {1u, 15u, 17u, kRingBytes - 1, 0x7fffffffu, 0xffffffffu}) {
    ring.header.cursor = cursor;
    const auto contents = ring.Contents();
    EXPECT_EQ(contents.written % ring::kRecordBytes, 0u);
    EXPECT_LE(contents.older.size() + contents.newer.size(), kRecords);
    EXPECT_LE((contents.older.size() + contents.newer.size()) * ring::kRecordBytes,
              contents.written);
  }
}

// A window of two SMs in host memory, of which one warp slot of the second was used.
class WindowTest : public ::testing::Test {
 protected:
  WindowTest() : table_(layout_.table_bytes()), rings_(layout_.rings_bytes()) {
    RingHeader header{};
    header.cursor = 2 * ring::kRecordBytes;
    header.end_clock = 900;
    std::memcpy(&table_[kUsed * ring::kHeaderStride], &header, sizeof header);
    const Record records[2] = {{100, ring::BeginTag(3), 0, 0}, {7, ring::kTagIdentity, 0, 1}};
    std::memcpy(&rings_[kUsed * layout_.ring_bytes], records, sizeof records);
  }

  WindowCopy Copy() {
    return {.table =
                [this](void* to, size_t bytes) {
                  std::memcpy(to, table_.data(), bytes);
                  return Result<void>();
                },
            .rings =
                [this](void* to, uint64_t offset, size_t bytes) {
                  copied_.push_back(offset);
                  std::memcpy(to, &rings_[offset], bytes);
                  return Result<void>();
                }};
  }

  static constexpr uint32_t kUsed = ring::kSlotsPerSm + 5;
  const ring::Layout layout_ = *ring::MakeLayout(4096, 2);
  std::vector<std::byte> table_;
  std::vector<std::byte> rings_;
  std::vector<uint64_t> copied_;
};

TEST_F(WindowTest, ReadsOnlyWhatWasUsed) {
  std::vector<SmRings> read;
  ASSERT_TRUE(ReadRings(layout_, Copy(), [&](SmRings sm) { read.push_back(std::move(sm)); }));
  EXPECT_EQ(copied_, std::vector<uint64_t>{uint64_t{ring::kSlotsPerSm} * 4096});
  ASSERT_EQ(read.size(), 1u);
  ASSERT_EQ(read[0].rings.size(), 1u);
  const capture::RingContents& contents = read[0].rings[0];
  EXPECT_EQ(contents.ring, kUsed);
  EXPECT_EQ(contents.header.end_clock, 900u);
  ASSERT_EQ(contents.newer.size(), 2u);
  EXPECT_EQ(contents.newer[0].clock, 100u);
}

TEST_F(WindowTest, EndsWithTheErrorOfACopy) {
  WindowCopy copy = Copy();
  copy.rings = [](void*, uint64_t, size_t) -> Result<void> {
    return Fail(ErrorKind::kSystem, "gone");
  };
  size_t visits = 0;
  const auto done = ReadRings(layout_, copy, [&](SmRings) { ++visits; });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "gone");
  EXPECT_EQ(visits, 0u);
}

}  // namespace
}  // namespace iket::session
