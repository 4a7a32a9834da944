// Graphs of a paper GPU, decoded.
#include "trace/replays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/decode.h"
#include "trace/synthetic.h"

namespace iket::trace {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr capture::Dim3 kBlock = {64, 1, 1};
constexpr uint32_t kWarpsPerCta = 2, kSms = 4;
constexpr uint64_t kStream = 0x1000, kOther = 0x2000;

class Replays : public testing::Test {
 protected:
  // States what a node is, for launches from now on.
  capture::GraphNode& State(uint32_t graph, uint32_t node, uint32_t number, uint32_t ctas) {
    auto& rows = gpu.facts().graph_nodes;
    rows.push_back({.graph = graph,
                    .node = node,
                    .since = sequence,
                    .kernel = number,
                    .grid = {ctas, 1, 1},
                    .block = kBlock});
    return rows.back();
  }
  // The host launches a graph, or the kernel itself; what the GPU does is told separately.
  void LaunchGraph(uint32_t graph, uint64_t stream = kStream) {
    gpu.facts().graph_launches.push_back({.sequence = sequence++,
                                          .stream = stream,
                                          .host_ns = static_cast<int64_t>(gpu.now_ns()),
                                          .graph = graph,
                                          .context = 0});
  }
  uint32_t LaunchKernel(uint32_t number, uint32_t ctas) {
    const uint32_t grid_id = gpu.Launch(number, {ctas, 1, 1}, kBlock);
    gpu.facts().launches.back().sequence = sequence++;
    gpu.facts().launches.back().stream = kStream;
    return grid_id;
  }
  // CTAs [first, end) begin, work and end, some later than others and not where they were before.
  void Run(uint32_t grid_id, uint32_t ctas, uint32_t first = 0) {
    ++runs;
    std::vector<SyntheticGpu::WarpId> warps;
    for (uint32_t cta = first; cta < ctas; ++cta) {
      for (uint32_t i = 0; i < kWarpsPerCta; ++i) {
        warps.push_back(gpu.Begin(grid_id, cta, i, (cta + runs) % kSms, cta / kSms * 2 + i));
        gpu.Pass(50);
      }
    }
    gpu.Pass(1000);
    for (SyntheticGpu::WarpId warp : warps) {
      gpu.Event(warp, mark);
      gpu.Exit(warp);
      gpu.Pass(20);
    }
    gpu.Pass(3000);
  }
  Model Decode() {
    Decoder decoder(gpu.facts());
    decoder.Add(gpu.Read());
    return decoder.Finish().value();
  }

  void StartAgain(const SyntheticShape& shape) {
    gpu = SyntheticGpu(shape);
    kernel = gpu.AddKernel("gemm");
    mark = gpu.Declare(capture::EventKind::kMark, "worked");
    sequence = 0;
  }

  SyntheticGpu gpu{{.sms = kSms, .ring_bytes = 1 << 16}};
  uint32_t kernel = gpu.AddKernel("gemm");
  uint32_t mark = gpu.Declare(capture::EventKind::kMark, "worked");
  uint64_t sequence = 0;
  uint32_t runs = 0;
};

template <typename T>
std::vector<T> Column(const Model& model, T Launch::* member) {
  std::vector<T> column;
  for (const Launch& launch : model.launches) column.push_back(launch.*member);
  return column;
}
std::vector<uint32_t> Graphs(const Model& model) { return Column(model, &Launch::graph); }
std::vector<uint32_t> Nodes(const Model& model) { return Column(model, &Launch::node); }
std::vector<uint32_t> Numbers(const Model& model) { return Column(model, &Launch::replay); }
auto AllComplete() { return Each(testing::Field(&Launch::completeness, Completeness::kComplete)); }
auto NoneComplete() { return Each(testing::Field(&Launch::completeness, Completeness::kUnknown)); }

TEST_F(Replays, EachIsALaunchOfItsOwn) {
  State(3, 1, kernel, 6);
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 20; ++i) {
    LaunchGraph(3);
    Run(grid, 6);
  }
  const Model model = Decode();
  ASSERT_EQ(model.launches.size(), 20u);
  EXPECT_THAT(model.launches, AllComplete());
  for (uint32_t i = 0; i < 20; ++i) {
    const trace::Launch& launch = model.launches[i];
    EXPECT_EQ(launch.graph, 3u);
    EXPECT_EQ(launch.node, 1u);
    EXPECT_EQ(launch.replay, i);
    EXPECT_EQ(launch.sequence, i);
    EXPECT_EQ(launch.stream, kStream);
    EXPECT_EQ(launch.grid_id, grid);
    EXPECT_EQ(launch.warp_count, 12u);
    EXPECT_EQ(launch.host_ns, static_cast<uint64_t>(gpu.facts().graph_launches[i].host_ns));
  }
  EXPECT_EQ(model.counters.launches_unmatched, 0u);
  EXPECT_EQ(model.counters.launches_unseen, 0u);
}

