// Limits of a context: the stack of a thread, the heap of malloc, what is kept of printf.
#include <gtest/gtest.h>

#include "sim/print_fifo.h"
#include "sim/testing.h"

namespace iket::sim::testing {
namespace {

uint32_t Deep(uint32_t depth, uint32_t x) {
  return depth == 0 ? x : Deep(depth - 1, x * 3 + depth) + x;
}

// As optimised, and as compiled for a debugger.
class Stack : public ::testing::TestWithParam<const char*> {};

TEST_P(Stack, RecursesAsDeepAsTheLimitSays) {
  Device device;
  const Image& image = device.Load(GetParam());
  const uint64_t out = device.Upload(std::vector<uint32_t>(32));
  const uint32_t depth = 1000;
  auto fault = device.Launch(image, "Descend", {1}, {32}, 0, out, depth);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, Fault::Kind::kStackOverflow);
  EXPECT_EQ(fault->kernel, "Descend");
  EXPECT_NE(fault->message.find("CTA (0, 0, 0), warp 0, lane 0: stack overflow: "),
            std::string::npos)
      << fault->message;
  EXPECT_NE(fault->message.find("the stack of 1024 bytes a thread"), std::string::npos)
      << fault->message;
  device.stack_bytes = 256 << 10;
  EXPECT_RUNS(device.Launch(image, "Descend", {1}, {32}, 0, out, depth));
  const auto result = device.Download<uint32_t>(out, 32);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(result[i], Deep(depth, i));
}

INSTANTIATE_TEST_SUITE_P(Builds, Stack, ::testing::Values("kernels.cubin", "kernels_debug.cubin"),
                         [](const auto& build) {
                           return std::string(build.param) == "kernels.cubin" ? "fast" : "debug";
                         });

TEST(Limits, MallocGivesNullBeyondTheHeap) {
  Device device;
  const Image& image = device.Load("kernels.cubin");
  const uint64_t out = device.Upload(std::vector<uint32_t>(1));
  Heap small(device.space, 1 << 20);
  Heap large(device.space, 4 << 20);
  for (Heap* heap : {&small, &large}) {
    device.heap = heap;
    EXPECT_RUNS(device.Launch(image, "Hoard", {1}, {1}, 0, out, 1u << 18, 100u));
    EXPECT_EQ(device.Download<uint32_t>(out, 1)[0], heap == &small ? 4u : 16u);
  }
  device.heap = nullptr;
  EXPECT_RUNS(device.Launch(image, "Hoard", {1}, {1}, 0, out, 1u, 100u));
  EXPECT_EQ(device.Download<uint32_t>(out, 1)[0], 0u);
}

TEST(Limits, TheLatestPrintsAreKept) {
  std::string printed;
  Device device({.print = [&](std::string_view text) { printed += text; }});
  device.printf_bytes = 10 * PrintFifo::kLeastBytes;
  EXPECT_RUNS(device.Launch(device.Load("kernels.cubin"), "Chatter", {1}, {1}, 0, 10000));
  EXPECT_EQ(device.statistics.printf_overwritten, 9990u);
  EXPECT_EQ(printed.size(), 100u);
  EXPECT_EQ(printed.substr(0, 10), "line 9990\n");
  EXPECT_EQ(printed.substr(90), "line 9999\n");
}

TEST(Limits, TextsTakeTheirLengthAndAtLeastSomething) {
  PrintFifo fifo(100);
  fifo.Add(std::string(60, 'a'));
  fifo.Add("b");
  PrintFifo::Contents contents = fifo.Take();
  EXPECT_EQ(contents.texts.size(), 2u);
  EXPECT_EQ(contents.overwritten, 0u);
  for (int i = 0; i < 3; ++i) fifo.Add("c");
  fifo.Add("d");  // 128 bytes
  contents = fifo.Take();
  EXPECT_EQ(contents.texts, (std::deque<std::string>{"c", "c", "d"}));
  EXPECT_EQ(contents.overwritten, 1u);
  fifo.Add("e");
  fifo.Add(std::string(101, 'f'));  // more than there is
  contents = fifo.Take();
  EXPECT_TRUE(contents.texts.empty());
  EXPECT_EQ(contents.overwritten, 2u);
}

TEST(Limits, KernelsSayWhatTheyUse) {
  Device device;
  const Image& image = device.Load("kernels.cubin");
  EXPECT_TRUE(image.FindKernel("Chatter")->uses_printf);
  EXPECT_FALSE(image.FindKernel("Chatter")->uses_heap);
  EXPECT_TRUE(image.FindKernel("Hoard")->uses_heap);
  EXPECT_FALSE(image.FindKernel("Hoard")->uses_printf);
  EXPECT_FALSE(image.FindKernel("Descend")->uses_heap);
}

}  // namespace
}  // namespace iket::sim::testing
