// What a kernel may do wrong, and what the machine says about it.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "sim/testing.h"

namespace iket::sim::testing {
namespace {

std::optional<Fault> Misbehave(Device& device, int how, uint64_t address) {
  return device.Launch(device.Load("kernels.cubin"), "Misbehave", {3}, {64}, 0, how, address);
}

TEST(Faults, OutOfBoundsSaysWhoAndWhere) {
  Device device;
  const uint64_t memory = device.Upload(std::vector<uint32_t>(64));
  const auto fault = Misbehave(device, 0, memory + 256);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, Fault::Kind::kIllegalAddress);
  EXPECT_EQ(fault->kernel, "Misbehave");
  EXPECT_EQ(fault->cta[0], 1u);
  EXPECT_EQ(fault->warp, 1u);
  EXPECT_EQ(fault->lane, 5u);
  EXPECT_EQ(fault->address, memory + 256);
  EXPECT_NE(fault->message.find("CTA (1, 0, 0), warp 1, lane 5: illegal address: write of 4 bytes"),
            std::string::npos)
      << fault->message;
}

TEST(Faults, Misaligned) {
  Device device;
  const uint64_t memory = device.Upload(std::vector<uint32_t>(64));
  const auto fault = Misbehave(device, 0, memory + 2);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, Fault::Kind::kMisaligned);
}

TEST(Faults, Trap) {
  Device device;
  const auto fault = Misbehave(device, 1, 0);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, Fault::Kind::kTrap);
}

TEST(Faults, Assert) {
  Device device;
  const auto fault = Misbehave(device, 2, 0);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, Fault::Kind::kAssert);
  EXPECT_NE(fault->message.find("how != 2"), std::string::npos) << fault->message;
  // It stands at the call, in the kernel's own code.
  EXPECT_EQ(fault->message.find("Misbehave+0x"), 0u) << fault->message;
  EXPECT_EQ(fault->message.find(" in "), std::string::npos) << fault->message;
}

TEST(Faults, EndlessKernelCanBeStopped) {
  Device device;
  const Image& image = device.Load("kernels.cubin");
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop.request_stop();
  });
  std::vector<std::byte> params(16);
  params[0] = std::byte{3};
  const LaunchConfig config{.kernel = image.FindKernel("Misbehave"),
                            .grid = {2},
                            .block = {64},
                            .cluster = {},
                            .dynamic_shared = 0,
                            .params = params};
  const auto fault = device.machine.Run(config, stop.get_token());
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, Fault::Kind::kStopped);
  // The device is free for others.
  const auto next = Misbehave(device, 4, 0);
  EXPECT_FALSE(next.has_value()) << next->message;
}

TEST(Faults, BadLaunches) {
  Device device;
  const Image& image = device.Load("kernels.cubin");
  for (const Dim3 block : {Dim3{2048}, Dim3{0}, Dim3{1, 1, 128}}) {
    const auto fault = device.Launch(image, "Misbehave", {1}, block, 0, 4, uint64_t{0});
    ASSERT_TRUE(fault.has_value());
    EXPECT_EQ(fault->kind, Fault::Kind::kBadLaunch);
  }
  const auto fault = device.Launch(image, "Misbehave", {1}, {32}, 1u << 20, 4, uint64_t{0});
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, Fault::Kind::kBadLaunch);
}

}  // namespace
}  // namespace iket::sim::testing