// Only the low word of the timer, 4.3 s, is in a begin: by its launches a pause is as long as it
// was, on each ring that it emptied.
TEST_F(Replays, APauseIsAsLongAsItWas) {
  for (const double ghz_meanwhile : {1.98, 0.345}) {
    SCOPED_TRACE(ghz_meanwhile);
    StartAgain({.sms = kSms, .ring_bytes = 1 << 16});
    State(0, 0, kernel, 6);
    const uint32_t grid = gpu.LaunchUnlogged(kernel);
    const std::vector<double> pauses_s = {0.1, 5, 9.1, 3.9, 13, 0, 31.7, 4.4};
    std::vector<double> begun_ns;
    for (const double pause_s : pauses_s) {
      gpu.SetFrequency(ghz_meanwhile);
      gpu.Pass(pause_s * 1e9);
      gpu.SetFrequency(1.98);
      LaunchGraph(0);
      gpu.Pass(3000);
      begun_ns.push_back(gpu.now_ns());
      Run(grid, 6);
    }
    const Model model = Decode();
    EXPECT_THAT(model.launches, AllComplete());
    ASSERT_EQ(model.launches.size(), begun_ns.size());
    for (size_t i = 1; i < begun_ns.size(); ++i) {
      EXPECT_NEAR(model.launches[i].first_ns - model.launches[i - 1].first_ns,
                  begun_ns[i] - begun_ns[i - 1], 500);
    }
    EXPECT_EQ(model.counters.suspect_rings, 0u);
  }
}

// A round of the timer is 44 ms less than two of the clock: taken for the one before, the first
// would have ended when the second had begun.
TEST_F(Replays, ARoundOfTheTimerAndALittle) {
  State(0, 0, kernel, 6);
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 9; ++i) {
    LaunchGraph(0);
    runs = 0;  // the same slots each time
    Run(grid, 6);
    if (i < 8) gpu.Pass(4.31e9);
  }
  gpu.Pass(20e9);  // until somebody reads
  const Model model = Decode();
  EXPECT_THAT(model.launches, testing::SizeIs(9));
  EXPECT_THAT(model.launches, AllComplete());
  EXPECT_EQ(model.counters.suspect_rings, 0u);
}

// While most rings are busy the timer of a few may come around unseen.
TEST_F(Replays, ASlotThatIsSeldomUsedKeepsTime) {
  State(0, 0, kernel, 6);
  const uint32_t often = gpu.LaunchUnlogged(kernel);
  const uint32_t rare = gpu.AddKernel("rare");
  State(1, 0, rare, 6);
  const uint32_t seldom = gpu.LaunchUnlogged(rare);
  std::vector<double> seldom_ns;
  for (int i = 0; i < 400; ++i) {
    gpu.Pass(0.05e9);
    LaunchGraph(0);
    Run(often, 6);
    if (i % 120 != 10) continue;
    LaunchGraph(1);
    seldom_ns.push_back(gpu.now_ns());
    std::vector<SyntheticGpu::WarpId> warps;
    for (uint32_t cta = 0; cta < 6; ++cta) {
      for (uint32_t warp = 0; warp < kWarpsPerCta; ++warp) {
        warps.push_back(gpu.Begin(seldom, cta, warp, 0, 40 + 2 * cta + warp));
      }
    }
    gpu.Pass(1000);
    for (const auto warp : warps) gpu.Exit(warp);
  }
  const Model model = Decode();
  EXPECT_THAT(model.launches, AllComplete());
  ASSERT_EQ(model.launches.size(), 400 + seldom_ns.size());
  std::vector<double> found_ns;
  for (const Launch& launch : model.launches) {
    if (launch.graph == 1) found_ns.push_back(launch.first_ns);
  }
  ASSERT_EQ(found_ns.size(), seldom_ns.size());
  for (size_t i = 1; i < found_ns.size(); ++i) {
    EXPECT_NEAR(found_ns[i] - found_ns[0], seldom_ns[i] - seldom_ns[0], 500);
  }
}

