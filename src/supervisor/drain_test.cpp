// Rings on the software device, drained by several threads while they are written.
#include "supervisor/drain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "capture/reader.h"
#include "supervisor/testing_rings.h"

namespace iket::supervisor {
namespace {

using ring::Record;

class DrainTest : public testing::TestWithParam<size_t> {
 protected:
  DrainTest() { std::filesystem::create_directories(folder_); }
  ~DrainTest() override { std::filesystem::remove_all(folder_); }

  std::string Capture() const {
    return session::SessionPath(folder_, rings_.memory().pid, ".iketcap.tmp");
  }

  static constexpr uint32_t kRingBytes = 4096, kSms = 5;
  static constexpr size_t kRecords = kRingBytes / sizeof(Record);
  const std::string folder_ = testing::TempDir() + "iket_drain_test_" + std::to_string(getpid());
  TestingRings rings_{IKET_SIM_LIBRARY, kRingBytes, kSms};
  RingWindows windows_{IKET_SIM_LIBRARY};
  Drain drain_{folder_, windows_, GetParam()};
};

TEST_P(DrainTest, EveryRecordIsKeptOnce) {
  std::mt19937 random(7);
  std::map<uint32_t, uint64_t> written;  // by ring: some of each SM but one
  for (uint32_t sm = 0; sm < kSms; ++sm) {
    if (sm == 2) continue;
    for (const uint32_t slot : {0u, 1u, 7u, 40u + sm}) written[sm * ring::kSlotsPerSm + slot] = 0;
  }
  uint32_t clock = 1;
  uint64_t news = 0, all = 0;
  constexpr int kPasses = 30;
  for (int pass = 0; pass < kPasses; ++pass) {
    rings_.Enter();
    for (auto& [ring, count] : written) {
      if (pass == 0) rings_.Use(ring);
      for (size_t more = random() % (kRecords / 3); more > 0; --more, ++all) {
        rings_.PutRecord(ring, count++, {.clock = ++clock, .tag = 1, .low = ring, .high = 0});
      }
    }
    const Drain::News brought = drain_.Pass({rings_.memory()});
    news += brought.records;
    EXPECT_GT(brought.fullest, 0.0);
    EXPECT_LE(brought.fullest, 0.34);
  }
  EXPECT_EQ(drain_.Pass({rings_.memory()}).records, 0u);
  EXPECT_EQ(news, all);
  auto writer = drain_.Finish(rings_.memory().pid, {rings_.memory()}, false);
  ASSERT_TRUE(writer);
  EXPECT_TRUE(writer->Finish());
  EXPECT_THAT(drain_.TakeWarnings(), testing::IsEmpty());

  const auto reader = capture::Reader::Open(Capture());
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_FALSE(reader->capture().damage.any()) << reader->capture().damage.Summary();
  std::map<uint32_t, uint64_t> ends;
  std::map<uint32_t, uint32_t> clocks;
  std::set<uint64_t> moments;
  reader->ForEachRingBlock([&](const capture::RingBlock& block) {
    EXPECT_TRUE(moments.insert(block.moment.number).second);
    EXPECT_TRUE(block.moment.settled);
    for (const capture::RingRow& row : block.rows) {
      EXPECT_EQ(row.first, ends[row.ring] * sizeof(Record));
      for (const Record& record : row.records) {
        EXPECT_EQ(record.low, row.ring);
        EXPECT_GT(record.clock, clocks[row.ring]);
        clocks[row.ring] = record.clock;
      }
      ends[row.ring] += row.records.size();
    }
    return true;
  });
  EXPECT_EQ(ends, written);
}

TEST_P(DrainTest, AMemoryThatIsNoneIsSaidOnce) {
  session::RingMemory wrong = rings_.memory();
  wrong.rings = -1;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(drain_.Pass({wrong}).records, 0u);
  EXPECT_FALSE(drain_.Finish(wrong.pid, {wrong}, false));
  EXPECT_THAT(drain_.TakeWarnings(), testing::SizeIs(1));
}

TEST_P(DrainTest, AFolderThatIsGoneIsSaid) {
  std::filesystem::remove_all(folder_);
  for (uint32_t sm = 0; sm < kSms; ++sm) {
    rings_.Use(sm * ring::kSlotsPerSm);
    rings_.PutRecord(sm * ring::kSlotsPerSm, 0, {.clock = 1, .tag = 1, .low = 0, .high = 0});
  }
  drain_.Pass({rings_.memory()});
  drain_.Pass({rings_.memory()});
  EXPECT_FALSE(drain_.Finish(rings_.memory().pid, {rings_.memory()}, false));
  EXPECT_THAT(drain_.TakeWarnings(),
              testing::UnorderedElementsAre(testing::HasSubstr("cannot create the capture"),
                                            testing::HasSubstr("no capture to write them to")));
}

INSTANTIATE_TEST_SUITE_P(Threads, DrainTest, testing::Values(1, 2, 7));

}  // namespace
}  // namespace iket::supervisor
