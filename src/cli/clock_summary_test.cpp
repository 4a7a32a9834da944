#include "cli/clock_summary.h"

#include <gtest/gtest.h>

namespace iket::cli {
namespace {

// An SM that ran at each of these frequencies for so long.
trace::SmClock Clock(const std::vector<std::pair<double, double>>& ghz_and_ns) {
  trace::SmClock clock;
  clock.pairs = 100;
  double ns = 0, cycles = 0;
  for (const auto& [ghz, duration] : ghz_and_ns) {
    clock.knots.push_back({static_cast<uint64_t>(cycles), ns, 1 / ghz});
    ns += duration;
    cycles += ghz * duration;
  }
  clock.knots.push_back({static_cast<uint64_t>(cycles), ns, clock.knots.back().slope});
  return clock;
}

TEST(ClockSummary, OneSpeedIsNoChange) {
  trace::Model model;
  model.clocks = {Clock({{1.98, 1e6}}), trace::SmClock{}, Clock({{1.97, 1e6}})};
  const ClockSummary summary = SummarizeClocks(model);
  EXPECT_EQ(summary.sms, 2u);
  EXPECT_NEAR(summary.ghz_min, 1.97, 1e-9);
  EXPECT_NEAR(summary.ghz_max, 1.98, 1e-9);
  EXPECT_EQ(summary.Change(), "");
  EXPECT_EQ(ClockSummary().Change(), "");
}

TEST(ClockSummary, AChangeIsSaid) {
  trace::Model model;
  model.clocks = {Clock({{1.98, 1e6}, {1.5, 2e5}})};
  EXPECT_EQ(SummarizeClocks(model).Change(),
            "1.50 to 1.98 GHz while kernels ran: compare cycles, not times");
  // Not between moments: too short to know its speed.
  model.clocks = {Clock({{1.98, 1e6}, {1.5, 2e3}, {1.98, 1e6}})};
  EXPECT_EQ(SummarizeClocks(model).Change(), "");
  // Between two processes.
  ClockSummary sum = SummarizeClocks(model);
  model.clocks = {Clock({{1.2, 1e6}})};
  sum.Add(SummarizeClocks(model));
  EXPECT_NE(sum.Change(), "");
}

}  // namespace
}  // namespace iket::cli
