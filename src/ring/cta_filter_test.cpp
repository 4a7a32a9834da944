#include "ring/cta_filter.h"

#include <gtest/gtest.h>

#include <random>

namespace iket::ring {
namespace {

using Size = std::array<uint32_t, 3>;

uint64_t Counted(const CtaFilter& filter, const Size& grid, const Size& cluster) {
  uint64_t count = 0;
  for (uint32_t z = 0; z < grid[2]; ++z) {
    for (uint32_t y = 0; y < grid[1]; ++y) {
      for (uint32_t x = 0; x < grid[0]; ++x) {
        count += Passes(filter, {x, y, z}, grid, cluster) ? 1 : 0;
      }
    }
  }
  return count;
}

TEST(CtaFilter, WithoutWishesAllPass) {
  EXPECT_TRUE(CtaFilter{}.passes_all());
  EXPECT_EQ(PassingCtas({}, {7, 5, 3}, {}), 105u);
}

TEST(CtaFilter, Nobody) {
  const CtaFilter filter{.nobody = true, .sms = {{0, 3}}};
  EXPECT_FALSE(filter.passes_all());
  EXPECT_EQ(PassingCtas(filter, {7, 5, 3}, {}), 0u);
  EXPECT_FALSE(Passes(filter, {0, 0, 0}, {1, 1, 1}, {}));
}

TEST(CtaFilter, AClusterIsItsCtas) {
  const CtaFilter filter{.cluster = {{1, 0, 0}}};
  EXPECT_FALSE(filter.passes_all());
  EXPECT_TRUE(Passes(filter, {2, 0, 0}, {8, 1, 1}, {2, 1, 1}));
  EXPECT_FALSE(Passes(filter, {4, 0, 0}, {8, 1, 1}, {2, 1, 1}));
  EXPECT_EQ(PassingCtas(filter, {8, 1, 1}, {2, 1, 1}), 2u);
  EXPECT_EQ(PassingCtas(filter, {8, 1, 1}, {}), 1u) << "a CTA is one where there are none";
  EXPECT_EQ(PassingCtas(filter, {1, 1, 1}, {}), 0u) << "there is no such cluster";
}

TEST(CtaFilter, CountsAreThoseOfAWalkOverTheGrid) {
  std::mt19937 random(7);
  const auto below = [&](uint32_t end) { return static_cast<uint32_t>(random() % end); };
  for (int i = 0; i < 2000; ++i) {
    const Size cluster{1 + below(3), 1 + below(2), 1 + below(2)};
    const Size grid{cluster[0] * (1 + below(5)), cluster[1] * (1 + below(4)),
                    cluster[2] * (1 + below(3))};
    CtaFilter filter{.sample = 1 + below(9)};
    if (below(2) == 0) filter.cluster = {{below(5), below(4), below(3)}};
    EXPECT_EQ(PassingCtas(filter, grid, cluster), Counted(filter, grid, cluster));
  }
}

TEST(CtaFilter, WhatDependsOnTheSmIsNotKnown) {
  EXPECT_EQ(PassingCtas({.sms = {{0, 3}}}, {8, 1, 1}, {}), std::nullopt);
}

TEST(CtaFilter, SizesThatNoGpuHas) {
  const uint32_t most = ~0u;
  EXPECT_EQ(PassingCtas({}, {most, most, most}, {}), std::nullopt);
  EXPECT_EQ(PassingCtas({.sample = 2}, {most, most, 1}, {}), std::nullopt);
  EXPECT_EQ(PassingCtas({.cluster = {{0, 0, 0}}}, {most, most, most}, {most, most, most}),
            std::nullopt);
  EXPECT_EQ(PassingCtas({.cluster = {{most, 0, 0}}}, {most, 1, 1}, {most, 1, 1}), 0u);
}

}  // namespace
}  // namespace iket::ring