// A kernel that waited behind a long one began as late as it did: its clock says so.
TEST_F(Replays, WhatWaitedInAQueueBeganWhenItBegan) {
  State(0, 0, kernel, 6);
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 3; ++i) LaunchGraph(0);
  gpu.Pass(4.8e9);  // something else runs
  for (const double pause_ns : {0.0, 0.01e9, 0.0}) {
    gpu.Pass(pause_ns);
    runs = 0;  // the same slots each time
    Run(grid, 6);
  }
  const Model model = Decode();
  ASSERT_EQ(model.launches.size(), 3u);
  EXPECT_NEAR(model.launches[1].first_ns - model.launches[0].first_ns, 0.01e9, 1e5);
  EXPECT_NEAR(model.launches[2].first_ns - model.launches[1].first_ns, 0, 1e5);
}

TEST_F(Replays, NodesOfTwoShapesWithOneGridId) {
  State(0, 0, kernel, 6);
  State(0, 1, kernel, 2).ordered = true;
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 3; ++i) {
    LaunchGraph(0);
    Run(grid, 6);
    Run(grid, 2);
  }
  const Model model = Decode();
  EXPECT_THAT(Nodes(model), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(Numbers(model), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(model.launches, AllComplete());
  EXPECT_EQ(model.launches[0].warps_expected, 12u);
  EXPECT_EQ(model.launches[1].warps_expected, 4u);
}

TEST_F(Replays, NodesSideBySideAreToldApartByTheirShapes) {
  State(0, 0, kernel, 6);
  State(0, 1, kernel, 2);
  const uint32_t small = gpu.LaunchUnlogged(kernel), large = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 3; ++i) {
    LaunchGraph(0);
    Run(large, 6);
    Run(small, 2);
  }
  const Model model = Decode();
  EXPECT_THAT(Nodes(model), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(Numbers(model), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(model.launches, AllComplete());
}

TEST_F(Replays, EqualNodesInARowAreInTheOrderOfTime) {
  for (uint32_t node = 0; node < 3; ++node) State(0, node, kernel, 4).ordered = true;
  const uint32_t grids[] = {gpu.LaunchUnlogged(kernel), gpu.LaunchUnlogged(kernel),
                            gpu.LaunchUnlogged(kernel)};
  for (int i = 0; i < 2; ++i) {
    LaunchGraph(0);
    for (int node : {2, 0, 1}) Run(grids[node], 4);
  }
  const Model model = Decode();
  EXPECT_THAT(Nodes(model), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(Numbers(model), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(model.launches, AllComplete());
}

TEST_F(Replays, EqualNodesSideBySideHaveAReplayAndNoNode) {
  State(0, 0, kernel, 4);
  State(0, 1, kernel, 4);
  const uint32_t grids[] = {gpu.LaunchUnlogged(kernel), gpu.LaunchUnlogged(kernel)};
  for (int i = 0; i < 2; ++i) {
    LaunchGraph(0);
    for (uint32_t grid : grids) Run(grid, 4);
  }
  const Model model = Decode();
  EXPECT_THAT(Graphs(model), Each(0));
  EXPECT_THAT(Nodes(model), Each(kNoRow));
  EXPECT_THAT(Numbers(model), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(model.launches, AllComplete());
}

TEST_F(Replays, EqualNodesSideBySideWithOneGridIdStayTogether) {
  State(0, 0, kernel, 4);
  State(0, 1, kernel, 4);
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 2; ++i) {
    LaunchGraph(0);
    Run(grid, 4);
    Run(grid, 4);
  }
  const Model model = Decode();
  ASSERT_EQ(model.launches.size(), 1u);
  EXPECT_THAT(Numbers(model), Each(kNoRow));
  EXPECT_THAT(model.launches, NoneComplete());
}

TEST_F(Replays, AGraphItsCloneAndTheKernelItselfOnOneStream) {
  State(0, 0, kernel, 4);
  State(1, 0, kernel, 4);
  const uint32_t of_graph = gpu.LaunchUnlogged(kernel), of_clone = gpu.LaunchUnlogged(kernel);
  LaunchGraph(0);
  Run(of_graph, 4);
  LaunchGraph(1);
  Run(of_clone, 4);
  Run(LaunchKernel(kernel, 4), 4);
  LaunchGraph(1);
  Run(of_clone, 4);
  LaunchGraph(0);
  Run(of_graph, 4);
  const Model model = Decode();
  EXPECT_THAT(Graphs(model), ElementsAre(0, 1, kNoRow, 1, 0));
  EXPECT_THAT(Numbers(model), ElementsAre(0, 0, kNoRow, 1, 1));
  EXPECT_THAT(Column(model, &Launch::sequence), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(model.launches, AllComplete());
  EXPECT_EQ(model.counters.launches_unmatched, 0u);
}

TEST_F(Replays, EqualGraphsOnTwoStreamsHaveNoNumber) {
  State(0, 0, kernel, 4);
  State(1, 0, kernel, 4);
  const uint32_t grids[] = {gpu.LaunchUnlogged(kernel), gpu.LaunchUnlogged(kernel)};
  for (int i = 0; i < 2; ++i) {
    LaunchGraph(0, kStream);
    LaunchGraph(1, kOther);
    for (uint32_t grid : grids) Run(grid, 4);
  }
  const Model model = Decode();
  ASSERT_EQ(model.launches.size(), 4u);
  EXPECT_THAT(Graphs(model), Each(kNoRow));
  EXPECT_THAT(Numbers(model), Each(kNoRow));
  EXPECT_THAT(model.launches, AllComplete());  // of which runs they are made is known
  EXPECT_EQ(model.counters.launches_unmatched, 4u);
}

TEST_F(Replays, EachThreadsOwnDefaultStreamIsNotOneStream) {
  constexpr uint64_t kPerThread = 2;
  State(0, 0, kernel, 4);
  State(1, 0, kernel, 4);
  const uint32_t grids[] = {gpu.LaunchUnlogged(kernel), gpu.LaunchUnlogged(kernel)};
  for (uint32_t graph = 0; graph < 2; ++graph) LaunchGraph(graph, kPerThread);
  for (uint32_t grid : grids) Run(grid, 4);
  EXPECT_THAT(Graphs(Decode()), Each(kNoRow));
}

TEST_F(Replays, GraphsOnTwoStreamsThatRanUnequallyOften) {
  State(0, 0, kernel, 4);
  State(1, 0, kernel, 4);
  const uint32_t of_first = gpu.LaunchUnlogged(kernel), of_second = gpu.LaunchUnlogged(kernel);
  LaunchGraph(0, kStream);
  LaunchGraph(1, kOther);
  LaunchGraph(0, kStream);
  for (uint32_t grid : {of_second, of_first, of_first}) Run(grid, 4);
  const Model model = Decode();
  EXPECT_THAT(Graphs(model), ElementsAre(1, 0, 0));
  EXPECT_THAT(Numbers(model), ElementsAre(0, 0, 1));
  EXPECT_THAT(model.launches, AllComplete());
}

TEST_F(Replays, AnUpdateHoldsFromItsLaunchOn) {
  for (bool new_grid_id : {false, true}) {
    SCOPED_TRACE(new_grid_id);
    gpu = SyntheticGpu({.sms = kSms, .ring_bytes = 1 << 16});
    kernel = gpu.AddKernel("gemm");
    mark = gpu.Declare(capture::EventKind::kMark, "worked");
    sequence = 0;
    State(0, 0, kernel, 6);
    uint32_t grid = gpu.LaunchUnlogged(kernel);
    for (uint32_t ctas : {6, 3, 8}) {
      if (ctas != 6) State(0, 0, kernel, ctas);
      if (ctas != 6 && new_grid_id) grid = gpu.LaunchUnlogged(kernel);
      for (int i = 0; i < 2; ++i) {
        LaunchGraph(0);
        Run(grid, ctas);
      }
    }
    const Model model = Decode();
    EXPECT_THAT(Numbers(model), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(Column(model, &Launch::warps_expected), ElementsAre(12, 12, 6, 6, 16, 16));
    EXPECT_THAT(model.launches, AllComplete());
  }
}

TEST_F(Replays, ADisabledNodeIsPassedOver) {
  State(0, 0, kernel, 4);
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  LaunchGraph(0);
  Run(grid, 4);
  State(0, 0, kernel, 4).disabled = true;
  LaunchGraph(0);
  State(0, 0, kernel, 4);
  LaunchGraph(0);
  Run(grid, 4);
  const Model model = Decode();
  EXPECT_THAT(Numbers(model), ElementsAre(0, 2));
  EXPECT_THAT(model.launches, AllComplete());
}

TEST_F(Replays, CapturedAndRefusedLaunchesOfAGraphAreNoReplays) {
  State(0, 0, kernel, 4);
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  LaunchGraph(0);
  gpu.facts().graph_launches.back().captured = true;
  LaunchGraph(0);
  gpu.facts().graph_launches.back().failed = true;
  LaunchGraph(0);
  Run(grid, 4);
  const Model model = Decode();
  EXPECT_THAT(Numbers(model), ElementsAre(0));
  EXPECT_THAT(Column(model, &Launch::sequence), ElementsAre(2));
}

TEST_F(Replays, TheFirstOnesOfAProgramThatEndedTooSoon) {
  State(0, 0, kernel, 6);
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 5; ++i) LaunchGraph(0);
  Run(grid, 6);
  Run(grid, 6);
  Run(grid, 3);
  const Model model = Decode();
  EXPECT_THAT(Numbers(model), ElementsAre(0, 1, 2));
  EXPECT_THAT(
      Column(model, &Launch::completeness),
      ElementsAre(Completeness::kComplete, Completeness::kComplete, Completeness::kPartial));
  EXPECT_EQ(model.counters.launches_unseen, 2u);
}

TEST_F(Replays, AfterALossTheNewestAreWholeAndWithoutANumber) {
  StartAgain({.sms = kSms, .ring_bytes = 512});  // ten warps a ring
  State(0, 7, kernel, 8);
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 40; ++i) {
    LaunchGraph(0);
    Run(grid, 8);
  }
  const Model model = Decode();
  ASSERT_GT(model.launches.size(), 3u);
  EXPECT_THAT(Graphs(model), Each(0));
  EXPECT_THAT(Nodes(model), Each(7));
  EXPECT_THAT(Numbers(model), Each(kNoRow));
  EXPECT_THAT(Column(model, &Launch::sequence), Each(kNoRow));
  // What was lapped in the midst of a run is one row of its own.
  EXPECT_NE(model.launches[0].completeness, Completeness::kComplete);
  for (size_t i = 1; i < model.launches.size(); ++i) {
    EXPECT_EQ(model.launches[i].completeness, Completeness::kComplete);
    EXPECT_GT(model.launches[i].first_ns, model.launches[i - 1].last_ns);
  }
}

TEST_F(Replays, AfterALossTheShapesOfTheNewestTellTheirNodes) {
  StartAgain({.sms = kSms, .ring_bytes = 512});
  State(0, 0, kernel, 8);
  State(0, 1, kernel, 4).ordered = true;
  const uint32_t large = gpu.LaunchUnlogged(kernel), small = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 40; ++i) {
    LaunchGraph(0);
    Run(large, 8);
    Run(small, 4);
  }
  const Model model = Decode();
  ASSERT_GT(model.launches.size(), 3u);
  EXPECT_THAT(Numbers(model), Each(kNoRow));
  const size_t newest = model.launches.size() - 1;
  for (size_t i = newest; i > newest - 3; --i) {
    const trace::Launch& launch = model.launches[i];
    const bool is_small = (newest - i) % 2 == 0;
    EXPECT_EQ(launch.completeness, Completeness::kComplete);
    EXPECT_EQ(launch.node, is_small ? 1u : 0u);
    EXPECT_EQ(launch.warps_expected, is_small ? 8u : 16u);
  }
}

TEST_F(Replays, AfterALossTheFirstWarpsOfALargeRunAreNoSmallRun) {
  // Nothing but the last run is kept, and of it only the CTAs that the smaller shape has too.
  StartAgain({.sms = kSms, .ring_bytes = 512});
  State(0, 0, kernel, 8);
  State(0, 1, kernel, 4).ordered = true;
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  LaunchGraph(0);
  for (uint32_t cta = 4; cta < 8; ++cta) {
    const SyntheticGpu::WarpId warp = gpu.Begin(grid, cta, 0, 0, cta);
    for (uint32_t i = 0; i < 2 * gpu.records_per_ring(); ++i) gpu.Event(warp, mark);
    gpu.Exit(warp);
  }
  gpu.Pass(5000);
  Run(grid, 4);
  const Model model = Decode();
  for (const trace::Launch& launch : model.launches) {
    EXPECT_NE(launch.completeness, Completeness::kComplete);
    EXPECT_EQ(launch.node, kNoRow);
  }
}

TEST_F(Replays, AfterALossNoShapeIsTakenWhereTwoFit) {
  StartAgain({.sms = kSms, .ring_bytes = 512});
  State(0, 0, kernel, 8);
  State(0, 1, kernel, 4).ordered = true;
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 40; ++i) {
    LaunchGraph(0);
    // The large one in two waves, its first CTAs last.
    Run(grid, 8, 4);
    Run(grid, 4);
  }
  for (const trace::Launch& launch : Decode().launches) {
    EXPECT_NE(launch.completeness, Completeness::kComplete);
    EXPECT_EQ(launch.node, kNoRow);
  }
}

TEST_F(Replays, ALossElsewhereLeavesWhatTheLogExplainsExactly) {
  State(0, 0, kernel, 2);
  const uint32_t other = gpu.AddKernel("chatty");
  const uint32_t grid = gpu.LaunchUnlogged(kernel), loud = gpu.LaunchUnlogged(other);
  const SyntheticGpu::WarpId warp = gpu.Begin(loud, 0, 0, 0, 40);
  for (uint32_t i = 0; i < 2 * gpu.records_per_ring(); ++i) gpu.Event(warp, mark);
  gpu.Exit(warp);
  for (int i = 0; i < 3; ++i) {
    LaunchGraph(0);
    Run(grid, 2);
  }
  const Model model = Decode();
  std::vector<uint32_t> numbers;
  for (const trace::Launch& launch : model.launches) {
    if (launch.kernel == kernel) numbers.push_back(launch.replay);
  }
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2));
}

