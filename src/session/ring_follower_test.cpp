// A ring that warps write while it is read, with each store becoming visible in its own time,
// against the full list of what was written.
#include "session/ring_follower.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace iket::session {
namespace {

using ring::Record;

constexpr size_t kRecords = 256;

// Writes like a GPU: stores become visible late, and not in order. Reading copies slot by slot
// while writing goes on.
class WrittenRing {
 public:
  explicit WrittenRing(uint32_t seed) : random_(seed) {}

  uint32_t Random(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  void WriteEvents(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      clock_ += 10 + Random(5);
      Store({.clock = clock_, .tag = 1 + Random(3), .low = Random(2), .high = 0});
    }
  }
  // The running warp ends, and the next one begins.
  void NextWarp() {
    header_.cursor = static_cast<uint32_t>(log_.size() * sizeof(Record));
    header_.end_clock = clock_;
    clock_ += 20;
    Store({.clock = clock_, .tag = ring::BeginTag(1), .low = 0, .high = header_.end_clock});
    Store({.clock = Random(100), .tag = ring::kTagIdentity, .low = 0, .high = ++grid_});
  }
  void End() {
    Settle();
    header_.cursor = static_cast<uint32_t>(log_.size() * sizeof(Record));
    header_.end_clock = clock_;
  }
  void Settle() {
    for (const Pending& store : pending_) memory_[store.slot] = store.record;
    pending_.clear();
  }

  // The header, then the memory, while up to `meanwhile` events are written.
  std::optional<capture::RingContents> Read(RingFollower& follower, size_t meanwhile,
                                            bool quiet = false) {
    // Milliseconds have passed: what was under way during the last reading has arrived.
    for (const Pending& store : pending_) {
      if (store.reading < readings_) memory_[store.slot] = store.record;
    }
    std::erase_if(pending_, [this](const Pending& store) { return store.reading < readings_; });
    const ring::RingHeader header = header_;
    copy_.resize(kRecords);
    for (size_t slot = 0; slot < kRecords; ++slot) {
      copy_[slot] = memory_[slot];
      if (meanwhile != 0 && Random(kRecords) < meanwhile) WriteEvents(1);
    }
    ++readings_;
    return follower.Follow(7, header, copy_, quiet);
  }

  const std::vector<Record>& log() const { return log_; }

 private:
  struct Pending {
    size_t slot;
    Record record;
    uint64_t reading;  // after which it was issued
  };
  void Store(const Record& record) {
    pending_.push_back({log_.size() % kRecords, record, readings_});
    log_.push_back(record);
    // A few are under way; any of them may be the next to arrive, but one of its own slot before.
    while (pending_.size() > 8 || (!pending_.empty() && Random(2) == 0)) {
      const size_t which = Random(static_cast<uint32_t>(pending_.size()));
      memory_[pending_[which].slot] = pending_[which].record;
      pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(which));
    }
  }

  std::mt19937 random_;
  uint32_t clock_ = 0xfffff000;  // wraps soon
  uint32_t grid_ = 0;
  uint64_t readings_ = 0;
  std::vector<Record> memory_ = std::vector<Record>(kRecords);
  std::vector<Record> log_;
  std::vector<Pending> pending_;
  std::vector<Record> copy_;
  ring::RingHeader header_{};
};

bool Same(const Record& a, const Record& b) {
  return a.clock == b.clock && a.tag == b.tag && a.low == b.low && a.high == b.high;
}

// Records by position, as rows say.
struct Given {
  std::vector<std::pair<uint64_t, Record>> records;
  uint64_t end = 0;

  void Add(const std::optional<capture::RingContents>& row) {
    if (!row) return;
    EXPECT_EQ(row->ring, 7u);
    EXPECT_EQ(row->written % sizeof(Record), 0u);
    const uint64_t first = row->written / sizeof(Record) - row->older.size() - row->newer.size();
    EXPECT_GE(first, end) << "positions only grow";
    uint64_t at = first;
    for (const auto part : {row->older, row->newer}) {
      for (const Record& record : part) records.emplace_back(at++, record);
    }
    end = at;
  }
};

