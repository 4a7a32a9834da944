// From warps that write, through a follower that reads at its own pace, to the model: what is kept
// is what was recorded, and what is not is counted.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "session/ring_follower.h"
#include "trace/decode.h"
#include "trace/synthetic.h"

namespace iket::trace {
namespace {

// A kernel of long warps, one a ring, that number their marks inside of ranges; read now and then.
class Followed {
 public:
  Followed(uint32_t seed, uint32_t most_events) : random_(seed), most_(most_events) {
    for (uint32_t ring = 0; ring < kRings; ++ring) followers_.emplace_back(gpu_.records_per_ring());
  }

  Model Run() {
    for (int launch = 0; launch < 3; ++launch) {
      const uint32_t grid = gpu_.Launch(kernel_, {kRings, 1, 1}, {32, 1, 1});
      std::vector<SyntheticGpu::WarpId> warps;
      for (uint32_t cta = 0; cta < kRings; ++cta) warps.push_back(gpu_.Begin(grid, cta, 0, cta, 0));
      for (int round = 0; round < 6; ++round) {
        for (const auto warp : warps) Write(warp);
        if (random_() % 3 != 0) Read(false);
      }
      for (const auto warp : warps) gpu_.Exit(warp);
    }
    Read(true);
    return std::move(*decoder_.Finish());
  }

  // Headers are read, warps end and others begin and write, and then the rings are read.
  Model RunWithLateReadings() {
    splits_ = false;  // the rest would come with a header that is as old
    std::vector<SyntheticGpu::WarpId> warps;
    for (int launch = 0; launch < 6; ++launch) {
      const uint32_t grid = gpu_.Launch(kernel_, {kRings, 1, 1}, {32, 1, 1});
      for (const auto warp : warps) gpu_.Exit(warp);
      warps.clear();
      for (uint32_t cta = 0; cta < kRings; ++cta) warps.push_back(gpu_.Begin(grid, cta, 0, cta, 0));
      for (int round = 0; round < 3; ++round) {
        for (const auto warp : warps) Write(warp);
        if (random_() % 2 == 0) {
          Read(false);
          headers_.clear();
        }
        if (random_() % 2 == 0 && headers_.empty()) KeepHeaders();
      }
    }
    for (const auto warp : warps) gpu_.Exit(warp);
    headers_.clear();
    Read(true);
    return std::move(*decoder_.Finish());
  }

  // A launch that nobody logs after each pause; the rings are read soon behind each.
  Model RunWithPauses(std::span<const double> pauses_s, std::vector<double>& begun_ns) {
    for (const double pause_s : pauses_s) {
      gpu_.Pass(pause_s * 1e9);
      const uint32_t grid = gpu_.LaunchUnlogged(kernel_);
      std::vector<SyntheticGpu::WarpId> warps;
      begun_ns.push_back(gpu_.now_ns());
      for (uint32_t cta = 0; cta < kRings; ++cta) warps.push_back(gpu_.Begin(grid, cta, 0, cta, 0));
      for (const auto warp : warps) Write(warp);
      for (const auto warp : warps) gpu_.Exit(warp);
      gpu_.Pass(2e6);
      Read(false);
    }
    Read(true);
    return std::move(*decoder_.Finish());
  }

  const SyntheticGpu& gpu() const { return gpu_; }
  // Whose each number was.
  std::map<uint64_t, SyntheticGpu::WarpId> Writers() const {
    std::map<uint64_t, SyntheticGpu::WarpId> writers;
    for (uint32_t ring = 0; ring < gpu_.ring_count(); ++ring) {
      for (const auto& truth : gpu_.Log(ring)) {
        if (truth.payload != 0) writers[truth.payload] = truth.warp;
      }
    }
    return writers;
  }
  uint64_t lost() const {
    uint64_t lost = 0;
    for (const auto& follower : followers_) lost += follower.lost();
    return lost;
  }

 private:
  static constexpr uint32_t kRings = 3;

  void Write(SyntheticGpu::WarpId warp) {
    gpu_.Event(warp, push_);
    for (uint32_t i = 0, count = static_cast<uint32_t>(random_()) % most_; i < count; ++i) {
      gpu_.Pass(10);
      gpu_.Event(warp, mark_, number_++);
    }
    gpu_.Event(warp, pop_);
  }

  void Read(bool quiet) {
    for (uint32_t ring = 0; ring < kRings; ++ring) {
      const uint32_t index = ring * ring::kSlotsPerSm;
      const auto row = followers_[ring].Follow(
          index, headers_.empty() ? gpu_.Header(index) : headers_[ring], gpu_.Memory(index), quiet);
      if (!row) continue;
      std::vector<ring::Record> all(row->older.begin(), row->older.end());
      all.insert(all.end(), row->newer.begin(), row->newer.end());
      // A reading may end between a begin and its identity.
      size_t cut = all.size();
      for (size_t i = 0; splits_ && i < all.size() && cut == all.size(); ++i) {
        if (ring::KindOf(all[i]) == ring::RecordKind::kBegin) cut = i + 1;
      }
      const std::span<const ring::Record> whole = all;
      const uint64_t behind_cut = (whole.size() - cut) * ring::kRecordBytes;
      Add(index, *row, row->written - behind_cut, whole.first(cut), quiet);
      if (splits_) Add(index, *row, row->written, whole.subspan(cut), quiet);
    }
  }

  void Add(uint32_t index, const capture::RingContents& row, uint64_t written,
           std::span<const ring::Record> records, bool quiet) {
    decoder_.Add({.moment = {.live = !quiet,
                             .settled = true,
                             .number = moment_++,
                             .begin_ns = static_cast<int64_t>(gpu_.now_ns())},
                  .last_of_moment = true,
                  .rows = {{.ring = index,
                            .written = written,
                            .first = written - records.size() * ring::kRecordBytes,
                            .header = row.header,
                            .records = records}}});
  }

