#include "trace/ring_stream.h"

#include <gtest/gtest.h>

#include <random>

#include "trace/synthetic.h"

namespace iket::trace {
namespace {

using ring::RecordKind;

// One ring of 256 records on one SM, and warps of one kernel that follow each other on it.
class OneRing {
 public:
  OneRing() : gpu_({.sms = 1}) {
    kernel_ = gpu_.AddKernel("k");
    mark_ = gpu_.Declare(capture::EventKind::kMark, "m");
    grid_ = gpu_.Launch(kernel_, {1000, 1, 1}, {32, 1, 1});
  }
  OneRing& Begin() {
    gpu_.Pass(100);
    warp_ = gpu_.Begin(grid_, cta_++, 0, 0, 0);
    return *this;
  }
  OneRing& Marks(int count) {
    for (int i = 0; i < count; ++i) {
      gpu_.Pass(10);
      gpu_.Event(warp_, mark_);
    }
    return *this;
  }
  OneRing& End(bool last = true) {
    gpu_.Pass(5);
    gpu_.Exit(warp_, last);
    return *this;
  }
  // What is known of the ring now.
  RingStream Stream() {
    collector_ = RingCollector();
    collector_.Add(gpu_.Read());
    return std::move(collector_.Streams([](uint32_t) { return uint64_t{4096}; }).at(0));
  }
  // The same as `Read` gives it, to be spoilt.
  capture::RingBlock Read() { return gpu_.Read(); }
  SyntheticGpu& gpu() { return gpu_; }

