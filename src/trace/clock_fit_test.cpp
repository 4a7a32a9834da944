#include "trace/clock_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace iket::trace {
namespace {

constexpr double kGhz = 1.98;

// An SM whose two clocks are read now and then.
class TwoClocks {
 public:
  void Pass(double ns) {
    ns_ += ns;
    cycles_ += ns * ghz;
  }
  void Read() {
    pairs.push_back({static_cast<int64_t>(cycles_), static_cast<int64_t>(ns_) / 32 * 32});
  }
  int64_t cycles() const { return static_cast<int64_t>(cycles_); }
  double ns() const { return ns_; }

  double ghz = kGhz;
  std::vector<ClockPair> pairs;

 private:
  double ns_ = 0;
  double cycles_ = 5'000;
};

TEST(ClockFit, ASteadyClockIsOneLineGoodToTheTimersStep) {
  TwoClocks sm;
  for (int i = 0; i < 1000; ++i) {
    sm.Pass(777.7);
    sm.Read();
  }
  const SmClock clock = FitClock(sm.pairs, 32, 1 / kGhz);
  EXPECT_EQ(clock.knots.size(), 1u);
  EXPECT_EQ(clock.pairs, 1000u);
  EXPECT_EQ(clock.outliers, 0u);
  EXPECT_NEAR(clock.GHz(), kGhz, 1e-4);
  EXPECT_LE(clock.residual_max_ns, 17);
  EXPECT_NEAR(clock.NsOf(static_cast<uint64_t>(sm.cycles())), sm.ns(), 17);
}

TEST(ClockFit, ADriftOfAFewMillionthsIsFound) {
  TwoClocks sm;
  sm.ghz = kGhz * (1 + 5e-6);
  for (int i = 0; i < 1000; ++i) {
    sm.Pass(100'000);
    sm.Read();
  }
  const SmClock clock = FitClock(sm.pairs, 32, 1 / kGhz);
  EXPECT_NEAR(clock.GHz() / kGhz, 1 + 5e-6, 1e-7);
}

TEST(ClockFit, AChangeOfFrequencyMakesANewPiece) {
  TwoClocks sm;
  for (double ghz : {1.98, 0.345, 1.755}) {
    sm.ghz = ghz;
    for (int i = 0; i < 200; ++i) {
      sm.Pass(10'000);
      sm.Read();
    }
  }
  const SmClock clock = FitClock(sm.pairs, 32, 1 / kGhz);
  EXPECT_EQ(clock.outliers, 0u);
  EXPECT_LE(clock.residual_max_ns, 228);
  EXPECT_GE(clock.knots.size(), 5u);
  double before = -1;
  for (const ClockPair& pair : sm.pairs) {
    const double ns = clock.NsOf(static_cast<uint64_t>(pair.cycles));
    EXPECT_NEAR(ns, static_cast<double>(pair.ns), 228);
    EXPECT_GE(ns, before);
    before = ns;
  }
}

TEST(ClockFit, TimeNeverFallsWhateverThePairs) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<ClockPair> pairs;
    int64_t cycles = 0, ns = 0;
    for (int i = 0; i < 60; ++i) {
      cycles += static_cast<int64_t>(random() % 10'000);
      ns += static_cast<int64_t>(random() % 10'000) - (random() % 8 == 0 ? 20'000 : 0);
      pairs.push_back({cycles, ns});
    }
    const SmClock clock = FitClock(pairs, 32, 1 / kGhz);
    double before = clock.NsOf(0);
    for (int64_t at = 0; at < cycles + 1000; at += 97) {
      const double now = clock.NsOf(static_cast<uint64_t>(at));
      ASSERT_GE(now, before) << "seed " << seed << " cycle " << at;
      before = now;
    }
  }
}

TEST(ClockFit, APairThatFitsNowhereIsAnOutlier) {
  TwoClocks sm;
  for (int i = 0; i < 100; ++i) {
    sm.Pass(5'000);
    sm.Read();
  }
  sm.pairs[50].ns += 2'000'000;  // the warp was taken off the SM between the two reads
  const SmClock clock = FitClock(sm.pairs, 32, 1 / kGhz);
  EXPECT_EQ(clock.outliers, 1u);
  EXPECT_EQ(clock.pairs, 99u);
  EXPECT_LE(clock.residual_max_ns, 17);
}

// Of an H200, around two begins that were alone for 0.7 and 1.5 s, and 4 us off the line.
TEST(ClockFit, WhatStandsAloneInASilenceIsNoOutlier) {
  const std::vector<ClockPair> pairs = {
      {4499554655, 2205113824}, {4499554657, 2205113824}, {4516266485, 2213554176},
      {4516266498, 2213554176}, {5859038018, 2891724384}, {5859038041, 2891724384},
      {8835998509, 4395258848}, {8835998558, 4395258880}, {8836003136, 4395261184},
      {8836003179, 4395261216}, {9025609823, 4491023424}, {9025609831, 4491023424}};
  const SmClock clock = FitClock(pairs, 32, 1 / 1.979975);
  EXPECT_EQ(clock.outliers, 0u);
  EXPECT_LE(clock.residual_max_ns, 32);
  for (const ClockPair& pair : pairs) {
    EXPECT_NEAR(clock.NsOf(static_cast<uint64_t>(pair.cycles)), static_cast<double>(pair.ns), 32);
  }
}

// Readings in bursts, between which the frequency wanders: wherever a burst is, the clock is right.
TEST(ClockFit, BurstsOfAnUnsteadyClockAreAllRight) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    const auto uniform = [&](double from, double to) {
      return std::uniform_real_distribution<double>(from, to)(random);
    };
    TwoClocks sm;
    std::vector<std::pair<int64_t, double>> truth;
    for (int burst = 0; burst < 40; ++burst) {
      for (int slice = 0; slice < 10; ++slice) {
        sm.ghz = kGhz * (1 + uniform(-1e-4, 1e-4));
        sm.Pass(std::pow(10.0, uniform(2, 7.5)));
      }
      for (uint64_t reading = random() % 6 + 1; reading > 0; --reading) {
        sm.Read();
        truth.emplace_back(sm.cycles(), sm.ns());
        sm.Pass(uniform(0, 20'000));
      }
    }
    const SmClock clock = FitClock(sm.pairs, 32, 1 / kGhz);
    ASSERT_EQ(clock.outliers, 0u) << "seed " << seed;
    for (const auto& [cycles, ns] : truth) {
      ASSERT_NEAR(clock.NsOf(static_cast<uint64_t>(cycles)), ns, 250) << "seed " << seed;
    }
  }
}

TEST(ClockFit, AReadingAmongOthersThatIsOffIsLeftOut) {
  TwoClocks sm;
  for (int burst = 0; burst < 20; ++burst) {
    sm.Pass(50'000'000);
    for (int i = 0; i < 10; ++i) {
      sm.Pass(3'000);
      sm.Read();
    }
    sm.pairs[sm.pairs.size() - 5].ns += 1'500;
  }
  const SmClock clock = FitClock(sm.pairs, 32, 1 / kGhz);
  EXPECT_EQ(clock.outliers, 20u);
  EXPECT_EQ(clock.pairs, 180u);
  EXPECT_LE(clock.residual_max_ns, 33);
}

// Two kernels at a fifth of the frequency that the SM has otherwise, too short to show it well.
TEST(ClockFit, APieceThatIsShortKeepsASlopeThatIsPlainlyAnother) {
  TwoClocks sm;
  sm.ghz = 0.4;
  for (int i = 0; i < 20; ++i) {
    sm.Pass(10'000);
    sm.Read();
  }
  const SmClock clock = FitClock(sm.pairs, 32, 1 / kGhz);
  EXPECT_EQ(clock.outliers, 0u);
  EXPECT_LE(clock.residual_max_ns, 33);
}

TEST(ClockFit, AFewCyclesApartSayNothingOfTheFrequency) {
  const std::vector<ClockPair> pairs = {{1000, 0}, {1010, 0}, {1050, 32}};
  const SmClock clock = FitClock(pairs, 32, 0.5);
  ASSERT_EQ(clock.knots.size(), 1u);
  EXPECT_EQ(clock.knots[0].slope, 0.5);
}

TEST(ClockFit, WithoutPairsThereIsNoTime) {
  EXPECT_TRUE(FitClock({}, 32, 0.5).knots.empty());
  EXPECT_EQ(SmClock{}.NsOf(123), 0);
}

TEST(CommonSlope, ManyShortBaselinesAgreeOnOneSlope) {
  std::mt19937_64 random(1);
  CommonSlope common;
  for (int sm = 0; sm < 132; ++sm) {
    TwoClocks clocks;
    clocks.Pass(static_cast<double>(random() % 1000));
    for (int i = 0; i < 20; ++i) {
      clocks.Pass(static_cast<double>(random() % 10'000));
      clocks.Read();
    }
    common.Add(clocks.pairs);
  }
  EXPECT_NEAR(common.Get(0) * kGhz, 1, 1e-4);
  EXPECT_EQ(CommonSlope().Get(0.7), 0.7);
}

TEST(ClockUnwrapper, FollowsAClockThroughManyWraps) {
  TwoClocks sm;
  ClockUnwrapper unwrapper(kGhz);
  int64_t first = 0;
  for (int i = 0; i < 100; ++i) {
    sm.Pass(900e6);  // 0.9 s: a wrap is missed by nobody who knows the frequency to a half
    const int64_t cycles =
        unwrapper.Unwrap(static_cast<uint32_t>(sm.cycles()), static_cast<uint64_t>(sm.ns()));
    unwrapper.Anchor(cycles, static_cast<uint64_t>(sm.ns()));
    if (i == 0) first = sm.cycles() - cycles;
    ASSERT_EQ(sm.cycles() - cycles, first) << i;
  }
  EXPECT_FALSE(unwrapper.wrap_gap());
}

TEST(ClockUnwrapper, SaysWhenASilenceMayHideAWrap) {
  ClockUnwrapper unwrapper(kGhz);
  unwrapper.Anchor(0, 0);
  unwrapper.Anchor(4'000'000'000, 2'020'202'020);
  EXPECT_TRUE(unwrapper.wrap_gap());
}

TEST(TimerStep, IsTheLargestPowerOfTwoInAllValues) {
  EXPECT_EQ(TimerStep(std::vector<uint64_t>{96, 64, 160}), 32);
  EXPECT_EQ(TimerStep(std::vector<uint64_t>{1024, 4096}), 1024);
  EXPECT_EQ(TimerStep(std::vector<uint64_t>{7}), 1);
  EXPECT_EQ(TimerStep(std::vector<uint64_t>{}), 1 << 20);
}

}  // namespace
}  // namespace iket::trace
