// The examples' kernels as nvcc makes them, as they are, marked, and patched: results against the
// host's, records against what the source says.
#include <gtest/gtest.h>

#include <map>

#include "cubin/image.h"
#include "patch/patch.h"
#include "patch/window_constant.h"
#include "ring/layout.h"
#include "sim/float_ops.h"
#include "sim/half.h"
#include "sim/testing.h"

namespace iket::sim::testing {
namespace {

class Examples : public ::testing::TestWithParam<std::string> {};

void CheckSaxpy(Device& device, const Image& image, int n) {
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) {
    x[i] = 0.25f * static_cast<float>(i % 1001);
    y[i] = static_cast<float>(i % 77) - 30;
  }
  const uint64_t dx = device.Upload(x), dy = device.Upload(y);
  EXPECT_RUNS(device.Launch(image, "Saxpy", {7}, {128}, 0, n, 2.5f, dx, dy));
  const auto result = device.Download<float>(dy, n);
  for (int i = 0; i < n; ++i) ASSERT_EQ(result[i], std::fma(2.5f, x[i], y[i])) << i;
}

TEST_P(Examples, SaxpyComputes) {
  Device device;
  CheckSaxpy(device, device.Load("saxpy" + GetParam() + ".cubin"), 5000);
}

void CheckGemm(Device& device, const Image& image) {
  const int m = 256, n = 256, k = 192;
  std::vector<uint16_t> a(size_t(m) * k), b(size_t(n) * k), c(size_t(m) * n, 0x7fff);
  for (size_t i = 0; i < a.size(); ++i) a[i] = HalfFromFloat(static_cast<float>(i * 7 % 9) - 4);
  for (size_t i = 0; i < b.size(); ++i) b[i] = HalfFromFloat(static_cast<float>(i * 5 % 7) - 3);
  const uint64_t da = device.Upload(a), db = device.Upload(b), dc = device.Upload(c);
  const uint64_t mismatches = device.Upload(std::vector<uint32_t>{0});
  std::string gemm;
  for (const Kernel& kernel : image.kernels()) {
    if (kernel.name != "GemmCheck") gemm = kernel.name;
  }
  EXPECT_RUNS(device.Launch(image, gemm, {2}, {384}, 200 * 1024, da, db, dc, m, n, k));
  EXPECT_RUNS(
      device.Launch(image, "GemmCheck", {8, 8}, {32, 32}, 0, da, db, dc, m, n, k, mismatches));
  EXPECT_EQ(device.Download<uint32_t>(mismatches, 1)[0], 0u);
}

TEST_P(Examples, GemmComputes) {
  Device device;
  CheckGemm(device, device.Load("gemm_mma" + GetParam() + ".cubin"));
}

INSTANTIATE_TEST_SUITE_P(Forms, Examples, ::testing::Values("", "_marked"),
                         [](const auto& form) { return form.param.empty() ? "clean" : "marked"; });

// ---- patched -----------------------------------------------------------------------------------
constexpr uint32_t kRingBytes = 1 << 16;

// Loads the patched form of a cubin and maps its window; returns where the window is.
struct PatchedImage {
  const Image* image = nullptr;
  ring::Layout layout;
  uint64_t base = 0;
};
PatchedImage LoadPatched(Device& device, const std::string& name) {
  PatchedImage result;
  result.layout = ring::MakeLayout(kRingBytes, DeviceModel{}.sm_count).value();
  const auto bytes = ReadFile(IKET_BINARY_DIR "/src/sim/" + name);
  const auto original = cubin::Image::Parse(UntrustedBytes(bytes)).value();
  const auto patched = patch::PatchImage(original, {.layout = result.layout}).value();
  EXPECT_TRUE(patched.image.has_value());
  result.image = &device.LoadBytes(*patched.image);
  // The table lies before the base, whose low word is 0.
  const uint64_t table = result.layout.table_bytes(), rings = result.layout.rings_bytes();
  const uint64_t reserved =
      device.space.Reserve(ring::kWindowAlignment + rings, ring::kWindowAlignment).value();
  result.base = reserved + ring::kWindowAlignment;
  const uint64_t start = result.base - ring::kTableOffset;
  EXPECT_TRUE(device.space.Map(start, table, AllocateHostMemory(table).value()));
  EXPECT_TRUE(device.space.Map(result.base, rings, AllocateHostMemory(rings).value()));
  const auto window = result.image->FindGlobal(patch::kWindowSymbol);
  EXPECT_TRUE(window.has_value());
  std::memcpy(device.space.Find(window->address, 8), &result.base, 8);
  return result;
}

// How often each tag (the second word of a record) was written, over all rings.
std::map<uint32_t, uint32_t> CountTags(Device& device, const PatchedImage& patched) {
  std::map<uint32_t, uint32_t> counts;
  for (uint32_t ring = 0; ring < patched.layout.ring_count(); ++ring) {
    const auto words =
        device.Download<uint32_t>(patched.base + uint64_t{ring} * kRingBytes, kRingBytes / 4);
    for (size_t i = 0; i < words.size(); i += 4) {
      if (words[i] != 0 || words[i + 1] != 0) ++counts[words[i + 1]];
    }
  }
  return counts;
}

TEST(Patched, SaxpyComputesAndRecords) {
  Device device;
  const PatchedImage patched = LoadPatched(device, "saxpy_marked.cubin");
  CheckSaxpy(device, *patched.image, 5000);
  uint32_t begins = 0, identities = 0, events = 0;
  for (const auto& [tag, count] : CountTags(device, patched)) {
    if ((tag >> 31) == 0) {
      events += count;
    } else if ((tag & 0xc00) == 0x400) {
      begins += count;
    } else {
      identities += count;
    }
  }
  EXPECT_EQ(begins, 28u);
  EXPECT_EQ(identities, 28u);
  // What each warp marks: "first element", and for each step of its loop four marks, and "last"
  // once. Lanes of a warp do not diverge but for its last step.
  const int stride = 7 * 128, n = 5000;
  uint32_t expected = 0;
  for (int warp = 0; warp < 28; ++warp) {
    ++expected;
    for (int i = 32 * warp; i < n; i += stride) expected += 4 + (n - i <= stride ? 1 : 0);
  }
  EXPECT_NEAR(events, expected, 40);
  EXPECT_GE(events, expected);
}

TEST(Patched, GemmComputesAndRecords) {
  Device device;
  const PatchedImage patched = LoadPatched(device, "gemm_mma_marked.cubin");
  CheckGemm(device, *patched.image);
  EXPECT_GT(CountTags(device, patched).size(), 4u);
}

}  // namespace
}  // namespace iket::sim::testing