TEST_F(Replays, MoreThanTheLogExplainsIsNotNumbered) {
  State(0, 0, kernel, 4);
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 3; ++i) Run(grid, 4);
  for (int i = 0; i < 2; ++i) LaunchGraph(0);
  const Model model = Decode();
  ASSERT_EQ(model.launches.size(), 1u);
  EXPECT_THAT(Numbers(model), Each(kNoRow));
  EXPECT_THAT(model.launches, NoneComplete());
}

TEST_F(Replays, NodesThatTheGridsDoNotFitOneByOneAreNotNamed) {
  State(0, 0, kernel, 6);
  State(0, 1, kernel, 2);
  const uint32_t grids[] = {gpu.LaunchUnlogged(kernel), gpu.LaunchUnlogged(kernel)};
  LaunchGraph(0);
  for (uint32_t grid : grids) Run(grid, 6);
  const Model model = Decode();
  EXPECT_THAT(Nodes(model), Each(kNoRow));
  EXPECT_THAT(Numbers(model), Each(kNoRow));
  EXPECT_THAT(model.launches, NoneComplete());
}

TEST_F(Replays, RunsThatOverlapAgainstTheLogAreNotNumbered) {
  State(0, 0, kernel, 2);
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 2; ++i) LaunchGraph(0);
  std::vector<SyntheticGpu::WarpId> warps;
  for (uint32_t slot : {0, 2}) {
    for (uint32_t cta = 0; cta < 2; ++cta) {
      for (uint32_t i = 0; i < kWarpsPerCta; ++i) {
        warps.push_back(gpu.Begin(grid, cta, i, cta, slot + i));
        gpu.Pass(1000);
      }
    }
  }
  for (SyntheticGpu::WarpId warp : warps) gpu.Exit(warp);
  const Model model = Decode();
  EXPECT_THAT(Numbers(model), Each(kNoRow));
  EXPECT_THAT(model.launches, NoneComplete());
}

