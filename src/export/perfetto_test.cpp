#include "export/perfetto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <optional>
#include <string>
#include <utility>

#include "export/synthetic_model.h"
#include "export/tracks.h"

// What a reader makes of the file is tested in tests/perfetto with the protobuf classes of
// Perfetto's own package. Here: what does not need a reader.
namespace iket::exporter {
namespace {

std::string Write(const trace::Model& model, const PerfettoOptions& options = {}) {
  std::string bytes;
  auto written = WritePerfetto(
      model,
      [&](std::string_view block) {
        bytes += block;
        return Result<void>();
      },
      options);
  EXPECT_TRUE(written) << written.error().message;
  return bytes;
}

TEST(Perfetto, SameModelSameBytes) {
  const trace::Model model = MakeSyntheticModel({});
  const std::string bytes = Write(model);
  EXPECT_EQ(bytes, Write(model));
  EXPECT_NE(bytes, Write(model, {.range_cycles = true}));
}

TEST(Perfetto, ThreadsWriteTheSameBytes) {
  const trace::Model model = MakeSyntheticModel({});
  const std::string bytes = Write(model, {.edges_per_window = 500, .threads = 1});
  EXPECT_GT(bytes.size(), 100'000u);
  for (const uint32_t threads : {2u, 3u, 8u}) {
    EXPECT_EQ(Write(model, {.edges_per_window = 500, .threads = threads}), bytes) << threads;
  }
}

TEST(Perfetto, ThreadsStopWhereTheSinkFailsAndPassOnWhatItThrows) {
  const trace::Model model = MakeSyntheticModel({});
  uint32_t blocks = 0;
  const auto failing = [&](std::string_view) -> Result<void> {
    if (++blocks < 5) return {};
    return Fail(ErrorKind::kSystem, "disk full");
  };
  const auto written = WritePerfetto(model, failing, {.edges_per_window = 500, .threads = 4});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "disk full");
  EXPECT_EQ(blocks, 5u);

  blocks = 0;
  const auto throwing = [&](std::string_view) -> Result<void> {
    if (++blocks == 5) throw std::bad_alloc();
    return {};
  };
  EXPECT_THROW((void)WritePerfetto(model, throwing, {.edges_per_window = 500, .threads = 4}),
               std::bad_alloc);
}

// What a range without payload costs, its begin and its end: the difference to the same model
// without ranges.
TEST(Perfetto, RangeTakesAtMost33Bytes) {
  trace::Model model = MakeSyntheticModel({.launches = 1,
                                           .ctas = 132,
                                           .warps_per_cta = 12,
                                           .events_per_warp = 400,
                                           .sms = 132,
                                           .faults = false});
  for (auto& declaration : model.declarations) {
    declaration.payload = trace::PayloadType::kNone;
    declaration.line = 0;
  }
  const auto ranges = static_cast<double>(model.ranges.size());
  const auto with_ranges = static_cast<double>(Write(model).size());

  model.ranges = {};
  for (uint32_t& first : model.warps.first_range) first = 0;
  for (uint32_t& count : model.warps.range_count) count = 0;
  for (auto& declaration : model.declarations) {  // closes would become unmatched ends
    if (declaration.kind == trace::EventKind::kPop ||
        declaration.kind == trace::EventKind::kRangeEnd) {
      declaration.kind = trace::EventKind::kPush;
    }
  }
  const auto without_ranges = static_cast<double>(Write(model).size());
  EXPECT_LE((with_ranges - without_ranges) / ranges, 33.0);
  EXPECT_GE((with_ranges - without_ranges) / ranges, 28.0);  // else this measures something else
}

TEST(Perfetto, LaunchesByGraphsSayWhichReplayTheyAre) {
  trace::Model model = MakeSyntheticModel({.launches = 2, .faults = false});
  trace::Launch& launch = model.launches[0];
  launch.sequence = 12;
  launch.grid = {4, 1, 1};
  launch.block = {32, 1, 1};
  EXPECT_EQ(LaunchLabel(model, launch).find("graph"), std::string::npos);
  launch.graph = 1;
  launch.node = 3;
  launch.replay = 5;
  EXPECT_TRUE(LaunchLabel(model, launch).ends_with("<<<4x1x1, 32x1x1>>> graph 1 node 3 replay 5"));
  EXPECT_NE(Write(model).find(">>> graph 1 node 3 replay 5"), std::string::npos);
  launch.sequence = launch.replay = launch.node = trace::kNoRow;
  EXPECT_TRUE(LaunchLabel(model, launch).ends_with("(graph 1 node ? replay ?, grid id 10)"));
}

TEST(Perfetto, MarksOfTheHostHaveATrackIfThereAreAny) {
  trace::Model model = MakeSyntheticModel({.launches = 2, .faults = false});
  const std::string without = Write(model);
  EXPECT_EQ(TrackTree(model).host(), 0u);
  const auto mark = [&model](std::string text, std::optional<double> ns) {
    model.strings.push_back(std::move(text));
    model.host_marks.push_back(
        {.ns = ns, .text = static_cast<trace::StringId>(model.strings.size() - 1)});
  };
  mark("before all", -5e6);
  mark("amidst", 100);
  mark("when?", std::nullopt);
  EXPECT_NE(TrackTree(model).host(), 0u);
  const std::string with = Write(model);
  EXPECT_NE(with.find("before all"), std::string::npos);
  EXPECT_NE(with.find("amidst"), std::string::npos);
  EXPECT_EQ(with.find("when?"), std::string::npos);
  EXPECT_NE(with.find("1 marks of the host are not shown"), std::string::npos);
  EXPECT_EQ(without.find("of the host are not shown"), std::string::npos);
}

TEST(Perfetto, StopsWhenTheSinkFails) {
  const trace::Model model = MakeSyntheticModel({.ctas = 100});
  for (int good_blocks : {0, 1}) {
    int left = good_blocks;
    auto written = WritePerfetto(model,
                                 [&](std::string_view) -> Result<void> {
                                   EXPECT_GE(left, 0) << "called after it failed";
                                   if (left-- == 0) return Fail(ErrorKind::kSystem, "disk full");
                                   return {};
                                 },
                                 {.edges_per_window = 1000});
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().message, "disk full");
  }
}

TEST(Perfetto, ReportsProgressUpToTheEnd) {
  const trace::Model model = MakeSyntheticModel({});
  uint64_t last = 0, end = 0;
  PerfettoOptions options{.edges_per_window = 100};
  options.progress = [&](uint64_t done, uint64_t total) {
    EXPECT_GT(done, last);
    last = done;
    end = total;
  };
  Write(model, options);
  EXPECT_EQ(last, end);
}

TEST(Perfetto, EmptyModelGivesATraceOfItsHead) {
  EXPECT_THAT(Write(trace::Model()), testing::HasSubstr("trace health"));
}

}  // namespace
}  // namespace iket::exporter
