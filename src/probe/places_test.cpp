#include "probe/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "probe/testing_gpu.h"

namespace iket::probe {
namespace {

using Place = capture::SmPlace;

// The GPCs of an H200 by SM, as the register says and run-iket does (GPU-90ad5c10).
uint32_t GpcOf(uint32_t sm) {
  if (sm >= 124) return 1;
  if (sm >= 120) return sm < 122 ? 0 : 7;
  constexpr uint32_t kWithFirst[] = {1, 2, 3, 4, 5, 6, 0, 7}, kWithout[] = {2, 3, 4, 5, 6, 0, 7};
  return sm < 64 ? kWithFirst[sm / 2 % 8] : kWithout[(sm - 64) / 2 % 7];
}
constexpr uint32_t kSms = 132;

const std::vector<Place> kUnknown(2);
using Rows = std::vector<std::pair<uint32_t, uint32_t>>;

// Clusters on SMs of one GPC; as there, the last eight SMs take clusters of two at most.
Rows OnAnH200(uint32_t ctas, uint32_t cluster) {
  std::mt19937 random(cluster);
  Rows rows;
  for (uint32_t i = 0; rows.size() < ctas; ++i) {
    const uint32_t gpc = i % 8;
    std::vector<uint32_t> sms;
    for (uint32_t sm = 0; sm < (cluster > 2 ? 124 : kSms); ++sm) {
      if (GpcOf(sm) == gpc) sms.push_back(sm);
    }
    if (sms.size() < cluster) continue;
    // Each SM in turn: neighbours of one TPC stay together.
    std::ranges::rotate(sms, sms.begin() + static_cast<ptrdiff_t>(2 * (i / 8) % sms.size()));
    for (uint32_t k = 0; k < cluster; ++k) rows.emplace_back(sms[k], gpc);
  }
  rows.resize(ctas);
  return rows;
}

TEST(Places, OfAnH200) {
  testing::Gpu gpu;
  gpu.places = OnAnH200;
  const std::vector<Place> places = FindPlaces(gpu.Calls(), kSms);
  ASSERT_EQ(places.size(), kSms);
  for (uint32_t sm = 0; sm < kSms; ++sm) {
    EXPECT_EQ(places[sm].gpc, static_cast<int32_t>(GpcOf(sm))) << sm;
    EXPECT_EQ(places[sm], places[sm ^ 1]) << "a TPC has two SMs";
  }
  EXPECT_EQ(places[0].tpc, 0);
  EXPECT_EQ(places[16].tpc, 1);
  EXPECT_EQ(places[130].tpc, 7);
  EXPECT_EQ(gpu.modules + gpu.pages + gpu.streams, 0);
}

// What the register says is not believed if the hardware contradicts it.
TEST(Places, NotIfAClusterIsInTwo) {
  testing::Gpu gpu;
  gpu.places = [](uint32_t ctas, uint32_t cluster) {
    Rows rows = OnAnH200(ctas, cluster);
    if (cluster == 4) rows[5].second = 7 - rows[5].second;
    return rows;
  };
  EXPECT_EQ(FindPlaces(gpu.Calls(), kSms), std::vector<Place>(kSms));
}

TEST(Places, NotIfASmIsInTwo) {
  PlaceFinder finder(2);
  finder.Add({{0, 3}, {1, 3}}, 2);
  EXPECT_EQ(finder.Places(), (std::vector<Place>{{.tpc = 0, .gpc = 3}, {.tpc = 0, .gpc = 3}}));
  finder.Add({{0, 4}, {1, 4}}, 2);
  EXPECT_EQ(finder.Places(), kUnknown);
}

TEST(Places, NotWithoutClusters) {
  testing::Gpu gpu;
  gpu.places = [](uint32_t ctas, uint32_t cluster) {
    return cluster > 1 ? Rows{} : OnAnH200(ctas, cluster);
  };
  EXPECT_EQ(FindPlaces(gpu.Calls(), kSms), std::vector<Place>(kSms));
}

TEST(Places, NotIfASmWasNotSeen) {
  testing::Gpu gpu;
  gpu.places = OnAnH200;
  EXPECT_EQ(FindPlaces(gpu.Calls(), kSms + 2), std::vector<Place>(kSms + 2));
}

TEST(Places, NotIfTheRegisterHoldsSomethingElse) {
  PlaceFinder finder(2);
  finder.Add({{0, 0x12345}, {1, 0x12345}}, 2);
  EXPECT_EQ(finder.Places(), kUnknown);
  PlaceFinder half(2);
  half.Add({{0, 1}, {0, 1}, {1, 2}, {1, 2}}, 2);
  EXPECT_EQ(half.Places(), kUnknown) << "the SMs of a TPC are in one GPC";
  PlaceFinder beyond(2);
  beyond.Add({{0, 1}, {7, 1}}, 2);
  EXPECT_EQ(beyond.Places(), kUnknown);
}

// Not the same: it cannot be asked now.
TEST(Places, NothingOfAGpuThatDoesNotAnswer) {
  testing::Gpu gpu;
  gpu.places = OnAnH200;
  gpu.hangs = true;
  EXPECT_TRUE(FindPlaces(gpu.Calls(), kSms, std::chrono::milliseconds(1)).empty());
}

}  // namespace
}  // namespace iket::probe
