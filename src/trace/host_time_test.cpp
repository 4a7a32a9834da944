#include "trace/host_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  const Model model = WithLaunches({{10'000, 5'000, 6'000}, {20'000, 13'000, 14'000}});
  EXPECT_EQ(HostOrigin(model), 7'000);
  EXPECT_THAT(Placed(model, {21'000, 7'000, 2'000}), ElementsAre(-5'000, 0, 14'000));
}

TEST(HostTime, IsNotKnownWithoutALaunchOfTheHostsLog) {
  Model model = WithLaunches({{0, 5, 6}, {10, 5, 6}});
  model.launches[1].warps_begun = 0;
  EXPECT_EQ(HostOrigin(model), std::nullopt);
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

}  // namespace
}  // namespace iket::trace
