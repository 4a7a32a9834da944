#include "cli/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "capture/writer.h"
#include "trace/synthetic.h"

namespace iket::cli {
namespace {

using capture::EventKind;
using testing::HasSubstr;
using testing::Not;
using trace::SyntheticGpu;

// One launch of one warp with six ranges, the n-th of n * 100 us, on a GPU of paper.
class SummaryTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + fmt::format("iket_summary_{}.iketcap", getpid());
    const uint32_t kernel = gpu_.AddKernel("gemm");
    const uint32_t pop = gpu_.Declare(EventKind::kPop, "");
    const uint32_t grid = gpu_.Launch(kernel, {1, 1, 1}, {32, 1, 1});
    const auto warp = gpu_.Begin(grid, 0, 0, 0, 0);
    for (int i = 1; i <= 6; ++i) {
      gpu_.Event(warp, gpu_.Declare(EventKind::kPush, fmt::format("range{}", i)));
      gpu_.Pass(100'000 * i);
      gpu_.Event(warp, pop);
    }
    gpu_.Exit(warp);
    gpu_.facts().contexts[0].device_memory_bytes = 276'824'064;
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Summary Sum() {
    auto writer = capture::Writer::Create(path_);
    EXPECT_TRUE(writer && gpu_.Write(*writer) &&
                writer->Append(std::span<const capture::Note>(gpu_.facts().notes)) &&
                writer->Finish());
    const auto loaded = Load(path_);
    EXPECT_TRUE(loaded) << loaded.error().message;
    Summary summary;
    summary.Add(*loaded);
    summary.AddFile("out/iket_pid_0x1.iketcap", 1234);
    return summary;
  }

  SyntheticGpu gpu_;
  std::string path_;
};

TEST_F(SummaryTest, IsAFewAlignedLines) {
  EXPECT_EQ(Sum().Text(),
            "  device          Paper GPU\n"
            "  kernels         1 traced, 0 refused\n"
            "  launches        1: 1 complete, 0 partial; 1 warp\n"
            "  events          12 kept, 0 lost (0 %)\n"
            "  longest ranges  range6  600 us  1 time\n"
            "                  range5  500 us  1 time\n"
            "                  range4  400 us  1 time\n"
            "                  range3  300 us  1 time\n"
            "                  range2  200 us  1 time\n"
            "  device memory   277 MB\n"
            "  files           out/iket_pid_0x1.iketcap (1.23 kB)\n");
}

TEST_F(SummaryTest, WhatNobodyClosedIsStillOpenAndHasNoLength) {
  const auto warp = gpu_.Begin(gpu_.Launch(0, {1, 1, 1}, {32, 1, 1}), 0, 1, 0, 0);
  gpu_.Event(warp, gpu_.Declare(EventKind::kPush, "stuck"));
  gpu_.Pass(1000);
  gpu_.Exit(warp);
  const Summary summary = Sum();
  EXPECT_THAT(summary.Text(), HasSubstr("\n  still open      stuck  1 time\n"));
  EXPECT_THAT(summary.Text(), Not(HasSubstr("0.00 ns")));
  EXPECT_THAT(summary.Json(), HasSubstr(R"("open_ranges":[{"name":"stuck","n":1}])"));
}

TEST_F(SummaryTest, RefusalsSayWhy) {
  gpu_.AddKernel("bad");
  capture::Kernel& bad = gpu_.facts().kernels.back();
  bad.state = capture::KernelState::kRefused;
  bad.refusal = "names UR2\nat 0x40";
  gpu_.facts().notes.push_back({.severity = capture::Severity::kRefusal,
                                .time_ns = 1,
                                .text = "PTX only: build with -arch=sm_90 (or add it)"});
  const std::string text = Sum().Text();
  EXPECT_THAT(text, HasSubstr("  kernels         1 traced, 2 refused\n"));
  EXPECT_THAT(text, HasSubstr("\n  refused         bad: names UR2?at 0x40\n"));
  EXPECT_THAT(text,
              HasSubstr("\n  refused         PTX only: build with -arch=sm_90 (or add it)\n"));
}

// Leaves out the events of which `is_left_out(name)`, as --range-filter does.
template <typename IsLeftOut>
void LeaveOut(SyntheticGpu& gpu, const IsLeftOut& is_left_out) {
  for (auto& declaration : gpu.facts().declarations) {
    declaration.left_out = declaration.kind != EventKind::kPop && is_left_out(declaration.name);
  }
}

TEST_F(SummaryTest, WhatIsLeftOutOfEventsIsSaid) {
  LeaveOut(gpu_, [](const std::string& name) { return name != "range2" && name != "range5"; });
  gpu_.facts().kernels[0].sites = 12;
  gpu_.facts().kernels[0].sites_left_out = 3;
  const Summary summary = Sum();
  EXPECT_THAT(summary.Text(), HasSubstr("  events          4 kept, 0 lost (0 %)\n"
                                        "  only            2 of 6 names; 3 of 12 sites stay as "
                                        "they were\n"
                                        "  longest ranges  range5  500 us  1 time\n"
                                        "                  range2  200 us  1 time\n"
                                        "  device memory"));
  EXPECT_THAT(summary.Json(), HasSubstr(R"("sites":12,"sites_left_out":3,"names_left_out":[)"
                                        R"("range1","range3","range4","range6"])"));
  EXPECT_EQ(summary.WhyNoEvents({.events = "[25]"}), "");
}

TEST_F(SummaryTest, ANameThatNoEventHasIsSaidWithThoseThatThereAre) {
  for (int i = 7; i <= 12; ++i) gpu_.Declare(EventKind::kMark, fmt::format("mark{}", i));
  LeaveOut(gpu_, [](const std::string&) { return true; });
  const Summary summary = Sum();
  EXPECT_EQ(summary.WhyNoEvents({.events = "mma"}),
            "--range-filter 'mma' is found in no name, category, group or lane of a mark or range; "
            "there are mark10, mark11, "
            "mark12, mark7, mark8, mark9, range1, range2, range3, range4 and 2 more");
  EXPECT_EQ(summary.WhyNoEvents({}), "") << "nobody asked";
  EXPECT_EQ(summary.WhyNothing({.events = "mma"}), "") << "there are warps";
}

TEST_F(SummaryTest, JsonHoldsTheSameNumbers) {
  const std::string json = Sum().Json();
  EXPECT_THAT(json, HasSubstr(R"("launches":{"all":1,"complete":1,"partial":0,"unknown":0,)"
                              R"("left_out":0,"by_graphs":0,"replays_known":0})"));
  EXPECT_THAT(json, HasSubstr(R"("events_kept":12)"));
  EXPECT_THAT(json, HasSubstr(R"("device_memory_bytes":276824064)"));
}

}  // namespace
}  // namespace iket::cli
