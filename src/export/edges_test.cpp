#include "export/edges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "export/synthetic_model.h"

namespace iket::exporter {
namespace {

std::vector<std::vector<Edge>> Windows(const trace::Model& model, size_t edges_per_window) {
  EdgeStream stream(model, edges_per_window);
  std::vector<std::vector<Edge>> windows;
  std::vector<Edge> window;
  while (stream.Next(window)) windows.push_back(window);
  EXPECT_TRUE(window.empty());
  return windows;
}

std::vector<Edge> All(const trace::Model& model, size_t edges_per_window) {
  std::vector<Edge> edges;
  for (const auto& window : Windows(model, edges_per_window)) {
    edges.insert(edges.end(), window.begin(), window.end());
  }
  return edges;
}

auto Key(const Edge& edge) {
  return std::tuple(edge.ns, edge.warp, edge.event, edge.range, edge.declaration, edge.kind);
}

// The slow and obvious way: the edges of one warp, in the order of record.
std::vector<Edge> EdgesOfWarp(const trace::Model& model, uint32_t warp) {
  std::vector<Edge> edges;
  const auto add = [&](double ns, uint32_t event, uint32_t range, EdgeKind kind) {
    edges.push_back(
        {.ns = GlobalNs(model, ns),
         .warp = warp,
         .event = event,
         .range = range,
         .declaration = event == trace::kNoRow ? event : model.events.declaration[event],
         .kind = kind});
  };
  add(model.warps.begin_ns[warp], trace::kNoRow, trace::kNoRow, EdgeKind::kWarpBegin);
  for (uint32_t event = 0; event < model.events.size(); ++event) {
    if (model.events.warp[event] != warp) continue;
    const double ns = model.NsOfWarp(warp, model.events.cycles[event]);
    uint32_t opened = trace::kNoRow, closed = trace::kNoRow;
    for (uint32_t range = 0; range < model.ranges.size(); ++range) {
      if (model.ranges.begin_event[range] == event) opened = range;
      if (model.ranges.end_event[range] == event) closed = range;
    }
    const auto& marks = model.marks.event;
    if (opened != trace::kNoRow) {
      add(ns, event, opened, EdgeKind::kRangeBegin);
    } else if (closed != trace::kNoRow) {
      add(ns, event, closed, EdgeKind::kRangeEnd);
    } else if (std::find(marks.begin(), marks.end(), event) != marks.end()) {
      add(ns, event, trace::kNoRow, EdgeKind::kMark);
    } else {
      add(ns, event, trace::kNoRow, EdgeKind::kUnmatchedEnd);
    }
  }
  for (uint32_t range = static_cast<uint32_t>(model.ranges.size()); range-- > 0;) {
    if (model.ranges.warp[range] == warp && model.ranges.end_event[range] == trace::kNoRow) {
      add(model.NsOfWarp(warp, model.ranges.end_cycles[range]), trace::kNoRow, range,
          EdgeKind::kRangeEnd);
    }
  }
  add(model.warps.end_ns[warp], trace::kNoRow, trace::kNoRow, EdgeKind::kWarpEnd);
  return edges;
}

TEST(EdgeStream, EqualsTheObviousMerge) {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    const trace::Model model = MakeSyntheticModel({.seed = seed, .ctas = 6});
    for (size_t edges_per_window : {1u, 7u, 100u, 100000u}) {
      const std::vector<Edge> edges = All(model, edges_per_window);
      EXPECT_EQ(edges.size(), EdgeStream(model, 10).total_edges());
      EXPECT_TRUE(std::is_sorted(edges.begin(), edges.end(),
                                 [](const Edge& a, const Edge& b) { return a.ns < b.ns; }));
      for (uint32_t warp = 0; warp < model.warps.size(); ++warp) {
        std::vector<Edge> of_warp;
        std::copy_if(edges.begin(), edges.end(), std::back_inserter(of_warp),
                     [&](const Edge& edge) { return edge.warp == warp; });
        const std::vector<Edge> expected = EdgesOfWarp(model, warp);
        ASSERT_EQ(of_warp.size(), expected.size()) << "seed " << seed << " warp " << warp;
        for (size_t i = 0; i < expected.size(); ++i) {
          ASSERT_EQ(Key(of_warp[i]), Key(expected[i])) << "warp " << warp << " edge " << i;
        }
      }
    }
  }
}

TEST(EdgeStream, CutsWindowsOfAboutTheAskedSize) {
  const trace::Model model =
      MakeSyntheticModel({.launches = 2, .ctas = 64, .warps_per_cta = 8, .events_per_warp = 100});
  const auto windows = Windows(model, 4096);
  ASSERT_GT(windows.size(), 10u);
  for (size_t i = 0; i + 1 < windows.size(); ++i) {
    EXPECT_GT(windows[i].size(), 1000u);
    EXPECT_LT(windows[i].size(), 16000u);
    EXPECT_LT(windows[i].back().ns, windows[i + 1].front().ns);
  }
}

// Clocks of a damaged capture: all times equal, or absurd.
TEST(EdgeStream, SurvivesAbsurdTimes) {
  trace::Model model = MakeSyntheticModel({});
  const size_t expected = All(model, 100).size();
  for (double value : {0.0, 1e300, -1e300, std::numeric_limits<double>::quiet_NaN()}) {
    for (auto& clock : model.clocks) clock.knots = {{.cycles = 0, .ns = value, .slope = 0}};
    for (double& ns : model.warps.begin_ns) ns = value;
    for (double& ns : model.warps.end_ns) ns = value;
    EXPECT_EQ(All(model, 100).size(), expected) << value;
  }
}

TEST(EdgeStream, EmptyModelHasNoWindow) { EXPECT_TRUE(Windows(trace::Model(), 100).empty()); }

TEST(GlobalNs, ClampsAndKeepsOrder) {
  trace::Model model;
  model.origin_ns = 1000;
  EXPECT_EQ(GlobalNs(model, 0), 1000u);
  EXPECT_EQ(GlobalNs(model, 2.9), 1002u);
  EXPECT_EQ(GlobalNs(model, -400), 600u);
  EXPECT_EQ(GlobalNs(model, -4000), 0u);
  EXPECT_EQ(GlobalNs(model, std::numeric_limits<double>::quiet_NaN()), 0u);
  model.origin_ns = ~uint64_t{0};
  EXPECT_LT(GlobalNs(model, 1e300), uint64_t{1} << 63);
}

}  // namespace
}  // namespace iket::exporter
