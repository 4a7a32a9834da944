#include "trace/uncertainty.h"

#include <gtest/gtest.h>

#include <limits>

namespace iket::trace {
namespace {

SmClock Clock(double ghz, double max_ns, double rms_ns) {
  return {.knots = {{.cycles = 0, .ns = 0, .slope = 1 / ghz},
                    {.cycles = 10'000'000, .ns = 1e7 / ghz, .slope = 1 / ghz}},
          .pairs = 2,
          .residual_max_ns = max_ns,
          .residual_rms_ns = rms_ns};
}

Launch Ended(double last_ns, uint32_t warps = 4, uint32_t ended = 4) {
  return {.warp_count = warps, .warps_ended = ended, .last_ns = last_ns};
}

TEST(Uncertainty, IsThatOfTheWorstSm) {
  Model model;
  model.clocks = {Clock(2, 10, 3), Clock(1.25, 33, 11), SmClock{}};
  const Uncertainty it = UncertaintyOf(model);
  EXPECT_NEAR(it.cycle_ns, 0.8, 1e-6);
  EXPECT_EQ(it.gpu_max_ns, 33);
  EXPECT_EQ(it.gpu_rms_ns, 11);
  EXPECT_EQ(it.timer_step_ns, std::nullopt);
  EXPECT_EQ(it.host_ns, std::nullopt);
  EXPECT_EQ(it.Sentence(), "a cycle (0.8 ns) within an SM, 33 ns (rms 11 ns) among SMs");
}

TEST(Uncertainty, OfTheHostsClockIsTheWorstFromBeginningToEnd) {
  Model model;
  model.clocks = {Clock(1.98, 12.1, 5)};
  model.launches = {Ended(5000), Ended(2e9)};
  model.host_clock = {{.knots = {{.ns = -1e6, .host_ns = 1e12, .error_ns = 1100},
                                 {.ns = 3e9, .host_ns = 1e12 + 3.001e9, .error_ns = 1300}}}};
  EXPECT_EQ(UncertaintyOf(model).host_ns, 1300);
  EXPECT_EQ(UncertaintyOf(model).Sentence(),
            "a cycle (0.51 ns) within an SM, 13 ns (rms 5 ns) among SMs, 1.3 us to the host's "
            "clock");
  // Exchanged once, at the beginning: two seconds at 100 ppm.
  model.host_clock->knots.pop_back();
  EXPECT_NEAR(*UncertaintyOf(model).host_ns, 1100 + 2.001e5, 1);
  model.host_clock->knots.front().error_ns = std::numeric_limits<double>::infinity();
  EXPECT_EQ(UncertaintyOf(model).host_ns, std::nullopt);
}

TEST(Uncertainty, WithoutPairsOfClocksTheTimersStep) {
  const Uncertainty it = UncertaintyOf(Model{});
  EXPECT_EQ(it.timer_step_ns, 32);
  EXPECT_EQ(it.Sentence(), "32 ns everywhere");
}

// No digit says more than is known: never below, and two at most.
TEST(Uncertainty, IsRoundedUp) {
  const auto text = [](double ns) {
    const Uncertainty it{.cycle_ns = 1, .gpu_max_ns = ns};
    const std::string sentence = it.Sentence();
    const size_t from = sentence.find(", ") + 2;
    return sentence.substr(from, sentence.find(" (rms") - from);
  };
  EXPECT_EQ(text(0), "0 ns");
  EXPECT_EQ(text(0.001), "0.001 ns");
  EXPECT_EQ(text(9.91), "10 ns");
  EXPECT_EQ(text(99.1), "100 ns");
  EXPECT_EQ(text(1000), "1 us");
  EXPECT_EQ(text(1001), "1.1 us");
  EXPECT_EQ(text(12'345), "13 us");
  EXPECT_EQ(text(999'000), "1 ms");
  EXPECT_EQ(text(2.01e9), "2.1 s");
  EXPECT_EQ(text(4.2e11), "420 s");
}

}  // namespace
}  // namespace iket::trace
