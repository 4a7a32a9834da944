#include "trace/host_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace iket::trace {
namespace {

constexpr uint64_t kOrigin = 1'796'121'590'940'451'299u;  // of %globaltimer: some time in 2026

capture::ClockExchange Exchange(int64_t host_ns, double timer_ns, int64_t width = 2600) {
  return {.context = 0,
          .timer_ns = kOrigin + static_cast<uint64_t>(std::llround(timer_ns)),
          .before_ns = host_ns - width / 2,
          .after_ns = host_ns + width / 2,
          .realtime_ns = host_ns + 1'700'000'000'000'000'000};
}

TEST(HostClockOf, OneExchangeKnowsTheOffsetAlone) {
  const std::vector exchanges{Exchange(9'000'000'000, 5'000)};
  const auto clock = HostClockOf(exchanges, kOrigin);
  ASSERT_TRUE(clock);
  EXPECT_EQ(clock->ToHost(5'000), 9e9);
  EXPECT_EQ(clock->ToHost(1'005'000), 9e9 + 1e6);
  EXPECT_EQ(clock->FromHost(9e9 - 5'000), 0);
  EXPECT_EQ(clock->ErrorNs(5'000), 1300);
  EXPECT_EQ(clock->ErrorNs(5'000 + 1e9), 1300 + 1e5) << "100 ppm";
  EXPECT_EQ(clock->realtime_ahead_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(HostClockOf({}, kOrigin), std::nullopt);
}

// A clock that was shifted, drifts, and changes its pace is found again, within what it says.
TEST(HostClockOf, FindsADriftingClockAgain) {
  std::mt19937_64 random(5);
  const auto uniform = [&](double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(random);
  };
  for (int round = 0; round < 200; ++round) {
    const double shift = uniform(-1e12, 1e12), pace = 1 + uniform(-5e-5, 5e-5);
    const auto timer_at = [&](double host_ns) { return shift + (host_ns - 1e13) * pace; };
    std::vector<capture::ClockExchange> exchanges;
    for (double host = 1e13; host < 1e13 + 60e9; host += uniform(5e9, 20e9)) {
      const double width = uniform(1'000, 5'000);
      // Where in the bracket the timer was read, nobody knows.
      const double read = host + uniform(-width / 2, width / 2);
      exchanges.push_back(Exchange(std::llround(host), timer_at(read), std::llround(width)));
    }
    std::ranges::shuffle(exchanges, random);
    const auto clock = HostClockOf(exchanges, kOrigin);
    ASSERT_TRUE(clock);
    ASSERT_EQ(clock->knots.size(), exchanges.size());
    for (int i = 0; i < 50; ++i) {
      const double host = uniform(1e13 - 1e9, 1e13 + 61e9);
      const double ns = timer_at(host);
      EXPECT_LE(std::abs(clock->ToHost(ns) - host), clock->ErrorNs(ns) + 2) << host;
      EXPECT_NEAR(clock->FromHost(clock->ToHost(ns)), ns, 0.01);
    }
  }
}

TEST(HostClockOf, LeavesOutWhatCannotBe) {
  const capture::ClockExchange good = Exchange(1'000'000'000'000, 0);
  const capture::ClockExchange next = Exchange(1'002'000'000'000, 2e9 + 20'000);  // 10 ppm
  for (capture::ClockExchange bad :
       {Exchange(1'001'000'000'000, 1e9, 3'000'000'000), Exchange(1'001'000'000'000, -1e9),
        Exchange(1'001'000'000'000, 5e9), Exchange(1'001'000'000'000, 0.9e9)}) {
    const std::vector exchanges{good, bad, next};
    const auto clock = HostClockOf(exchanges, kOrigin);
    ASSERT_TRUE(clock);
    EXPECT_EQ(clock->knots.size(), 2u);
    EXPECT_EQ(clock->ToHost(2e9 + 20'000), 1.002e12);
  }
  capture::ClockExchange reversed = good;
  std::swap(reversed.before_ns, reversed.after_ns);
  capture::ClockExchange far = good;
  far.before_ns = std::numeric_limits<int64_t>::min();
  far.after_ns = std::numeric_limits<int64_t>::max();
  const std::vector none{reversed, far};
  EXPECT_EQ(HostClockOf(none, kOrigin), std::nullopt);
}

// A moment that is known twice: nothing is made of the difference of two that are not exact.
TEST(HostClockOf, OfTwoAtOnceTheMoreExactOne) {
  const std::vector exchanges{Exchange(1'000'000'000, 0, 8000),
                              Exchange(1'000'001'000, 1200, 2000)};
  const auto clock = HostClockOf(exchanges, kOrigin);
  ASSERT_TRUE(clock);
  ASSERT_EQ(clock->knots.size(), 1u);
  EXPECT_EQ(clock->knots.front().error_ns, 1000);
}

}  // namespace
}  // namespace iket::trace