  void KeepHeaders() {
    headers_.clear();
    for (uint32_t ring = 0; ring < kRings; ++ring) {
      headers_.push_back(gpu_.Header(ring * ring::kSlotsPerSm));
    }
  }

  bool splits_ = true;                     // readings, behind a begin
  std::vector<ring::RingHeader> headers_;  // that the next reading takes; empty: as they are then
  std::mt19937 random_;
  uint32_t most_;
  SyntheticGpu gpu_;
  uint32_t kernel_ = gpu_.AddKernel("k");
  uint32_t push_ = gpu_.Declare(capture::EventKind::kPush, "round");
  uint32_t pop_ = gpu_.Declare(capture::EventKind::kPop, "");
  uint32_t mark_ = gpu_.Declare(capture::EventKind::kMark, "n", capture::PayloadType::kU32);
  uint32_t number_ = 1;
  std::vector<session::RingFollower> followers_;
  Decoder decoder_{gpu_.facts()};
  uint64_t moment_ = 0;
};

TEST(Followed, WithoutLossEveryLaunchIsComplete) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Followed followed(seed, 40);
    const Model model = followed.Run();
    ASSERT_EQ(followed.lost(), 0u);
    ASSERT_EQ(model.launches.size(), 3u);
    for (const Launch& launch : model.launches) {
      EXPECT_EQ(launch.completeness, Completeness::kComplete);
    }
    EXPECT_FALSE(AnyFault(model.counters));
    EXPECT_TRUE(model.holes.empty());
  }
}

TEST(Followed, APauseIsAsLongAsItWas) {
  Followed followed(1, 40);
  const std::vector<double> pauses_s = {0.1, 5, 9.1, 4.2949, 13, 0, 31.7, 4.4};
  std::vector<double> begun_ns;
  const Model model = followed.RunWithPauses(pauses_s, begun_ns);
  ASSERT_EQ(model.launches.size(), begun_ns.size());
  for (size_t i = 1; i < begun_ns.size(); ++i) {
    EXPECT_NEAR(model.launches[i].first_ns - model.launches[0].first_ns, begun_ns[i] - begun_ns[0],
                500);
  }
  EXPECT_EQ(model.counters.suspect_rings, 0u);
}

// Each event is where it was recorded, in order, and once; and the warp is who wrote it, if it says
// who it is.
void ExpectTrueWriters(const Followed& followed, const Model& model) {
  const auto writers = followed.Writers();
  for (uint32_t warp = 0; warp < model.warps.size(); ++warp) {
    const uint32_t first = model.warps.first_event[warp];
    uint64_t before = 0;
    for (uint32_t event = first; event < first + model.warps.event_count[warp]; ++event) {
      const uint64_t number = model.events.payload[event];
      if (number == 0) continue;
      EXPECT_GT(number, before) << "in order, and once";
      before = number;
      ASSERT_TRUE(writers.contains(number));
      const auto& writer = followed.gpu().warps()[writers.at(number)];
      if ((model.warps.flags[warp] & kWarpOrphan) != 0) continue;
      ASSERT_EQ(writer.identity.cta_x, model.warps.cta_x[warp]);
      ASSERT_EQ(writer.identity.grid, model.launches[model.warps.launch[warp]].grid_id);
    }
  }
}

// A header is older than the records: what a warp wrote is not another's that the header knows.
TEST(Followed, WhoBeganSinceTheHeaderWasReadIsNobodyElse) {
  uint64_t orphans = 0, known = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Followed followed(seed, 400);
    const Model model = followed.RunWithLateReadings();
    ASSERT_NO_FATAL_FAILURE(ExpectTrueWriters(followed, model));
    for (uint32_t warp = 0; warp < model.warps.size(); ++warp) {
      const bool is_orphan = (model.warps.flags[warp] & kWarpOrphan) != 0;
      (is_orphan ? orphans : known) += model.warps.event_count[warp];
    }
  }
  EXPECT_GT(orphans, 1000u);
  EXPECT_GT(known, orphans / 2);
}

TEST(Followed, WhatIsKeptWasRecordedAndTheRestIsCounted) {
  uint64_t holes = 0, cut = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Followed followed(seed, 400);
    const Model model = followed.Run();
    uint64_t written = 0;
    for (uint32_t ring = 0; ring < followed.gpu().ring_count(); ++ring) {
      written += followed.gpu().Log(ring).size();
    }
    EXPECT_EQ(model.counters.records_written, written);
    EXPECT_EQ(model.counters.records_lost, followed.lost());
    EXPECT_EQ(model.counters.lost_is_lower_bound, 0u);
    EXPECT_EQ(model.counters.suspect_rings, 0u);
    ASSERT_NO_FATAL_FAILURE(ExpectTrueWriters(followed, model));
    // No range is told to be closed across a hole.
    for (const uint32_t hole : model.holes) {
      ++holes;
      for (uint32_t range = 0; range < model.ranges.size(); ++range) {
        if (model.ranges.warp[range] != model.events.warp[hole]) continue;
        const bool spans = model.ranges.begin_event[range] < hole &&
                           model.ranges.end_event[range] != kNoRow &&
                           model.ranges.end_event[range] >= hole;
        EXPECT_FALSE(spans);
      }
    }
    cut += model.counters.ranges_cut;
    for (const Launch& launch : model.launches) {
      EXPECT_FALSE(launch.warps_holed != 0 && launch.completeness == Completeness::kComplete);
    }
  }
  EXPECT_GT(holes, 100u);
  EXPECT_GT(cut, 50u);
}

}  // namespace
}  // namespace iket::trace
