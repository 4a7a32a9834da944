#include "trace/host_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/decode.h"
#include "trace/synthetic.h"

namespace iket::trace {
namespace {

using testing::ElementsAre;

struct Row {
  uint64_t host_ns;
  double first_ns, last_ns;
};

Model WithLaunches(std::initializer_list<Row> rows, bool simulated = false) {
  Model model;
  model.devices.emplace_back().simulated = simulated;
  for (const Row& row : rows) {
    Launch& launch = model.launches.emplace_back();
    launch.host_ns = row.host_ns;
    launch.warps_begun = 1;
    launch.first_ns = row.first_ns;
    launch.last_ns = row.last_ns;
  }
  return model;
}

// The trace times of marks at these host times; -1e9 where there is none.
std::vector<double> Placed(Model model, std::initializer_list<int64_t> host_ns) {
  capture::Capture facts;
  facts.notes.push_back({.severity = capture::Severity::kInfo, .time_ns = 1, .text = "no mark"});
  for (const int64_t time : host_ns) {
    facts.notes.push_back({.severity = capture::Severity::kMarker, .time_ns = time, .text = "m"});
  }
  StringInterner strings(model.strings);
  JoinHost(facts, 0, model);
  PlaceHostMarks(facts, strings, model);
  std::vector<double> placed;
  for (const HostMark& mark : model.host_marks) {
    EXPECT_EQ(model.String(mark.text), "m");
    placed.push_back(mark.ns.value_or(-1e9));
  }
  return placed;
}

TEST(HostTime, IsJoinedByTheLaunchThatBeganSoonest) {
  // 5,000 and 3,000 after the call: what is more than 3,000 was spent in a queue.
  Model model = WithLaunches({{10'000, 5'000, 6'000}, {20'000, 13'000, 14'000}});
  JoinHost({}, 0, model);
  EXPECT_EQ(model.host_clock->ToHost(0), 7'000);
  EXPECT_EQ(model.read_ns, std::nullopt);
  EXPECT_THAT(Placed(model, {21'000, 7'000, 2'000}), ElementsAre(-5'000, 0, 14'000));
}

TEST(HostTime, IsNotKnownWithoutALaunchOfTheHostsLog) {
  Model model = WithLaunches({{0, 5, 6}, {10, 5, 6}});
  model.launches[1].warps_begun = 0;
  JoinHost({}, 20'000, model);
  EXPECT_EQ(model.host_clock, std::nullopt);
  EXPECT_THAT(Placed(model, {3}), ElementsAre(-1e9));
  EXPECT_THAT(Placed(Model(), {}), ElementsAre());
}

TEST(HostTime, OfASoftwareDeviceKeepsTheOrderAmongLaunches) {
  // A launch of 100 ns in the model takes the host a millisecond.
  const Model model =
      WithLaunches({{1'000'000, 0, 100}, {2'000'000, 100, 200}, {3'000'000, 200, 300}}, true);
  EXPECT_THAT(Placed(model, {10, 1'000'030, 1'500'000, 2'000'000, 2'999'999, 9'000'000}),
              ElementsAre(0, 30, 100, 100, 200, 300));
}

// As late at most as the last end is before the reading; a reading before it is at it.
TEST(HostTime, JoinedByLaunchesIsKnownToTheReading) {
  Model model = WithLaunches({{10'000, 5'000, 6'000}, {20'000, 13'000, 14'000}});
  for (Launch& launch : model.launches) launch.warp_count = launch.warps_ended = 4;
  model.launches.push_back({.warp_count = 4, .warps_ended = 3, .last_ns = 50'000});
  JoinHost({}, 1'321'000, model);
  EXPECT_EQ(model.read_ns, 1'314'000);
  EXPECT_EQ(model.host_clock->knots.front().error_ns, 1'300'000);
  JoinHost({}, 8'000, model);
  EXPECT_EQ(model.host_clock->knots.front().error_ns, 0);
}

TEST(HostTime, IsThatOfExchangesWhereTheyAre) {
  Model model = WithLaunches({{10'000, 5'000, 6'000}});
  model.devices.front().index = 2;
  model.origin_ns = 1'000'000;
  capture::Capture facts;
  facts.contexts = {{.index = 0, .device = 2}, {.index = 1, .device = 9}};
  facts.exchanges = {{.context = 1, .timer_ns = 1, .before_ns = 1, .after_ns = 3},
                     {.context = 0, .timer_ns = 1'005'000, .before_ns = 8'000, .after_ns = 9'000}};
  JoinHost(facts, 20'000, model);
  EXPECT_EQ(model.host_clock->ToHost(5'000), 8'500);
  EXPECT_EQ(model.read_ns, 16'500);
  model.devices.front().simulated = true;
  model.host_clock.reset();
  JoinHost(facts, 20'000, model);
  EXPECT_EQ(model.host_clock, std::nullopt) << "a model's time";
}

// Each GPU has a timer: here the second one's is a day ahead and gains 20 us a second.
TEST(HostTime, PutsSeveralGpusOnOneAxis) {
  constexpr uint64_t kDayNs = 86'400'000'000'000;
  constexpr double kGain = 1 + 2e-5;
  const auto recorded = [](SyntheticGpu& gpu) {
    const uint32_t kernel = gpu.AddKernel("k");
    for (int i = 0; i < 3; ++i) {
      const uint32_t grid = gpu.Launch(kernel, {1, 1, 1}, {32, 1, 1});
      const auto warp = gpu.Begin(grid, 0, 0, 0, 0);
      gpu.Pass(5'000);
      gpu.Exit(warp);
      gpu.Pass(200e6);
    }
    return gpu.Read();
  };
  SyntheticGpu first, second({.timer_origin_ns = SyntheticShape().timer_origin_ns + kDayNs});
  capture::RingBlock here = recorded(first), there = recorded(second);
  there.moment.context = 1;
  capture::Capture facts = first.facts();
  facts.devices.push_back(facts.devices.front());
  facts.devices.back().index = 1;
  facts.contexts.push_back(facts.contexts.front());
  facts.contexts.back().index = facts.contexts.back().device = 1;
  const uint64_t origin = SyntheticShape().timer_origin_ns;
  for (const int64_t host_ns : {0, 1'000'000'000}) {
    facts.exchanges.push_back({.context = 0,
                               .timer_ns = origin + static_cast<uint64_t>(host_ns),
                               .before_ns = host_ns,
                               .after_ns = host_ns + 2});
    const auto gained = static_cast<uint64_t>(static_cast<double>(host_ns) * kGain);
    facts.exchanges.push_back({.context = 1,
                               .timer_ns = origin + kDayNs + gained,
                               .before_ns = host_ns,
                               .after_ns = host_ns + 2});
  }
  Decoder decoder(facts);
  decoder.Add(here);
  decoder.Add(there);
  const Model model = decoder.Finish().value();
  std::vector<double> of_first, of_second;
  for (const Launch& launch : model.launches) {
    (launch.device == 0 ? of_first : of_second).push_back(launch.first_ns);
  }
  ASSERT_EQ(of_first.size(), 3u);
  ASSERT_EQ(of_second.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    // What its timer gained was no time.
    const double ns = of_first[i] + static_cast<double>(model.origin_ns - origin);
    EXPECT_NEAR(of_second[i] - of_first[i], ns / kGain - ns, 40) << i;
    EXPECT_NEAR(model.host_clock->ToHost(of_first[i]), ns, 40) << i;
  }
}

}  // namespace
}  // namespace iket::trace