TEST(RingFollower, SaysNothingOfARingThatNobodyWrites) {
  RingFollower follower(kRecords);
  WrittenRing ring(1);
  EXPECT_FALSE(ring.Read(follower, 0));
  EXPECT_FALSE(follower.Follow(0, {}, {}, true));
}

TEST(RingFollower, GivesEachRecordOnce) {
  RingFollower follower(kRecords);
  WrittenRing ring(2);
  Given given;
  ring.NextWarp();
  for (int i = 0; i < 100; ++i) {
    ring.WriteEvents(100);
    ring.Settle();
    given.Add(ring.Read(follower, 0));
  }
  ring.End();
  given.Add(ring.Read(follower, 0, true));
  ASSERT_EQ(given.records.size(), ring.log().size());
  for (size_t i = 0; i < ring.log().size(); ++i) {
    EXPECT_EQ(given.records[i].first, i);
    EXPECT_TRUE(Same(given.records[i].second, ring.log()[i])) << i;
  }
  EXPECT_EQ(follower.lost(), 0u);
}

TEST(RingFollower, TellsAnEndThatBroughtNoRecord) {
  RingFollower follower(kRecords);
  WrittenRing ring(3);
  ring.NextWarp();
  ring.WriteEvents(3);
  ring.Settle();
  ASSERT_TRUE(ring.Read(follower, 0));
  EXPECT_FALSE(ring.Read(follower, 0));
  ring.End();
  const auto row = ring.Read(follower, 0);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->older.size() + row->newer.size(), 0u);
  EXPECT_EQ(row->written, row->header.cursor);
  EXPECT_FALSE(ring.Read(follower, 0));
}

TEST(RingFollower, CountsWholeLapsWhenAWarpEnds) {
  RingFollower follower(kRecords);
  WrittenRing ring(4);
  ring.NextWarp();
  ring.WriteEvents(kRecords * 5 + 17);
  ring.Settle();
  ring.Read(follower, 0);
  EXPECT_LE(follower.given(), kRecords);
  EXPECT_LE(follower.lost(), ring.log().size() - kRecords) << "a running warp: a lower bound";
  ring.End();
  const auto row = ring.Read(follower, 0, true);
  ASSERT_TRUE(row);
  EXPECT_GE(follower.given(), kRecords - 1);
  EXPECT_EQ(follower.lost(), ring.log().size() - follower.given());
  EXPECT_EQ(row->written, ring.log().size() * sizeof(Record));
}

TEST(RingFollower, NeverGivesARecordThatWasNotWritten) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    RingFollower follower(kRecords);
    WrittenRing ring(seed);
    Given given;
    bool exact = true;  // never came around between two readings
    size_t before = 0;
    for (int i = 0; i < 60; ++i) {
      if (i == 0 || ring.Random(4) == 0) ring.NextWarp();
      // Slow, quick, and sometimes too quick for the reader.
      const uint32_t most = std::vector<uint32_t>{1, 30, 200, 1000}[ring.Random(4)];
      ring.WriteEvents(ring.Random(most + 1));
      const auto row = ring.Read(follower, std::vector<size_t>{0, 10, 60}[ring.Random(3)]);
      exact &= ring.log().size() - before < kRecords / 2;
      before = ring.log().size();
      given.Add(row);
    }
    ring.End();
    given.Add(ring.Read(follower, 0, true));
    EXPECT_FALSE(ring.Read(follower, 0, true));
    // In order, each at most once, and nothing else.
    size_t at = 0;
    for (const auto& [position, record] : given.records) {
      while (at < ring.log().size() && !Same(ring.log()[at], record)) ++at;
      ASSERT_LT(at, ring.log().size()) << "position " << position;
      // Whole laps may be known only when a warp ends.
      ASSERT_GE(at, position);
      ASSERT_EQ((at - position) % kRecords, 0u);
      if (exact) {
        ASSERT_EQ(at, position);
      }
      ++at;
    }
    EXPECT_EQ(follower.given(), given.records.size());
    EXPECT_EQ(follower.given() + follower.lost(), ring.log().size()) << "the loss is exact";
  }
}

}  // namespace
}  // namespace iket::session