TEST_F(Replays, WhatTheDeviceLaunchesIsNotNumbered) {
  State(0, 0, kernel, 4).uncounted = true;
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 2; ++i) {
    LaunchGraph(0);
    Run(grid, 4);
  }
  const Model model = Decode();
  ASSERT_EQ(model.launches.size(), 2u);
  EXPECT_THAT(Graphs(model), Each(0u));
  EXPECT_THAT(Nodes(model), Each(0u));
  EXPECT_THAT(Numbers(model), Each(kNoRow));
  EXPECT_THAT(model.launches, AllComplete());
  EXPECT_EQ(model.counters.launches_unmatched, 2u);
  EXPECT_EQ(model.counters.launches_unseen, 0u);
}

TEST_F(Replays, AGraphThatTheDeviceAloneLaunches) {
  State(0, 0, kernel, 4).uncounted = true;
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 3; ++i) Run(grid, 4);
  const Model model = Decode();
  EXPECT_THAT(Graphs(model), ElementsAre(0, 0, 0));
  EXPECT_THAT(Numbers(model), Each(kNoRow));
  EXPECT_THAT(model.launches, AllComplete());
}

// A graph of a kernel that decides, a loop, and a kernel that sums up; of the last two `body` may
// be looked at alone.
TEST_F(Replays, BodiesAreRunsOfTheirOwnWithinALaunch) {
  for (const auto& [before, behind] :
       {std::pair(true, true), {true, false}, {false, true}, {false, false}}) {
    SCOPED_TRACE(testing::Message() << before << behind);
    StartAgain({.sms = kSms, .ring_bytes = 1 << 16});
    const uint32_t decide = gpu.AddKernel("decide"), sum = gpu.AddKernel("sum");
    if (before) State(0, 0, decide, 1);
    auto& body = State(0, 2, kernel, 4);
    body.ordered = body.uncounted = body.conditional = true;
    if (behind) State(0, 3, sum, 2).ordered = true;
    const uint32_t grids[] = {gpu.LaunchUnlogged(decide), gpu.LaunchUnlogged(kernel),
                              gpu.LaunchUnlogged(sum)};
    for (int times : {2, 0, 3}) {
      LaunchGraph(0);
      if (before) Run(grids[0], 1);
      for (int i = 0; i < times; ++i) Run(grids[1], 4);
      if (behind) Run(grids[2], 2);
    }
    const Model model = Decode();
    std::vector<uint32_t> replays;
    for (const trace::Launch& launch : model.launches) {
      if (launch.node != 2) continue;
      EXPECT_EQ(launch.graph, 0u);
      EXPECT_EQ(launch.completeness, Completeness::kComplete);
      replays.push_back(launch.replay);
      if (launch.replay != kNoRow) {
        EXPECT_EQ(launch.sequence, gpu.facts().graph_launches[launch.replay].sequence);
      }
    }
    if (before || behind) {
      EXPECT_THAT(replays, ElementsAre(0, 0, 2, 2, 2));
    } else {
      EXPECT_THAT(replays, ElementsAre(kNoRow, kNoRow, kNoRow, kNoRow, kNoRow));
    }
    EXPECT_EQ(model.counters.launches_unmatched, before || behind ? 0u : 5u);
    EXPECT_EQ(model.counters.launches_unseen, 0u);
  }
}

