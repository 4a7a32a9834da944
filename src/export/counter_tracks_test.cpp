#include "export/counter_tracks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "export/edges.h"
#include "export/synthetic_model.h"

namespace iket::exporter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A model of one launch whose warps lived from and to these times, ns.
trace::Model Lives(const std::vector<std::pair<double, double>>& lives) {
  trace::Model model;
  model.devices.emplace_back();
  model.launches.push_back({.warp_count = static_cast<uint32_t>(lives.size()),
                            .first_ns = lives.empty() ? 0 : lives.front().first});
  for (const auto& [begin, end] : lives) {
    model.warps.launch.push_back(0);
    model.warps.begin_ns.push_back(begin);
    model.warps.end_ns.push_back(end);
    model.launches[0].last_ns = std::max(model.launches[0].last_ns, end);
  }
  return model;
}

// The value that a curve has at a moment; 0 before its first point.
double At(const CounterCurve& curve, uint64_t ns) {
  double value = 0;
  for (const CounterPoint& point : curve.points) {
    if (point.ns <= ns) value = point.value;
  }
  return value;
}

TEST(ActiveWarps, RiseAndFall) {
  const CounterCurve curve = ActiveWarps(Lives({{10, 50}, {20, 30}, {30, 40}}), 0);
  EXPECT_EQ(curve.name, "active warps");
  EXPECT_THAT(curve.points, ElementsAre(CounterPoint{10, 1}, CounterPoint{20, 2},
                                        CounterPoint{40, 1}, CounterPoint{50, 0}));
}

TEST(ActiveWarps, OfNothingIsNothing) {
  EXPECT_THAT(ActiveWarps(Lives({}), 0).points, IsEmpty());
  EXPECT_THAT(SmFrequency(Lives({}), 0).points, IsEmpty());
  EXPECT_TRUE(EventRate(Lives({}), 0).empty());
  EXPECT_THAT(EventRate(Lives({}), 0).Curve().points, IsEmpty());
}

TEST(ActiveWarps, OfTwoGpusAreApart) {
  trace::Model model = Lives({{10, 50}, {20, 30}});
  model.devices.emplace_back();
  model.launches.push_back({.device = 1, .warp_count = 1});
  model.warps.launch[1] = 1;
  EXPECT_EQ(ActiveWarps(model, 1).name, "active warps, GPU 1");
  EXPECT_THAT(ActiveWarps(model, 0).points, ElementsAre(CounterPoint{10, 1}, CounterPoint{50, 0}));
  EXPECT_THAT(ActiveWarps(model, 1).points, ElementsAre(CounterPoint{20, 1}, CounterPoint{30, 0}));
}

// Against counting: exact where there are points enough, the most of each piece where not.
TEST(ActiveWarps, AreThoseThatRan) {
  std::mt19937 random(3);
  for (const size_t count : {50u, 4'000u, 30'000u}) {
    std::vector<std::pair<double, double>> lives;
    for (size_t i = 0; i < count; ++i) {
      const auto begin = static_cast<double>(random() % 1'000'000);
      lives.emplace_back(begin, begin + 1 + static_cast<double>(random() % 3'000));
    }
    // Far behind all others, so that there is a silence.
    lives.emplace_back(9'000'000, 9'000'100);
    const CounterCurve curve = ActiveWarps(Lives(lives), 0);
    EXPECT_LE(curve.points.size(), 2 * kMostPoints);
    EXPECT_EQ(curve.points.back().value, 0);
    const bool is_exact = count < 10'000;
    EXPECT_EQ(curve.description.find(" in each ") == std::string::npos, is_exact);
    for (int i = 0; i < 300; ++i) {
      const uint64_t ns = random() % 1'003'000;
      const auto active = std::ranges::count_if(lives, [ns](const auto& life) {
        return life.first <= static_cast<double>(ns) && static_cast<double>(ns) < life.second;
      });
      if (is_exact) {
        ASSERT_EQ(At(curve, ns), active) << ns;
      } else {
        ASSERT_GE(At(curve, ns), active) << ns;
      }
    }
    EXPECT_EQ(At(curve, 5'000'000), 0);
    EXPECT_EQ(At(curve, 9'000'050), 1);
  }
}

TEST(SmFrequency, IsThatOfTheSmThatSaysMost) {
  trace::Model model = Lives({{0, 10}});
  model.clocks.resize(3);
  model.clocks[1].pairs = 2;
  model.clocks[1].knots = {{.cycles = 0, .ns = 0, .slope = 1}};
  model.clocks[2].pairs = 9;
  model.clocks[2].knots = {{.cycles = 0, .ns = -5, .slope = 0.5},
                           {.cycles = 10, .ns = 1000, .slope = 0.625}};
  model.devices[0].clock_count = 3;
  const CounterCurve curve = SmFrequency(model, 0);
  EXPECT_THAT(curve.points, ElementsAre(CounterPoint{0, 2}, CounterPoint{1000, 1.6}));
  EXPECT_THAT(curve.description, ::testing::HasSubstr("SM 2"));
}

TEST(EventRate, OfOneMicrosecondEach) {
  EventRate rate(Lives({{1000, 3500}}), 0);
  for (const uint64_t ns : {1000u, 1500u, 2000u, 3300u, 3500u}) rate.Add(ns);
  EXPECT_THAT(rate.Curve().points,
              ElementsAre(CounterPoint{1000, 2}, CounterPoint{2000, 1},
                          CounterPoint{3000, 2 / 0.501}, CounterPoint{3501, 0}));
}

TEST(EventRate, CountsEveryEventOnce) {
  trace::Model model = MakeSyntheticModel({.launches = 40, .faults = false});
  EventRate rate(model, 0);
  EdgeStream stream(model, 1000);
  std::vector<Edge> window;
  uint64_t events = 0;
  while (stream.Next(window)) {
    for (const Edge& edge : window) {
      if (edge.event == trace::kNoRow ||
          model.launches[model.warps.launch[edge.warp]].device != 0) {
        continue;
      }
      rate.Add(edge.ns);
      ++events;
    }
  }
  ASSERT_GT(events, 1000u);
  const CounterCurve curve = rate.Curve();
  double sum = 0;
  for (size_t i = 0; i + 1 < curve.points.size(); ++i) {
    sum += curve.points[i].value *
           static_cast<double>(curve.points[i + 1].ns - curve.points[i].ns) / 1000;
  }
  EXPECT_NEAR(sum, static_cast<double>(events), 1e-6 * static_cast<double>(events));
  EXPECT_EQ(curve.points.back().value, 0);
  EXPECT_LE(curve.points.size(), kMostPoints);
}

}  // namespace
}  // namespace iket::exporter
