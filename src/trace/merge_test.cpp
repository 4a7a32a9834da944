#include "trace/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/decode.h"
#include "trace/synthetic.h"

namespace iket::trace {
namespace {

using testing::HasSubstr;

// A few launches of a kernel whose warps mark and nest.
Model Recorded(uint32_t launches, const char* kernel_name) {
  SyntheticGpu gpu;
  const uint32_t kernel = gpu.AddKernel(kernel_name);
  const uint32_t mark = gpu.Declare(capture::EventKind::kMark, "mark");
  const uint32_t push = gpu.Declare(capture::EventKind::kPush, "range");
  const uint32_t pop = gpu.Declare(capture::EventKind::kPop, "");
  for (uint32_t i = 0; i < launches; ++i) {
    const uint32_t grid = gpu.Launch(kernel, {2, 1, 1}, {64, 1, 1});
    for (uint32_t warp = 0; warp < 4; ++warp) {
      const auto id = gpu.Begin(grid, warp / 2, warp % 2, warp / 2, warp % 2);
      for (const uint32_t event : {mark, push, pop}) {
        gpu.Pass(50 + 7 * warp);
        gpu.Event(id, event);
      }
      gpu.Pass(30);
      gpu.Exit(id);
    }
    gpu.Pass(10'000);
  }
  Decoder decoder(gpu.facts());
  decoder.Add(gpu.Read());
  return decoder.Finish().value();
}

HostClock Clock(double host_ns, double pace) {
  return {.knots = {{.ns = 0, .host_ns = host_ns, .error_ns = 1000},
                    {.ns = 1e9, .host_ns = host_ns + 1e9 * pace, .error_ns = 1000}},
          .realtime_ahead_ns = 1'700'000'000'000'000'000};
}

Named Capture(const char* name, double host_ns, double pace, uint32_t launches) {
  Named named{.name = name, .model = Recorded(launches, name)};
  named.model.host_clock = Clock(host_ns, pace);
  named.model.process_id = launches;
  return named;
}

// Whatever each said of the host's time of its events, the merged model says, too.
TEST(Merge, KeepsTheHostsTimeOfEverything) {
  const Named a = Capture("a", 5e12, 1 + 1e-5, 3), b = Capture("b", 5e12 + 70'000, 1 - 3e-5, 5);
  const auto merged = Merge({a, b});
  ASSERT_TRUE(merged) << merged.error().message;
  ASSERT_EQ(merged->launches.size(), 8u);
  ASSERT_EQ(merged->events.size(), a.model.events.size() + b.model.events.size());
  EXPECT_EQ(merged->counters.records_kept,
            a.model.counters.records_kept + b.model.counters.records_kept);
  uint32_t seen[2] = {};
  double before = 0;
  uint32_t next_warp = 0;
  for (const Launch& launch : merged->launches) {
    EXPECT_GE(launch.first_ns, before);
    before = launch.first_ns;
    const bool is_b = merged->String(merged->kernels[launch.kernel].mangled) == "b";
    const Model& own = is_b ? b.model : a.model;
    const Launch& from = own.launches[seen[is_b]++];
    EXPECT_EQ(launch.first_warp, next_warp) << "rows in the order of launches";
    next_warp += launch.warp_count;
    EXPECT_THAT(merged->String(merged->devices[launch.device].name),
                HasSubstr(is_b ? "of process 5" : "of process 3"));
    ASSERT_EQ(launch.warp_count, from.warp_count);
    for (uint32_t i = 0; i < launch.warp_count; ++i) {
      const uint32_t warp = launch.first_warp + i, old = from.first_warp + i;
      ASSERT_EQ(merged->warps.event_count[warp], own.warps.event_count[old]);
      ASSERT_EQ(merged->warps.range_count[warp], 1u);
      const auto host = [](const Model& model, uint32_t of, uint64_t cycles) {
        return model.host_clock->ToHost(model.NsOfWarp(of, cycles));
      };
      for (uint32_t k = 0; k < own.warps.event_count[old]; ++k) {
        const uint32_t event = merged->warps.first_event[warp] + k;
        const uint32_t was = own.warps.first_event[old] + k;
        EXPECT_NEAR(host(*merged, warp, merged->events.cycles[event]),
                    host(own, old, own.events.cycles[was]), 0.01);
        EXPECT_EQ(merged->DeclarationName(merged->events.declaration[event]),
                  own.DeclarationName(own.events.declaration[was]));
        EXPECT_EQ(merged->events.warp[event], warp);
      }
      const uint32_t range = merged->warps.first_range[warp];
      EXPECT_EQ(merged->ranges.warp[range], warp);
      EXPECT_EQ(merged->DeclarationName(merged->ranges.declaration[range]), "range");
      EXPECT_EQ(merged->ranges.begin_event[range] - merged->warps.first_event[warp],
                own.ranges.begin_event[own.warps.first_range[old]] - own.warps.first_event[old]);
    }
  }
  EXPECT_EQ(merged->host_clock->knots.front().error_ns, 2000) << "both may be wrong";
}

// The axis begins with the earliest, whichever that is.
TEST(Merge, NothingIsBeforeTheBeginning) {
  const auto merged = Merge({Capture("late", 9e12, 1, 1), Capture("early", 8e12, 1, 2)});
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->String(merged->kernels[merged->launches[0].kernel].mangled), "early");
  EXPECT_GE(merged->launches[0].first_ns, 0);
  EXPECT_NEAR(merged->launches[2].first_ns - merged->launches[0].first_ns, 1e12, 1);
  EXPECT_NEAR(merged->host_clock->ToHost(merged->launches[2].first_ns), 9e12, 10);
}

// Another boot, or another host: by the time of day.
TEST(Merge, GoesByTheTimeOfDayWhereHostsDiffer) {
  Named a = Capture("a", 5e12, 1, 1), b = Capture("b", 1e12, 1, 1);
  // b's clock began 4 s less 1 ms later.
  b.model.host_clock->realtime_ahead_ns =
      *a.model.host_clock->realtime_ahead_ns + 3'999'999'000'000;
  const auto merged = Merge({a, b});
  ASSERT_TRUE(merged);
  EXPECT_NEAR(merged->launches[1].first_ns - merged->launches[0].first_ns, 1e6, 1);
  b.model.host_clock->realtime_ahead_ns.reset();
  EXPECT_TRUE(Merge({a, b})) << "one host, as far as is known";
  b.model.strings.push_back("elsewhere");
  b.model.host = static_cast<StringId>(b.model.strings.size() - 1);
  const auto refused = Merge({a, b});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("different hosts"));
}

TEST(Merge, RefusesATimeThatIsNoHosts) {
  Named a = Capture("a", 5e12, 1, 1), b = Capture("b.iketcap", 5e12, 1, 1);
  b.model.host_clock.reset();
  const auto refused = Merge({a, b});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("b.iketcap cannot be put on one axis"));
}

}  // namespace
}  // namespace iket::trace
