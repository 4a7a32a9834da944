// The examples' kernels as nvcc makes them, as they are, marked, and patched: results against the
// host's, records against what the source says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sass/encode.h"
#include "sim/half.h"
#include "sim/testing.h"
#include "sim/testing_patched.h"

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

INSTANTIATE_TEST_SUITE_P(Forms, Examples, ::testing::Values("", "_marked", "_debug"),
                         [](const auto& form) {
                           return form.param.empty() ? "clean" : form.param.substr(1);
                         });

// ---- patched -----------------------------------------------------------------------------------
constexpr uint32_t kRingBytes = 1 << 16;

TEST(Patched, SaxpyComputesAndRecords) {
  Device device;
  const PatchedImage patched = LoadPatched(device, "saxpy_marked.cubin", kRingBytes);
  const int n = 5000, stride = 7 * 128;
  CheckSaxpy(device, *patched.image, n);
  // What each warp marks: "first element"; for each step of its loop four marks, and "last" if it
  // is that for any lane. Lanes that leave the loop early wait for the others.
  uint32_t expected = 0;
  for (int warp = 0; warp < 28; ++warp) {
    ++expected;
    for (int i = 32 * warp; i < n; i += stride) {
      expected += 4 + (n - std::min(i + 31, n - 1) <= stride ? 1 : 0);
    }
  }
  const Records records = ReadRecords(device, patched);
  EXPECT_EQ(records.begins, 28u);
  EXPECT_EQ(records.identities, 28u);
  EXPECT_EQ(records.events, expected);
}

// Lanes that come apart to the place where the ring's cursor is waited for: the first of them begin
// the warp, the others go on with it. Compilers let lanes meet before, so the code is made by hand.
TEST(Patched, LanesThatComeApartBeginOnce) {
  using sass::Instruction;
  constexpr auto kHopper = sass::Generation::kHopper;
  const auto branch = [](uint32_t from, uint32_t to) {
    return sass::Bra(kHopper, uint64_t{from} * 16, uint64_t{to} * 16, {.stall = 5});
  };
  const Instruction move = sass::MovImmediate(2, 1, {.stall = 5});
  std::vector<Instruction> code(15, move);
  code[1] = sass::S2r(3, sass::SpecialRegister::kTidX, {.stall = 1, .write_barrier = 0});
  code[2] = sass::CompareImmediate(0, sass::Compare::kGreaterOrEqual, 3, 16, sass::Join::kAnd,
                                   sass::kPredicateTrue, {.stall = 13, .wait = 1});
  code.push_back(branch(15, 18).WithGuard(0));
  code.insert(code.end(), {move, branch(17, 20), move, move});
  // At 20 they come together, and do not wait for each other; then a mark, as ptxas makes it.
  code.insert(code.end(),
              {move, sass::Cs2r32(2, sass::SpecialRegister::kClockLow, {.stall = 4}),
               Instruction{0x123456780200780c, 0x000fda0003f05070},  // ISETP.NE.U32.AND P0, R2
               Instruction{0x1234567800038802, 0x000fca0000000f00},  // @!P0 MOV R3
               Instruction{0xfffff802ff008988, 0x0001e20008000a04},  // @!P0 STS.64 [UR4+-0x8], R2
               Instruction{0x0000e11000007801, 0x000fe20000000000},  // PMTRIG 0xe110
               Instruction{0x000000000000794d, 0x000fea0003800000},  // EXIT
               branch(27, 27)});
  // In the place of another kernel.
  const auto bytes = ReadFile(IKET_BINARY_DIR "/src/sim/saxpy.cubin");
  auto image = cubin::Image::Parse(UntrustedBytes(bytes)).value();
  const uint32_t section = *image.FindSection(".text.Saxpy");
  code.resize(image.sections()[section].data.size() / 16, sass::Nop({.stall = 1}));
  const auto text = std::as_bytes(std::span(code));
  ASSERT_TRUE(image.SetSectionData(section, std::vector<std::byte>(text.begin(), text.end())));
  Device device;
  const PatchedImage patched = LoadPatched(device, image, kRingBytes);
  EXPECT_RUNS(
      device.Launch(*patched.image, "Saxpy", {3}, {64}, 0, 0, 0.f, uint64_t{0}, uint64_t{0}));
  const Records records = ReadRecords(device, patched);
  EXPECT_EQ(records.begins, 6u);
  EXPECT_EQ(records.identities, 6u);
  EXPECT_EQ(records.events, 9u) << "two in the first warp of a CTA, one in the second";
}

TEST(Patched, GemmComputesAndRecords) {
  Device device;
  const PatchedImage patched = LoadPatched(device, "gemm_mma_marked.cubin", kRingBytes);
  CheckGemm(device, *patched.image);
  EXPECT_GT(ReadRecords(device, patched).by_id.size(), 4u);
}

// What is recorded of some names is what is recorded of all, less the events of the others; and the
// kernels compute what they do.
TEST(Patched, AChoiceOfEventsTakesThoseAwayAndNothingElse) {
  const auto compare = [](const std::string& file, const auto& check) {
    Device whole_device;
    const PatchedImage whole = LoadPatched(whole_device, file, kRingBytes);
    check(whole_device, *whole.image);
    const Records all = ReadRecords(whole_device, whole);
    std::map<uint32_t, std::string> name_of;
    std::set<std::string> names, pushes;
    for (const patch::Declaration& declaration : whole.declarations) {
      name_of[declaration.id] = declaration.name;
      if (declaration.kind != patch::EventKind::kPop) names.insert(declaration.name);
      if (declaration.kind == patch::EventKind::kPush) pushes.insert(declaration.name);
    }
    ASSERT_LE(pushes.size(), 1u) << "else the others are there too";
    ASSERT_GE(names.size(), 2u);
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      Device device;
      const PatchedImage patched = LoadPatched(
          device, file, kRingBytes, [&](const std::string& event) { return event == name; });
      check(device, *patched.image);
      const Records some = ReadRecords(device, patched);
      EXPECT_EQ(some.begins, all.begins);
      EXPECT_EQ(some.identities, all.identities);
      auto expected = all.by_id;
      std::erase_if(expected, [&](const auto& event) {
        const std::string& of = name_of[event.first];
        return of.empty() ? !pushes.contains(name) : of != name;  // a pop is its push's
      });
      EXPECT_EQ(some.by_id, expected);
    }
  };
  compare("saxpy_marked.cubin",
          [](Device& device, const Image& image) { CheckSaxpy(device, image, 5000); });
  compare("gemm_mma_marked.cubin",
          [](Device& device, const Image& image) { CheckGemm(device, image); });
}

}  // namespace
}  // namespace iket::sim::testing
