#include "trace/statistics.h"

#include <gtest/gtest.h>

#include "trace/decode.h"
#include "trace/synthetic.h"

namespace iket::trace {
namespace {

// A kernel of one warp that ran a hundred times; its range "work" took 100, 200, ... 10,000 ns.
class HundredLaunches {
 public:
  explicit HundredLaunches(uint32_t ring_bytes = 65'536)
      : gpu_({.sms = 1, .ring_bytes = ring_bytes, .ghz = 2.0}) {
    using Kind = capture::EventKind;
    const uint32_t kernel = gpu_.AddKernel("k");
    const uint32_t work = gpu_.Declare(Kind::kRangeBegin, "work");
    const uint32_t end = gpu_.Declare(Kind::kRangeEnd, "work");
    const uint32_t mark = gpu_.Declare(Kind::kMark, "here");
    for (int i = 1; i <= 100; ++i) {
      const uint32_t grid = gpu_.Launch(kernel, {1, 1, 1}, {32, 1, 1});
      gpu_.Pass(1000);
      const auto warp = gpu_.Begin(grid, 0, 0, 0, 0);
      gpu_.Pass(50);
      gpu_.Event(warp, work);
      gpu_.Pass(100.0 * i);
      gpu_.Event(warp, end);
      gpu_.Event(warp, mark);
      gpu_.Exit(warp);
    }
  }
  Model Decode() {
    Decoder decoder(gpu_.facts());
    decoder.Add(gpu_.Read());
    return std::move(*decoder.Finish());
  }

 private:
  SyntheticGpu gpu_;
};

TEST(Statistics, DescribeTheDurationsOfANameInCyclesAndNs) {
  const Statistics statistics = Summarize(HundredLaunches().Decode());
  EXPECT_EQ(statistics.launches_used, 100u);
  ASSERT_EQ(statistics.ranges.size(), 1u);
  const RangeStatistics& work = statistics.ranges[0];
  EXPECT_EQ(work.count, 100u);
  EXPECT_NEAR(work.cycles.min, 200, 1);
  EXPECT_NEAR(work.cycles.median, 10'000, 1);
  EXPECT_NEAR(work.cycles.p99, 19'800, 1);
  EXPECT_NEAR(work.cycles.max, 20'000, 1);
  EXPECT_NEAR(work.cycles.mean, 10'100, 1);
  EXPECT_NEAR(work.ns.total, 505'000, 100);
  EXPECT_NEAR(work.ns.median, 5'000, 2);
  ASSERT_EQ(statistics.marks.size(), 1u);
  EXPECT_EQ(statistics.marks[0].count, 100u);
}

TEST(Statistics, LeaveOutLaunchesThatAreNotCompleteUnlessAsked) {
  // A ring of 256 records holds 51 launches of 5 records, and one record of a 52nd.
  const Model model = HundredLaunches(4096).Decode();
  const LaunchTotals totals = CountLaunches(model);
  EXPECT_EQ(totals.complete, 51u);
  EXPECT_EQ(model.counters.launches_unseen, 49u);
  EXPECT_EQ(model.counters.records_lost, 500u - 256);
  const Statistics complete = Summarize(model);
  EXPECT_EQ(complete.launches_used, 51u);
  EXPECT_EQ(complete.ranges[0].count, 51u);
  EXPECT_EQ(complete.marks[0].count, 51u);
  const Statistics all = Summarize(model, {.all_launches = true});
  EXPECT_EQ(all.launches_left_out, 0u);
  EXPECT_EQ(all.ranges[0].count, 51u);
  EXPECT_EQ(all.marks[0].count + all.marks[1].count, 52u);
}

TEST(Statistics, OfNothingAreEmpty) {
  const Statistics statistics = Summarize(Model{});
  EXPECT_TRUE(statistics.ranges.empty());
  EXPECT_TRUE(statistics.marks.empty());
}

}  // namespace
}  // namespace iket::trace