 private:
  SyntheticGpu gpu_;
  RingCollector collector_;
  uint32_t kernel_ = 0, mark_ = 0, grid_ = 0, cta_ = 0;
  SyntheticGpu::WarpId warp_ = 0;
};

size_t Records(const RingStream& stream) {
  size_t count = 0;
  for (const Stretch& stretch : stream.stretches) count += stretch.records.size();
  return count;
}

TEST(RingStream, AnEndedWarpIsAllThere) {
  OneRing ring;
  const RingStream stream = ring.Begin().Marks(10).End().Stream();
  EXPECT_EQ(Records(stream), 12u);
  EXPECT_EQ(stream.written, 12u * 16);
  EXPECT_FALSE(stream.running || stream.suspect);
}

TEST(RingStream, ALappedRingKeepsTheNewestAndItsPositionsSayWhatIsLost) {
  OneRing ring;
  const RingStream stream = ring.Begin().Marks(1000).End().Stream();
  EXPECT_EQ(stream.written, 1002u * 16);
  ASSERT_EQ(stream.stretches.size(), 1u);
  EXPECT_EQ(stream.stretches[0].first, (1002u - 256) * 16);
  EXPECT_EQ(stream.stretches[0].records.size(), 256u);
  EXPECT_FALSE(stream.running || stream.suspect);
}

TEST(RingStream, ARunningWarpFollowsTheCursor) {
  OneRing ring;
  const RingStream stream = ring.Begin().Marks(10).End().Begin().Marks(20).Stream();
  EXPECT_TRUE(stream.running);
  EXPECT_FALSE(stream.lapped);
  EXPECT_EQ(Records(stream), 12u + 22);
  EXPECT_EQ(stream.written, 34u * 16);
}

TEST(RingStream, ARunningWarpOnALappedRingTakesThePlaceOfTheOldest) {
  OneRing ring;
  const RingStream stream = ring.Begin().Marks(1000).End().Begin().Marks(20).Stream();
  EXPECT_TRUE(stream.running);
  EXPECT_EQ(stream.written, (1002u + 22) * 16);
  ASSERT_EQ(stream.stretches.size(), 2u);
  EXPECT_EQ(stream.stretches[0].records.size(), 256u - 22);
  EXPECT_EQ(stream.stretches[1].records.size(), 22u);
  EXPECT_EQ(ring::KindOf(stream.stretches[1].records[0]), RecordKind::kBegin);
}

TEST(RingStream, ARunningWarpThatLappedItsRingIsTurnedToStartAtTheOldest) {
  for (int marks : {256, 300, 511, 600, 5000}) {
    OneRing ring;
    const RingStream stream = ring.Begin().Marks(3).End().Begin().Marks(marks).Stream();
    EXPECT_TRUE(stream.running && stream.lapped) << marks;
    EXPECT_TRUE(stream.written_is_lower_bound);
    EXPECT_LE(stream.written, (5u + 2 + marks) * 16) << marks;
    ASSERT_EQ(stream.stretches.size(), 1u) << marks;
    const auto records = stream.stretches[0].records;
    ASSERT_EQ(records.size(), 256u);
    for (size_t i = 1; i < records.size(); ++i) {
      ASSERT_GT(static_cast<int32_t>(records[i].clock - records[i - 1].clock), 0) << marks;
    }
  }
}

TEST(RingStream, ARunningWarpThatJustCompletedALapIsToldByTheOthersThatHang) {
  SyntheticGpu gpu({.sms = 1});
  const uint32_t kernel = gpu.AddKernel("k");
  const uint32_t mark = gpu.Declare(capture::EventKind::kMark, "m");
  const uint32_t grid = gpu.Launch(kernel, {2, 1, 1}, {32, 1, 1});
  auto marks = [&](SyntheticGpu::WarpId warp, int count) {
    for (int i = 0; i < count; ++i) {
      gpu.Pass(10);
      gpu.Event(warp, mark);
    }
  };
  const auto ended = gpu.Begin(grid, 0, 0, 0, 0);
  marks(ended, 300);
  gpu.Exit(ended);
  gpu.Pass(10);
  marks(gpu.Begin(grid, 0, 0, 0, 0), 510);
  auto streams = [&](RingCollector& collector) {
    collector.Add(gpu.Read());
    return collector.Streams([](uint32_t) { return uint64_t{4096}; });
  };
  RingCollector alone;
  EXPECT_FALSE(streams(alone).at(0).running);
  gpu.Begin(grid, 1, 0, 0, 1);
  RingCollector both;
  const RingStream stream = streams(both).at(0);
  EXPECT_TRUE(stream.running && stream.lapped);
  EXPECT_LE(stream.written, (302u + 512) * 16);
  EXPECT_GT(stream.written, 302u * 16);
}

TEST(RingStream, TheFirstWarpOfARingThatLapsItIsRunning) {
  for (int marks : {254, 255, 300, 510, 511, 766}) {
    OneRing ring;
    const RingStream stream = ring.Begin().Marks(marks).Stream();
    EXPECT_TRUE(stream.running) << marks;
    EXPECT_EQ(Records(stream), 256u) << marks;
    EXPECT_LE(stream.written, (marks + 2u) * 16) << marks;
  }
}

TEST(RingStream, AWarpOfWhichSomeLanesHaveEndedGoesOn) {
  OneRing ring;
  const RingStream stream = ring.Begin().Marks(500).End(false).Marks(30).Stream();
  EXPECT_TRUE(stream.running);
  EXPECT_EQ(stream.written, (502u + 30) * 16);
  EXPECT_EQ(Records(stream), 256u);
}

TEST(RingStream, ALaterReadingCountsWhereTwoHaveTheSamePosition) {
  OneRing ring;
  ring.Begin().Marks(10);
  RingCollector collector;
  capture::RingBlock early = ring.Read();
  early.moment.live = true;
  collector.Add(early);
  ring.Marks(40).End();
  capture::RingBlock late = ring.Read();
  late.moment.number = 1;
  collector.Add(late);
  const RingStream stream = collector.Streams([](uint32_t) { return uint64_t{4096}; }).at(0);
  EXPECT_EQ(stream.written, 52u * 16);
  EXPECT_EQ(Records(stream), 52u);
  EXPECT_FALSE(stream.running);
}

TEST(RingStream, ReadingsTogetherReachFurtherBackThanTheRing) {
  OneRing ring;
  RingCollector collector;
  for (uint64_t moment = 0; moment < 5; ++moment) {
    ring.Begin().Marks(198).End();  // 200 records, and the ring holds 256
    capture::RingBlock block = ring.Read();
    block.moment.number = moment;
    collector.Add(block);
  }
  const RingStream stream = collector.Streams([](uint32_t) { return uint64_t{4096}; }).at(0);
  EXPECT_EQ(Records(stream), 1000u);
  EXPECT_EQ(stream.stretches.front().first, 0u);
}

TEST(RingStream, PiecesOfALargeRingAreOne) {
  OneRing ring;
  ring.Begin().Marks(1000).End();
  const capture::RingBlock whole = ring.Read();
  RingCollector collector;
  for (size_t at = 0; at < 256; at += 100) {
    capture::RingBlock piece = whole;
    capture::RingRow& row = piece.rows[0];
    row.first += at * 16;
    row.records = row.records.subspan(at, std::min<size_t>(100, 256 - at));
    collector.Add(piece);
  }
  const RingStream stream = collector.Streams([](uint32_t) { return uint64_t{4096}; }).at(0);
  ASSERT_EQ(stream.stretches.size(), 1u);
  EXPECT_EQ(stream.stretches[0].records.size(), 256u);
}

TEST(RingStream, AHeaderThatDoesNotFitMakesTheRingSuspect) {
  OneRing ring;
  ring.Begin().Marks(10).End();
  capture::RingBlock block = ring.Read();
  block.rows[0].header.cursor = 0x12345;
  EXPECT_TRUE(UnfoldRing(block.rows[0], 4096).suspect);
  EXPECT_EQ(UnfoldRing(block.rows[0], 4096).ended.records.size(), 12u);
}

TEST(RingStream, AnyRowUnfoldsIntoPartsOfItself) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<ring::Record> records(random() % 4 == 0 ? 16 : random() % 20);
    for (ring::Record& record : records) {
      auto word = [&] {
        return static_cast<uint32_t>(random() % 3 == 0 ? random() : random() % 4);
      };
      record = {word(), random() % 2 == 0 ? ring::kTagBegin : word(), word(), word()};
    }
    capture::RingRow row{.records = records};
    row.written = random() % 2 == 0 ? random() : random() % 64 * 16;
    row.first = random() % 2 == 0 ? random() : random() % 64 * 16;
    row.header.cursor = static_cast<uint32_t>(random() % 3 == 0 ? random() : row.written);
    row.header.end_clock = static_cast<uint32_t>(random() % 4);
    if (!records.empty()) row.header.identity = records[random() % records.size()];
    const UnfoldedRing unfolded = UnfoldRing(row, random() % 2 == 0 ? 256 : random());
    EXPECT_LE(unfolded.ended.records.size() + unfolded.running.records.size(), records.size());
  }
}

}  // namespace
}  // namespace iket::trace