TEST_F(Replays, ABodyOfTheOnlyLaunchIsOfThatLaunch) {
  auto& body = State(0, 1, kernel, 4);
  body.uncounted = body.conditional = true;
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  LaunchGraph(0);
  for (int i = 0; i < 3; ++i) Run(grid, 4);
  const Model model = Decode();
  EXPECT_THAT(Numbers(model), ElementsAre(0, 0, 0));
  EXPECT_THAT(model.launches, AllComplete());
}

TEST_F(Replays, ABodySideBySideWithItsNeighbourIsNotPlacedByIt) {
  const uint32_t beside = gpu.AddKernel("beside");
  State(0, 0, beside, 1);
  auto& body = State(0, 2, kernel, 4);
  body.uncounted = body.conditional = true;
  const uint32_t grids[] = {gpu.LaunchUnlogged(beside), gpu.LaunchUnlogged(kernel)};
  for (int i = 0; i < 2; ++i) {
    LaunchGraph(0);
    Run(grids[0], 1);
    Run(grids[1], 4);
  }
  std::vector<uint32_t> replays;
  for (const trace::Launch& launch : Decode().launches) {
    if (launch.node == 2) replays.push_back(launch.replay);
  }
  EXPECT_THAT(replays, ElementsAre(kNoRow, kNoRow));
}

