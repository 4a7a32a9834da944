#include "probe/clocks.h"

#include <gtest/gtest.h>

#include <atomic>

#include "probe/kernels.h"
#include "probe/testing_gpu.h"

namespace iket::probe {
namespace {

using std::chrono::milliseconds;

std::optional<capture::ClockExchange> AskOnce(const DriverCalls& calls, milliseconds patience) {
  auto probe = ClockProbe::Make(calls);
  return probe ? probe->Ask(patience) : std::nullopt;
}

TEST(ClockExchange, BracketsTheTimer) {
  testing::Gpu gpu;
  gpu.timer_ahead_ns = 1'234'567'890'123;
  const auto exchange = AskOnce(gpu.Calls(), milliseconds(5000));
  ASSERT_TRUE(exchange);
  const auto at = static_cast<int64_t>(exchange->timer_ns) - gpu.timer_ahead_ns;
  EXPECT_LE(exchange->before_ns, at);
  EXPECT_GE(exchange->after_ns, at);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  EXPECT_LE(exchange->realtime_ns, int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
  EXPECT_GT(exchange->realtime_ns, (int64_t{now.tv_sec} - 60) * 1'000'000'000);
  EXPECT_EQ(gpu.modules, 0);
  EXPECT_EQ(gpu.pages, 0);
  EXPECT_EQ(gpu.streams, 0);
}

// Of all rounds the shortest: here all others take 20 ms and more.
TEST(ClockExchange, KeepsTheShortestRound) {
  testing::Gpu gpu;
  gpu.answers = [](uint32_t round) {
    if (round != 7) std::this_thread::sleep_for(milliseconds(20));
    return true;
  };
  const auto exchange = AskOnce(gpu.Calls(), milliseconds(5000));
  ASSERT_TRUE(exchange);
  EXPECT_LT(exchange->after_ns - exchange->before_ns, 20'000'000);
}

// A GPU that is busy: no exchange, and nothing is given back that the kernel might still write to.
TEST(ClockExchange, LeavesAGpuAloneThatDoesNotAnswer) {
  testing::Gpu gpu;
  std::atomic<bool> held = true;
  gpu.answers = [&](uint32_t round) {
    while (round == 3 && held) std::this_thread::yield();
    return true;
  };
  EXPECT_FALSE(AskOnce(gpu.Calls(), milliseconds(20)));
  EXPECT_EQ(gpu.pages, 1);
  EXPECT_EQ(gpu.modules, 1);
  held = false;
  gpu.Join();  // it ends by itself, and writes into what is still there
}

TEST(ClockExchange, IsRepeatedUntilOneIsNotAnswered) {
  testing::Gpu gpu;
  std::atomic<bool> held = false;
  gpu.answers = [&](uint32_t) {
    while (held) std::this_thread::yield();
    return true;
  };
  auto probe = ClockProbe::Make(gpu.Calls());
  ASSERT_TRUE(probe);
  const auto first = probe->Ask(milliseconds(5000)), second = probe->Ask(milliseconds(5000));
  ASSERT_TRUE(first && second);
  EXPECT_LT(first->timer_ns, second->timer_ns);
  held = true;
  EXPECT_FALSE(probe->Ask(milliseconds(5)));
  held = false;
  gpu.Join();
  EXPECT_FALSE(probe->Ask(milliseconds(5000))) << "its mailbox may be in use";
}

TEST(ClockExchange, TakesNoAnswerForOne) {
  testing::Gpu gpu;
  gpu.answers = [](uint32_t round) { return round < 5; };
  EXPECT_FALSE(AskOnce(gpu.Calls(), milliseconds(20)));
  gpu.Join();
}

TEST(DriverCalls, AllOrNone) {
  testing::Gpu gpu;
  EXPECT_TRUE(gpu.Find());
  gpu.missing = "cuLaunchKernelEx";
  EXPECT_FALSE(gpu.Find());
}

TEST(Kernels, AreThere) {
  const std::span<const std::byte> image = KernelImage();
  ASSERT_GT(image.size(), 16u);
  uint32_t magic = 0;
  std::memcpy(&magic, image.data(), sizeof magic);
  EXPECT_EQ(magic, 0xba55ed50u) << "a fatbin";
}

}  // namespace
}  // namespace iket::probe
