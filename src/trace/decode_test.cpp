// Stories of warps, and what the model must tell of them.
#include "trace/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "trace/synthetic.h"

namespace iket::trace {
namespace {

using testing::ElementsAre;
using WarpId = SyntheticGpu::WarpId;

class DecodeStory : public testing::Test {
 protected:
  Model Decode() {
    Decoder decoder(gpu.facts());
    decoder.Add(gpu.Read());
    Result<Model> model = decoder.Finish();
    EXPECT_TRUE(model.has_value());
    return std::move(*model);
  }
  void Marks(WarpId warp, int count, double every_ns = 50) {
    for (int i = 0; i < count; ++i) {
      gpu.Pass(every_ns);
      gpu.Event(warp, mark);
    }
  }
  void RunWarp(uint32_t grid, uint32_t cta, uint32_t index, uint32_t slot, int marks) {
    gpu.Pass(100);
    const WarpId warp = gpu.Begin(grid, cta, index, cta % 4, slot);
    Marks(warp, marks);
    gpu.Pass(30);
    gpu.Exit(warp);
  }

  SyntheticGpu gpu;
  uint32_t kernel = gpu.AddKernel("ns::gemm<float>");
  uint32_t mark = gpu.Declare(capture::EventKind::kMark, "step");
};

TEST_F(DecodeStory, ALaunchOfWhichEverythingIsKeptIsComplete) {
  const uint32_t grid = gpu.Launch(kernel, {8, 1, 1}, {64, 1, 1});
  for (uint32_t cta = 0; cta < 8; ++cta) {
    for (uint32_t index = 0; index < 2; ++index) RunWarp(grid, cta, index, index, 3);
  }
  const Model model = Decode();
  ASSERT_EQ(model.launches.size(), 1u);
  const Launch& launch = model.launches[0];
  EXPECT_EQ(launch.completeness, Completeness::kComplete);
  EXPECT_EQ(launch.sequence, 0u);
  EXPECT_EQ(launch.grid_id, grid);
  EXPECT_THAT(launch.grid, ElementsAre(8u, 1u, 1u));
  EXPECT_EQ(launch.warps_expected, 16u);
  EXPECT_EQ(launch.warps_begun, 16u);
  EXPECT_EQ(launch.warps_ended, 16u);
  EXPECT_EQ(launch.events_kept, 48u);
  EXPECT_EQ(launch.lost_at_most, 0u);
  EXPECT_EQ(model.String(model.kernels[launch.kernel].short_name), "gemm");
  EXPECT_FALSE(AnyFault(model.counters));
  EXPECT_EQ(model.counters.records_written, 16u * 5);
}

TEST_F(DecodeStory, WhatIsLeftOutIsNotInTheModelAndNotMissed) {
  const uint32_t other = gpu.Declare(capture::EventKind::kMark, "other");
  const uint32_t inner = gpu.Declare(capture::EventKind::kPush, "inner");
  const uint32_t outer = gpu.Declare(capture::EventKind::kPush, "outer");
  const uint32_t pop = gpu.Declare(capture::EventKind::kPop, "");
  for (auto& declaration : gpu.facts().declarations) {
    declaration.left_out = declaration.name == "other" || declaration.name == "outer";
  }
  const uint32_t grid = gpu.Launch(kernel, {4, 1, 1}, {32, 1, 1});
  for (uint32_t cta : {2u, 0u, 3u, 1u}) {
    const WarpId warp = gpu.Begin(grid, cta, 0, cta, 0);
    for (uint32_t event : {other, outer, inner, other, pop, mark, pop, other}) {
      gpu.Pass(50);
      gpu.Event(warp, event, cta);
    }
    gpu.Exit(warp);
  }
  const Model model = Decode();
  EXPECT_FALSE(AnyFault(model.counters));
  EXPECT_EQ(model.launches[0].completeness, Completeness::kComplete);
  EXPECT_EQ(model.launches[0].events_kept, 12u);
  EXPECT_EQ(model.counters.events_left_out, 20u);
  EXPECT_EQ(model.counters.records_kept, 40u);
  ASSERT_EQ(model.events.size(), 12u);
  ASSERT_EQ(model.ranges.size(), 4u);
  ASSERT_EQ(model.marks.size(), 4u);
  for (uint32_t warp = 0; warp < 4; ++warp) {
    EXPECT_EQ(model.warps.event_count[warp], 3u);
    EXPECT_EQ(model.events.warp[model.warps.first_event[warp]], warp);
    EXPECT_EQ(model.DeclarationName(model.ranges.declaration[warp]), "inner");
    EXPECT_EQ(model.ranges.begin_event[warp], model.warps.first_event[warp]);
    EXPECT_EQ(model.ranges.end_event[warp], model.warps.first_event[warp] + 1);
    EXPECT_EQ(model.ranges.depth[warp], 0u);
    EXPECT_EQ(model.marks.event[warp], model.warps.first_event[warp] + 2);
    // The warp lasted as long as it did: what it recorded last is behind all that is shown.
    const uint64_t last = model.events.cycles[model.marks.event[warp]];
    EXPECT_GT(model.warps.end_cycles[warp], last + 150);
  }
}

TEST_F(DecodeStory, WarpsStandInTheOrderOfLaunchCtaAndIndex) {
  const uint32_t grid = gpu.Launch(kernel, {6, 1, 1}, {96, 1, 1});
  for (uint32_t cta : {5u, 0u, 3u, 1u, 4u, 2u}) {
    for (uint32_t index : {2u, 0u, 1u}) RunWarp(grid, cta, index, index, 1);
  }
  const Model model = Decode();
  for (uint32_t i = 0; i < 18; ++i) {
    EXPECT_EQ(model.warps.cta_x[i], i / 3);
    EXPECT_EQ(model.warps.index[i], i % 3);
    EXPECT_EQ(model.warps.sm[i], i / 3 % 4);
    EXPECT_EQ(model.warps.slot[i], i % 3);
    EXPECT_EQ(model.events.warp[model.warps.first_event[i]], i);
  }
}

TEST_F(DecodeStory, TimesOfAllSmsShareOneAxis) {
  const uint32_t grid = gpu.Launch(kernel, {4, 1, 1}, {32, 1, 1});
  std::vector<WarpId> warps;
  gpu.SetClock(2, 0xffff'ff00u);  // about to wrap
  for (uint32_t sm = 0; sm < 4; ++sm) warps.push_back(gpu.Begin(grid, sm, 0, sm, 0));
  std::vector<double> when;
  for (int i = 0; i < 100; ++i) {
    gpu.Pass(10'000);
    when.push_back(gpu.now_ns() - 992);  // the first begin: 1,000 by a timer of 32
    for (WarpId warp : warps) gpu.Event(warp, mark);
  }
  for (WarpId warp : warps) gpu.Exit(warp);
  const Model model = Decode();
  EXPECT_FALSE(AnyFault(model.counters));
  for (uint32_t warp = 0; warp < 4; ++warp) {
    for (uint32_t i = 0; i < 100; ++i) {
      EXPECT_NEAR(model.NsOfWarp(warp, model.events.cycles[model.warps.first_event[warp] + i]),
                  when[i], 40);
    }
  }
}

TEST_F(DecodeStory, AWarpLongerThanTheClocksRangeIsUnwrappedByItsOwnEvents) {
  const uint32_t grid = gpu.Launch(kernel, {1, 1, 1}, {32, 1, 1});
  const WarpId warp = gpu.Begin(grid, 0, 0, 0, 0);
  Marks(warp, 16, 0.5e9);
  gpu.Exit(warp);
  const Model model = Decode();
  EXPECT_NEAR(static_cast<double>(model.warps.end_cycles[0] - model.warps.begin_cycles[0]),
              8e9 * 1.98, 1000);
  EXPECT_NEAR(model.warps.end_ns[0] - model.warps.begin_ns[0], 8e9, 1000);
  EXPECT_EQ(model.warps.flags[0], 0);
}

TEST_F(DecodeStory, AWarpSoLongThatItsBeginIsADoubtSaysSo) {
  const uint32_t grid = gpu.Launch(kernel, {1, 1, 1}, {32, 1, 1});
  const WarpId warp = gpu.Begin(grid, 0, 0, 0, 0);
  Marks(warp, 100, 0.5e9);
  gpu.Exit(warp);
  const Model model = Decode();
  EXPECT_EQ(model.warps.flags[0], kWarpWrapGap);
  EXPECT_NEAR(static_cast<double>(model.warps.end_cycles[0] - model.warps.begin_cycles[0]),
              50e9 * 1.98, 1000);
}

TEST_F(DecodeStory, ASilenceThatHidesAWrapIsFlagged) {
  const uint32_t grid = gpu.Launch(kernel, {1, 1, 1}, {64, 1, 1});
  RunWarp(grid, 0, 1, 1, 10);  // shows the frequency
  const WarpId warp = gpu.Begin(grid, 0, 0, 0, 0);
  Marks(warp, 1);
  gpu.Pass(3e9);
  gpu.Exit(warp);
  const Model model = Decode();
  EXPECT_EQ(model.warps.flags[0], kWarpWrapGap);
  EXPECT_EQ(model.counters.wrap_gaps, 1u);
  EXPECT_NEAR(model.warps.end_ns[0] - model.warps.begin_ns[0], 3e9, 1e6);
}

TEST_F(DecodeStory, LaunchesAnHourApartStayAnHourApart) {
  for (int i = 0; i < 3; ++i) {
    const uint32_t grid = gpu.Launch(kernel, {4, 1, 1}, {32, 1, 1});
    for (uint32_t cta = 0; cta < 4; ++cta) RunWarp(grid, cta, 0, 0, 5);
    gpu.Pass(3600e9);
  }
  const Model model = Decode();
  ASSERT_EQ(model.launches.size(), 3u);
  EXPECT_NEAR(model.launches[1].first_ns - model.launches[0].first_ns, 3600e9, 1e6);
  EXPECT_NEAR(model.launches[2].first_ns - model.launches[1].first_ns, 3600e9, 1e6);
  EXPECT_EQ(model.counters.suspect_rings, 0u);
  for (const Launch& launch : model.launches) {
    EXPECT_EQ(launch.completeness, Completeness::kComplete);
  }
}

TEST_F(DecodeStory, RingsOfManySecondsAreNeitherSuspectNorRunning) {
  // Both low words wrap many times between launches, and old records look younger than new ones.
  std::mt19937_64 random(5);
  std::vector<double> begun;
  for (int i = 0; i < 200; ++i) {
    gpu.Pass(static_cast<double>(random() % 3'000'000'000));
    const uint32_t grid = gpu.Launch(kernel, {4, 1, 1}, {32, 1, 1});
    begun.push_back(gpu.now_ns());
    for (uint32_t cta = 0; cta < 4; ++cta) {
      RunWarp(grid, cta, 0, 0, static_cast<int>(random() % 20));
    }
  }
  const Model model = Decode();
  EXPECT_EQ(model.counters.suspect_rings, 0u);
  EXPECT_EQ(model.counters.warps_running, 0u);
  EXPECT_EQ(model.counters.wrap_gaps, 0u);
  EXPECT_EQ(model.counters.stale_records, 0u);
  EXPECT_EQ(model.counters.clock_outliers, 0u);
  ASSERT_GT(model.launches.size(), 10u);
  const Launch& newest = model.launches.back();
  ASSERT_EQ(newest.sequence, 199u);
  for (const Launch& launch : model.launches) {
    if (launch.completeness != Completeness::kComplete) continue;
    EXPECT_NEAR(newest.first_ns - launch.first_ns, begun[199] - begun[launch.sequence], 1000);
  }
}

TEST_F(DecodeStory, AFrequencyThatChangesBetweenLaunchesBendsTheClock) {
  for (double ghz : {1.98, 1.2, 1.755}) {
    gpu.SetFrequency(ghz);
    const uint32_t grid = gpu.Launch(kernel, {4, 1, 1}, {32, 1, 1});
    for (uint32_t cta = 0; cta < 4; ++cta) RunWarp(grid, cta, 0, 0, 40);
    gpu.Pass(50e6);
  }
  const Model model = Decode();
  EXPECT_EQ(model.counters.suspect_rings, 0u);
  for (uint32_t i = 0; i < model.warps.size(); ++i) {
    EXPECT_NEAR(model.warps.end_ns[i] - model.warps.begin_ns[i], 40 * 50 + 30, 300) << i;
  }
}

TEST_F(DecodeStory, ARingThatLappedCountsItsLossAndMakesTheLaunchPartial) {
  const uint32_t grid = gpu.Launch(kernel, {1, 1, 1}, {32, 1, 1});
  RunWarp(grid, 0, 0, 0, 1000);
  const Model model = Decode();
  EXPECT_EQ(model.counters.records_written, 1002u);
  EXPECT_EQ(model.counters.records_lost, 1002u - 256);
  EXPECT_EQ(model.launches[0].completeness, Completeness::kPartial);
  EXPECT_EQ(model.launches[0].lost_at_most, 1002u - 256);
  EXPECT_EQ(model.warps.flags[0], kWarpBeginMissing);
  EXPECT_EQ(model.warps.cta_x[0], 0u);
  EXPECT_EQ(model.launches[0].kernel, 0u) << "by the log: no begin is left to tell the kernel";
}

TEST_F(DecodeStory, TheOldestWarpOfALappedRingIsAnonymous) {
  const uint32_t first = gpu.Launch(kernel, {1, 1, 1}, {32, 1, 1});
  const uint32_t second = gpu.Launch(kernel, {1, 1, 1}, {32, 1, 1});
  RunWarp(first, 0, 0, 0, 400);
  RunWarp(second, 0, 0, 0, 100);
  const Model model = Decode();
  ASSERT_EQ(model.warps.size(), 2u);
  EXPECT_EQ(model.warps.flags[0], kWarpBeginMissing | kWarpOrphan);
  EXPECT_EQ(model.launches[0].kernel, kNoRow);
  EXPECT_EQ(model.launches[0].completeness, Completeness::kUnknown);
  EXPECT_EQ(model.counters.orphan_records, 256u - 102);
  EXPECT_EQ(model.launches[1].grid_id, second);
  EXPECT_EQ(model.counters.launches_unmatched,
            0u + 1);  // one of two, and a single grid proves nothing
}

TEST_F(DecodeStory, AWarpThatHangsShowsWhatItDidLast) {
  const uint32_t grid = gpu.Launch(kernel, {2, 1, 1}, {32, 1, 1});
  RunWarp(grid, 0, 0, 0, 10);
  const WarpId hung = gpu.Begin(grid, 1, 0, 1, 0);
  Marks(hung, 20);
  const Model model = Decode();
  ASSERT_EQ(model.warps.size(), 2u);
  EXPECT_EQ(model.warps.flags[1], kWarpRunning | kWarpEndMissing);
  EXPECT_EQ(model.warps.event_count[1], 20u);
  EXPECT_EQ(model.warps.end_cycles[1], model.events.cycles[model.warps.first_event[1] + 19]);
  EXPECT_EQ(model.counters.warps_running, 1u);
  EXPECT_EQ(model.launches[0].completeness, Completeness::kPartial);
  EXPECT_EQ(model.counters.suspect_rings, 0u);
}

TEST_F(DecodeStory, AWarpThatHangsAfterManyLapsIsStillKnown) {
  const uint32_t grid = gpu.Launch(kernel, {1, 1, 1}, {64, 1, 1});
  const WarpId hung = gpu.Begin(grid, 0, 1, 0, 0);
  Marks(hung, 5000);
  const Model model = Decode();
  ASSERT_EQ(model.warps.size(), 1u);
  EXPECT_EQ(model.warps.flags[0] & ~kWarpWrapGap,
            kWarpRunning | kWarpEndMissing | kWarpBeginMissing);
  EXPECT_EQ(model.warps.index[0], 1u);
  EXPECT_EQ(model.warps.event_count[0], 256u);
  EXPECT_EQ(model.launches[0].grid_id, grid);
  EXPECT_EQ(model.counters.lost_is_lower_bound, 1u);
  EXPECT_GT(model.counters.records_lost, 0u);
}

TEST_F(DecodeStory, LanesThatLeaveEarlyDoNotEndTheWarp) {
  const uint32_t grid = gpu.Launch(kernel, {1, 1, 1}, {32, 1, 1});
  const WarpId warp = gpu.Begin(grid, 0, 0, 0, 0);
  Marks(warp, 5);
  gpu.Exit(warp, false);
  Marks(warp, 5);
  gpu.Exit(warp, false);
  Marks(warp, 5);
  gpu.Exit(warp);
  const Model model = Decode();
  ASSERT_EQ(model.warps.size(), 1u);
  EXPECT_EQ(model.warps.event_count[0], 15u);
  EXPECT_EQ(model.warps.flags[0], 0);
  EXPECT_EQ(model.launches[0].completeness, Completeness::kComplete);
}

TEST_F(DecodeStory, EventsWithoutADeclarationAreKeptWithTheirId) {
  const uint32_t grid = gpu.Launch(kernel, {1, 1, 1}, {32, 1, 1});
  const WarpId warp = gpu.Begin(grid, 0, 0, 0, 0);
  gpu.Event(warp, 0x1234567, 99);
  gpu.Exit(warp);
  const Model model = Decode();
  EXPECT_EQ(model.counters.unknown_ids, 1u);
  ASSERT_EQ(model.marks.size(), 1u);
  EXPECT_EQ(model.events.payload[0], 0x1234567u);
  EXPECT_EQ(model.declarations[model.events.declaration[0]].kind, EventKind::kUnknown);
}

TEST_F(DecodeStory, AClockThatStepsBackMakesTheRingSuspectAndTimeStandStill) {
  const uint32_t grid = gpu.Launch(kernel, {1, 1, 1}, {32, 1, 1});
  RunWarp(grid, 0, 0, 0, 10);
  gpu.Memory(0)[6].clock -= 5000;
  const Model model = Decode();
  EXPECT_EQ(model.counters.backward_clocks, 1u);
  EXPECT_EQ(model.counters.suspect_rings, 1u);
  EXPECT_EQ(model.warps.flags[0], kWarpSuspect);
  EXPECT_EQ(model.launches[0].completeness, Completeness::kPartial);
  for (uint32_t i = 1; i < 10; ++i) {
    EXPECT_GE(model.events.cycles[i], model.events.cycles[i - 1]);
  }
}

TEST_F(DecodeStory, AWarpAfterWhichTheOldEndStillStandsNeverEnded) {
  const uint32_t grid = gpu.Launch(kernel, {8, 1, 1}, {32, 1, 1});
  RunWarp(grid, 0, 0, 0, 3);
  RunWarp(grid, 4, 0, 0, 3);
  std::vector<ring::Record>& memory = gpu.Memory(0);
  memory[5].high = memory[0].high;  // the second begin remembers what the first one did
  const Model model = Decode();
  EXPECT_EQ(model.warps.flags[0], kWarpEndMissing);
  EXPECT_EQ(model.warps.end_cycles[0], model.events.cycles[2]);
  EXPECT_EQ(model.warps.flags[1], 0);
  EXPECT_EQ(model.counters.suspect_rings, 0u);
}

TEST_F(DecodeStory, AnEndAfterTheNextBeginMakesTheRingSuspect) {
  const uint32_t grid = gpu.Launch(kernel, {8, 1, 1}, {32, 1, 1});
  RunWarp(grid, 0, 0, 0, 3);
  RunWarp(grid, 4, 0, 0, 3);
  std::vector<ring::Record>& memory = gpu.Memory(0);
  memory[5].high = memory[5].clock + 1000;
  const Model model = Decode();
  EXPECT_EQ(model.warps.flags[0], kWarpEndMissing | kWarpSuspect);
  EXPECT_EQ(model.warps.flags[1], kWarpSuspect);
  EXPECT_EQ(model.counters.suspect_rings, 1u);
}

TEST_F(DecodeStory, AGridThatNobodyLoggedHasNoDimensionsButItsEvents) {
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  RunWarp(grid, 0, 0, 0, 3);
  const Model model = Decode();
  EXPECT_EQ(model.counters.launches_unmatched, 1u);
  EXPECT_EQ(model.launches[0].completeness, Completeness::kUnknown);
  EXPECT_EQ(model.launches[0].sequence, kNoRow);
  EXPECT_EQ(model.warps.index[0], kNoRow);
  EXPECT_EQ(model.warps.event_count[0], 3u);
}

TEST_F(DecodeStory, WarpsThatNeverAppearedAreCounted) {
  const uint32_t grid = gpu.Launch(kernel, {3, 1, 1}, {32, 1, 1});
  gpu.Launch(kernel, {3, 1, 1}, {32, 1, 1});
  RunWarp(grid, 0, 0, 0, 3);
  gpu.facts().launches.pop_back();
  const Model model = Decode();
  EXPECT_EQ(model.counters.warps_missing, 2u);
  EXPECT_EQ(model.launches[0].completeness, Completeness::kPartial);
}

TEST_F(DecodeStory, AFileTellsTheSame) {
  const uint32_t grid = gpu.Launch(kernel, {8, 1, 1}, {32, 1, 1});
  for (uint32_t cta = 0; cta < 8; ++cta) RunWarp(grid, cta, 0, 0, 300);
  const std::string path = testing::TempDir() + "decode_test.iketcap";
  Result<capture::Writer> writer = capture::Writer::Create(path);
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE(gpu.Write(*writer).has_value());
  ASSERT_TRUE(writer->Finish().has_value());
  const Result<capture::Reader> reader = capture::Reader::Open(path);
  ASSERT_TRUE(reader.has_value());
  const Result<Model> from_file = trace::Decode(*reader);
  ASSERT_TRUE(from_file.has_value());
  const Model direct = Decode();
  EXPECT_EQ(from_file->events.cycles, direct.events.cycles);
  EXPECT_EQ(from_file->events.warp, direct.events.warp);
  EXPECT_EQ(from_file->warps.begin_ns, direct.warps.begin_ns);
  EXPECT_EQ(from_file->String(from_file->damage), "");
}

TEST_F(DecodeStory, RandomBytesAreCountedNotTrusted) {
  const uint32_t grid = gpu.Launch(kernel, {8, 1, 1}, {32, 1, 1});
  for (uint32_t cta = 0; cta < 8; ++cta) RunWarp(grid, cta, 0, 0, 300);
  std::mt19937_64 random(3);
  const capture::RingBlock block = gpu.Read();
  for (int round = 0; round < 300; ++round) {
    std::vector<std::vector<ring::Record>> memory;
    capture::RingBlock spoilt = block;
    uint64_t records = 0;
    for (capture::RingRow& row : spoilt.rows) {
      memory.emplace_back(row.records.begin(), row.records.end());
      for (size_t hits = random() % 300; hits > 0; --hits) {
        auto* bytes = reinterpret_cast<uint32_t*>(memory.back().data());
        const size_t at = random() % (memory.back().size() * 4);
        bytes[at] =
            random() % 4 == 0 ? static_cast<uint32_t>(random())
            : random() % 2 == 0
                ? static_cast<uint32_t>(random() % 2 == 0 ? ring::kTagBegin : ring::kTagIdentity)
                : bytes[at] ^ 1u << random() % 32;
      }
      row.records = memory.back();
      if (random() % 3 == 0) row.header.cursor = static_cast<uint32_t>(random());
      if (random() % 3 == 0) row.header.end_timer_high = static_cast<uint32_t>(random());
      records += row.records.size();
    }
    Decoder decoder(gpu.facts());
    decoder.Add(spoilt);
    const Result<Model> model = decoder.Finish();
    ASSERT_TRUE(model.has_value());
    EXPECT_LE(model->events.size(), records);
    for (uint32_t warp = 0; warp < model->warps.size(); ++warp) {
      const uint32_t first = model->warps.first_event[warp];
      for (uint32_t i = 1; i < model->warps.event_count[warp]; ++i) {
        ASSERT_GE(model->events.cycles[first + i], model->events.cycles[first + i - 1]);
      }
      ASSERT_GE(model->warps.end_cycles[warp], model->warps.begin_cycles[warp]);
    }
    for (size_t i = 0; i < model->ranges.size(); ++i) {
      ASSERT_GE(model->ranges.end_cycles[i], model->ranges.begin_cycles[i]);
    }
  }
}

}  // namespace
}  // namespace iket::trace
