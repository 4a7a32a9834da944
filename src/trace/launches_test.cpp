#include "trace/launches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace iket::trace {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr uint32_t kGemm = 0, kReduce = 1, kUnmarked = 2;

// A host that launches in context 0.
class Host {
 public:
  Host() {
    for (uint32_t number : {kGemm, kReduce, kUnmarked}) {
      facts_.kernels.push_back({.index = number,
                                .state = number == kUnmarked ? capture::KernelState::kUnmarked
                                                             : capture::KernelState::kPatched});
    }
  }
  Host& Launches(uint32_t kernel, int times = 1) {
    for (int i = 0; i < times; ++i) {
      facts_.launches.push_back({.sequence = facts_.launches.size(),
                                 .kernel = kernel,
                                 .context = 0,
                                 .grid = {grid, 1, 1},
                                 .block = {128, 1, 1}});
    }
    return *this;
  }
  Host& Captures(uint32_t kernel) {
    Launches(kernel);
    facts_.launches.back().graph = true;
    return *this;
  }
  Host& Fails(uint32_t kernel) {
    Launches(kernel);
    facts_.launches.back().failed = true;
    return *this;
  }
  Host& OnStream(uint64_t stream) {  // the last one
    facts_.launches.back().stream = stream;
    return *this;
  }
  LaunchLog Log() const { return LaunchLog(facts_, RunLog(facts_)); }

  uint32_t grid = 10;

 private:
  capture::Capture facts_;
};

Grid Seen(uint32_t grid_id, uint32_t kernel) { return {0, grid_id, kernel}; }

TEST(Launches, WhereNoneHasEndedTheFirstRuns) {
  Host host;
  host.Launches(kGemm).Launches(kReduce).Launches(kGemm);
  const std::vector<Grid> one = {Seen(5, kNoRow)};
  LaunchLog log = host.Log();
  EXPECT_THAT(log.Match(one), ElementsAre(kNoRow));
  log.NoneEnded(0);
  EXPECT_THAT(log.Match(one), ElementsAre(0u));
  EXPECT_THAT(log.Match(std::vector<Grid>{Seen(5, kReduce)}), ElementsAre(1u))
      << "as the kernel's only one";
}

TEST(Launches, WhereNoneHasEndedASecondStreamMayHaveBegunFirst) {
  Host host;
  host.Launches(kGemm).Launches(kReduce).OnStream(7);
  LaunchLog log = host.Log();
  log.NoneEnded(0);
  EXPECT_THAT(log.Match(std::vector<Grid>{Seen(5, kNoRow)}), ElementsAre(kNoRow));
}

TEST(Launches, InOrderWhenEveryLaunchIsSeen) {
  Host host;
  host.Launches(kGemm).Launches(kReduce).Launches(kGemm);
  const std::vector<Grid> grids = {Seen(5, kGemm), Seen(6, kReduce), Seen(9, kGemm)};
  EXPECT_THAT(host.Log().Match(grids), ElementsAre(0u, 1u, 2u));
}

TEST(Launches, AWarpThatLostItsBeginFindsItsKernelByOrder) {
  Host host;
  host.Launches(kGemm).Launches(kReduce);
  const std::vector<Grid> grids = {Seen(5, kNoRow), Seen(6, kReduce)};
  EXPECT_THAT(host.Log().Match(grids), ElementsAre(0u, 1u));
}

TEST(Launches, FailedOnesAndUnmarkedKernelsLeaveNoRecords) {
  Host host;
  host.Launches(kUnmarked).Fails(kGemm).Launches(kGemm);
  const LaunchLog log = host.Log();
  EXPECT_THAT(log.Match(std::vector<Grid>{Seen(3, kGemm)}), ElementsAre(2u));
  EXPECT_EQ(log.expected(), 1u);
}

TEST(Launches, ByTheDifferenceThatAnotherKernelShows) {
  // All launches of gemm but the last two were overwritten; reduce ran once, in their midst.
  Host host;
  host.Launches(kGemm, 4).Launches(kReduce).Launches(kGemm, 4);
  const std::vector<Grid> grids = {Seen(104, kReduce), Seen(106, kGemm), Seen(108, kGemm)};
  EXPECT_THAT(host.Log().Match(grids), ElementsAre(4u, 6u, 8u));
}

TEST(Launches, TheNewestOnesWhenOnlyTheOldestAreMissing) {
  Host host;
  host.Launches(kGemm, 6);
  const std::vector<Grid> grids = {Seen(53, kGemm), Seen(54, kGemm), Seen(55, kGemm)};
  EXPECT_THAT(host.Log().Match(grids), ElementsAre(3u, 4u, 5u));
}

TEST(Launches, NotMatchedWhereItWouldBeAGuess) {
  Host host;
  host.Launches(kGemm, 6);
  // One grid may be any of the six; a gap in %gridid that the log does not have fits none.
  EXPECT_THAT(host.Log().Match(std::vector<Grid>{Seen(53, kGemm)}), Each(kNoRow));
  EXPECT_THAT(host.Log().Match(std::vector<Grid>{Seen(53, kGemm), Seen(57, kGemm)}), Each(kNoRow));
  // More grids than launches: a graph ran several times.
  host = Host();
  host.Launches(kGemm);
  EXPECT_THAT(host.Log().Match(std::vector<Grid>{Seen(1, kGemm), Seen(2, kGemm)}), Each(kNoRow));
}

TEST(Launches, NotByCountingWhereAGraphMayHaveRun) {
  Host host;
  host.Captures(kGemm).Launches(kGemm);
  EXPECT_THAT(host.Log().Match(std::vector<Grid>{Seen(1, kGemm)}), Each(kNoRow));
}

TEST(Launches, NeverAgainstTheKernelThatTheRecordsName) {
  Host host;
  host.Launches(kGemm).Launches(kGemm);
  const std::vector<Grid> grids = {Seen(1, kGemm), Seen(2, kReduce)};
  EXPECT_THAT(host.Log().Match(grids), Each(kNoRow));
}

TEST(Launches, OtherContextsHaveLogsOfTheirOwn) {
  Host host;
  host.Launches(kGemm);
  const std::vector<Grid> grids = {{1, 5, kGemm}};
  EXPECT_THAT(host.Log().Match(grids), Each(kNoRow));
}

TEST(Launches, OneShapeServesGraphsToo) {
  Host host;
  host.Captures(kGemm);
  EXPECT_EQ(host.Log().SharedShape(0, kGemm), 0u);
  EXPECT_EQ(host.Log().SharedShape(0, kReduce), kNoRow);
  host.grid = 20;
  host.Launches(kGemm);
  EXPECT_EQ(host.Log().SharedShape(0, kGemm), kNoRow);
}

TEST(Launches, TheOnlyLaunchOwnsAllRecords) {
  Host host;
  host.Launches(kUnmarked).Launches(kGemm);
  EXPECT_EQ(host.Log().OnlyLaunch(0), 1u);
  host.Launches(kReduce);
  EXPECT_EQ(host.Log().OnlyLaunch(0), kNoRow);
  Host captured;
  captured.Launches(kGemm).Captures(kReduce);
  EXPECT_EQ(captured.Log().OnlyLaunch(0), kNoRow);
}

}  // namespace
}  // namespace iket::trace