TEST_F(Replays, ABodyThatWasCutOffStaysTogether) {
  auto& body = State(0, 1, kernel, 4);
  body.uncounted = body.conditional = true;
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  LaunchGraph(0);
  Run(grid, 4);
  Run(grid, 3);
  const Model model = Decode();
  ASSERT_EQ(model.launches.size(), 1u);
  EXPECT_THAT(model.launches, NoneComplete());
  EXPECT_THAT(Numbers(model), Each(kNoRow));
}

TEST_F(Replays, NodesThatNobodyStatedLeaveOnlyWhatIsExact) {
  State(0, 0, kernel, 4);
  State(0, capture::kNoNode, capture::kNoKernel, 0).uncounted = true;
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 3; ++i) LaunchGraph(0);
  Run(grid, 4);
  Run(grid, 4);
  EXPECT_THAT(Numbers(Decode()), Each(kNoRow));
  Run(grid, 4);
  EXPECT_THAT(Numbers(Decode()), ElementsAre(0, 1, 2));
}

TEST_F(Replays, WhatAConditionalBodyRanIsNotTakenForALaunchThatWasLost) {
  for (bool lossy : {false, true}) {
    SCOPED_TRACE(lossy);
    StartAgain({.sms = kSms, .ring_bytes = 512});
    State(0, capture::kNoNode, capture::kNoKernel, 0).uncounted = true;
    const uint32_t launched = LaunchKernel(kernel, 2);
    const uint32_t body = gpu.LaunchUnlogged(kernel), other = gpu.AddKernel("chatty");
    const uint32_t loud = gpu.LaunchUnlogged(other);
    LaunchGraph(0);
    if (lossy) {
      const SyntheticGpu::WarpId warp = gpu.Begin(loud, 0, 0, 0, 40);
      for (uint32_t i = 0; i < 2 * gpu.records_per_ring(); ++i) gpu.Event(warp, mark);
      gpu.Exit(warp);
    }
    // In the lossy world all of the launch is gone, and the body ran just as often.
    Run(lossy ? body : launched, 2);
    const Model model = Decode();
    EXPECT_EQ(model.launches.back().sequence, lossy ? kNoRow : 0u);
  }
}

TEST_F(Replays, KernelsThatNoGraphRunsAreMatchedAsBefore) {
  const uint32_t reduce = gpu.AddKernel("reduce");
  State(0, 0, kernel, 4);
  const uint32_t grid = gpu.LaunchUnlogged(kernel);
  for (int i = 0; i < 2; ++i) {
    LaunchGraph(0);
    Run(grid, 4);
    Run(LaunchKernel(reduce, 3), 3);
  }
  const Model model = Decode();
  EXPECT_THAT(Numbers(model), ElementsAre(0, kNoRow, 1, kNoRow));
  EXPECT_THAT(Column(model, &Launch::sequence), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(model.launches, AllComplete());
}

}  // namespace
}  // namespace iket::trace
