#include "session/launch_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace iket::session {
namespace {

class LaunchLogTest : public ::testing::Test {
 protected:
  LaunchLogTest() { std::filesystem::remove(path_); }
  ~LaunchLogTest() override { std::filesystem::remove(path_); }

  std::string path_ = ::testing::TempDir() + "iket_launch_log_test_" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

void Fill(LaunchEntry& entry, uint32_t kernel) {
  entry.kernel = kernel;
  entry.context = 2;
  entry.flags = kLaunchCooperative;
  entry.stream = 0x1234567890;
  entry.host_ns = 5'000'000'000 + int64_t{kernel};
  for (uint32_t i = 0; i < 3; ++i) {
    entry.grid[i] = 100 + i;
    entry.block[i] = 200 + i;
    entry.cluster[i] = i;
  }
  entry.dynamic_shared_bytes = 4096;
  entry.state.store(1, std::memory_order_release);
}

TEST_F(LaunchLogTest, KeepsWhatWasWritten) {
  {
    LaunchLog log = LaunchLog::Create(path_).value();
    Fill(*log.Append(), 7);
    LaunchEntry* refused = log.Append();
    Fill(*refused, 8);
    refused->flags = kLaunchCaptured;
    refused->state.store(2, std::memory_order_release);
  }
  const LaunchLog log = LaunchLog::Open(path_).value();
  const auto launches = log.Launches();
  ASSERT_EQ(launches.size(), 2u);
  const capture::Launch expected{.sequence = 0,
                                 .stream = 0x1234567890,
                                 .host_ns = 5'000'000'007,
                                 .kernel = 7,
                                 .context = 2,
                                 .grid = {100, 101, 102},
                                 .block = {200, 201, 202},
                                 .cluster = {0, 1, 2},
                                 .dynamic_shared_bytes = 4096,
                                 .cooperative = true,
                                 .graph = false,
                                 .failed = false};
  EXPECT_EQ(launches[0], expected);
  EXPECT_EQ(launches[1].sequence, 1u);
  EXPECT_TRUE(launches[1].graph);
  EXPECT_FALSE(launches[1].cooperative);
  EXPECT_TRUE(launches[1].failed);
  EXPECT_EQ(log.lost(), 0u);
}

TEST_F(LaunchLogTest, LaunchesOfGraphsAreNumberedWithThoseOfKernels) {
  LaunchLog log = LaunchLog::Create(path_).value();
  EXPECT_EQ(log.next_sequence(), 0u);
  Fill(*log.Append(), 7);
  LaunchEntry* graph = log.Append();
  Fill(*graph, capture::kNoKernel);
  graph->graph = 3;
  graph->flags = kLaunchOfGraph;
  Fill(*log.Append(), 8);
  EXPECT_EQ(log.next_sequence(), 3u);
  const auto launches = LaunchLog::Open(path_).value().Launches();
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[1].sequence, 2u);
  const auto graphs = LaunchLog::Open(path_).value().GraphLaunches();
  ASSERT_EQ(graphs.size(), 1u);
  const capture::GraphLaunch expected{
      .sequence = 1, .stream = 0x1234567890, .host_ns = graph->host_ns, .graph = 3, .context = 2};
  EXPECT_EQ(graphs[0], expected);
}

TEST_F(LaunchLogTest, TakesLaunchesFromManyThreads) {
  constexpr uint32_t kThreads = 4, kEach = 5000;
  LaunchLog log = LaunchLog::Create(path_).value();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&log, t] {
      for (uint32_t i = 0; i < kEach; ++i) Fill(*log.Append(), t * kEach + i);
    });
  }
  for (std::thread& thread : threads) thread.join();

  const auto launches = LaunchLog::Open(path_).value().Launches();
  ASSERT_EQ(launches.size(), kThreads * kEach);
  std::set<uint32_t> kernels;
  std::vector<uint32_t> last(kThreads, 0);
  for (const capture::Launch& launch : launches) {
    kernels.insert(launch.kernel);
    EXPECT_EQ(launch.host_ns, 5'000'000'000 + int64_t{launch.kernel}) << "torn";
    // Each thread's launches are in its order.
    uint32_t& previous = last[launch.kernel / kEach];
    EXPECT_GE(launch.kernel % kEach, previous);
    previous = launch.kernel % kEach;
  }
  EXPECT_EQ(kernels.size(), kThreads * kEach);
}

TEST_F(LaunchLogTest, SkipsWhatItsThreadDidNotFinish) {
  LaunchLog log = LaunchLog::Create(path_).value();
  Fill(*log.Append(), 1);
  log.Append()->kernel = 2;
  Fill(*log.Append(), 3);
  const auto launches = LaunchLog::Open(path_).value().Launches();
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[1].kernel, 3u);
  EXPECT_EQ(launches[1].sequence, 2u) << "the place in the log";
}

TEST_F(LaunchLogTest, CountsWhatDidNotFit) {
  LaunchLog log = LaunchLog::Create(path_).value();
  for (uint32_t i = 0; i < LaunchLog::kCapacity; ++i) ASSERT_NE(log.Append(), nullptr);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(log.Append(), nullptr);
  EXPECT_EQ(LaunchLog::Open(path_).value().lost(), 5u);
}

TEST_F(LaunchLogTest, TakesDiskOnlyForWhatWasWritten) {
  LaunchLog log = LaunchLog::Create(path_).value();
  Fill(*log.Append(), 1);
  struct stat status{};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, (1 << 20) + 8192);
}

TEST_F(LaunchLogTest, RefusesOtherFiles) {
  EXPECT_EQ(LaunchLog::Open(path_).error().kind, ErrorKind::kSystem);
  std::ofstream(path_) << "not a log";
  EXPECT_EQ(LaunchLog::Open(path_).error().kind, ErrorKind::kBadInput);
  // The right size, and nothing else.
  {
    ASSERT_TRUE(LaunchLog::Create(path_));
  }
  std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary) << "notiket!";
  const auto opened = LaunchLog::Open(path_);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("not a launch log of this version"), std::string::npos);
}

TEST_F(LaunchLogTest, ReadsWhatIsLeftOfOneThatWasCut) {
  {
    LaunchLog log = LaunchLog::Create(path_).value();
    for (uint32_t i = 0; i < 100; ++i) Fill(*log.Append(), i);
  }
  std::filesystem::resize_file(path_, 64 + 40 * sizeof(LaunchEntry) + 17);
  const LaunchLog log = LaunchLog::Open(path_).value();
  EXPECT_EQ(log.Launches().size(), 40u);
  EXPECT_EQ(log.lost(), 60u);
  std::filesystem::resize_file(path_, 17);
  EXPECT_FALSE(LaunchLog::Open(path_));
}

// A store to a hole that the disk has no room for would end the program.
TEST_F(LaunchLogTest, StopsWhereTheDiskIsFull) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  LaunchLog log = LaunchLog::Create(path_).value();
  const rlimit tight{3 << 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  uint32_t fitted = 0;
  constexpr uint32_t kLaunches = 5 * LaunchLog::kEntriesAtATime;
  for (uint32_t i = 0; i < kLaunches; ++i) {
    LaunchEntry* entry = log.Append();
    if (entry == nullptr) continue;
    Fill(*entry, i);
    ++fitted;
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(fitted, 3 * LaunchLog::kEntriesAtATime);
  const LaunchLog read = LaunchLog::Open(path_).value();
  EXPECT_EQ(read.Launches().size(), fitted);
  EXPECT_EQ(read.lost(), kLaunches - fitted);
}

TEST_F(LaunchLogTest, SaysWhereItCannotBeMade) {
  const auto log = LaunchLog::Create(path_ + "/missing/log");
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().kind, ErrorKind::kSystem);
  EXPECT_NE(log.error().message.find("/missing/log"), std::string::npos);
}

TEST_F(LaunchLogTest, CanBeMoved) {
  LaunchLog a = LaunchLog::Create(path_).value();
  LaunchLog b = std::move(a);
  Fill(*b.Append(), 1);
  EXPECT_EQ(b.Launches().size(), 1u);
}

}  // namespace
}  // namespace iket::session
