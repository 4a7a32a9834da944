// Kernels as nvcc makes them at -O3 and for debugging, against the host's answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <random>

#include "sim/testing.h"
#include "sim/testing_functions.h"

namespace iket::sim::testing {
namespace {

std::vector<uint32_t> Words(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> words(n);
  constexpr uint32_t kEdges[] = {0,          1,          2,  0x7fffffff, 0x80000000,
                                 0xffffffff, 0xfffffffe, 31, 32,         64};
  for (uint32_t& word : words) {
    const auto kind = static_cast<uint32_t>(random() % 8);
    const auto value = static_cast<uint32_t>(random());
    word = kind == 0 ? kEdges[value % 10] : kind == 1 ? value % 100 : value;
  }
  return words;
}

class Kernels : public ::testing::TestWithParam<std::string> {
 protected:
  const Image& Load() { return device.Load("kernels" + GetParam() + ".cubin"); }
  Device device;
};

TEST_P(Kernels, FunctionsAreTheHosts) {
  const Image& image = Load();
  const int n = 4096;
  const auto a = Words(n, 1), b = Words(n, 2), c = Words(n, 3);
  const uint64_t da = device.Upload(a), db = device.Upload(b), dc = device.Upload(c);
  const uint64_t out = device.Upload(std::vector<uint32_t>(n));
  for (int which = 0; which < testing_functions::kFunctions; ++which) {
    EXPECT_RUNS(device.Launch(image, "ApplyAll", {32}, {128}, 0, da, db, dc, out, n, which));
    const auto result = device.Download<uint32_t>(out, n);
    int wrong = 0;
    for (int i = 0; i < n && wrong < 3; ++i) {
      const uint32_t expected = testing_functions::Apply(which, a[i], b[i], c[i]);
      if (result[i] == expected) continue;
      ++wrong;
      ADD_FAILURE() << "function " << which << " of " << std::hex << a[i] << ", " << b[i] << ", "
                    << c[i] << ": " << result[i] << ", not " << expected;
    }
  }
}

TEST_P(Kernels, WarpPrimitives) {
  const auto v = Words(32, 4);
  const uint64_t in = device.Upload(v), out = device.Upload(std::vector<uint32_t>(512));
  EXPECT_RUNS(device.Launch(Load(), "WarpPrimitives", {1}, {32}, 0, in, out));
  const auto r = device.Download<uint32_t>(out, 512);
  uint32_t ballot = 0, sum = 0, low = ~0u, ands = ~0u, ors = 0, xors = 0;
  int32_t high = INT32_MIN;
  bool any = false, all = true, same = true;
  for (uint32_t i = 0; i < 32; ++i) {
    ballot |= (v[i] & 1) << i;
    any |= v[i] == 17;
    all &= v[i] < 1u << 31;
    same &= v[i] >> 31 == v[0] >> 31;
    sum += v[i];
    low = std::min(low, v[i]);
    high = std::max(high, static_cast<int32_t>(v[i]));
    ands &= v[i] | 0xff;
    ors |= v[i] & 0xf0f0;
    xors ^= v[i];
  }
  for (uint32_t i = 0; i < 32; ++i) {
    uint32_t match = 0;
    for (uint32_t j = 0; j < 32; ++j) match |= uint32_t{(v[j] & 7) == (v[i] & 7)} << j;
    const uint64_t up = uint64_t{i} << 32 | v[i];
    const uint32_t reversed = [&] {
      uint32_t out_bits = 0;
      for (int k = 0; k < 32; ++k) out_bits |= (v[i] >> k & 1) << (31 - k);
      return out_bits;
    }();
    const uint32_t expected[16] = {
        ballot,
        uint32_t{any} | uint32_t{all} << 1,
        v[i * 7 & 31],
        i >= 3 ? v[i - 3] : v[i],
        (i & 15) + 5 < 16 ? v[i + 5] : v[i],
        v[i ^ 9],
        match,
        (same ? ~0u : 0u) + same,
        sum,
        low ^ static_cast<uint32_t>(high),
        ands ^ ors ^ xors,
        static_cast<uint32_t>(std::popcount(v[i])) |
            static_cast<uint32_t>(std::countl_zero(v[i])) << 8 |
            static_cast<uint32_t>(v[i] == 0 ? 0 : std::countr_zero(v[i]) + 1) << 16,
        reversed,
        (v[i] & 0xff) | (i & 0xff) << 8 | (v[i] >> 8 & 0xff) << 16 | (i & 0xff) << 24,
        static_cast<uint32_t>((up << 5) >> 32) ^ static_cast<uint32_t>(up >> 11),
        v[(i & 24) + 2]};
    for (uint32_t k = 0; k < 16; ++k) EXPECT_EQ(r[i * 16 + k], expected[k]) << i << " word " << k;
  }
}

TEST_P(Kernels, Diverge) {
  const int n = 1000;
  auto v = Words(n, 5);
  for (uint32_t& x : v) x = x % 100000 + 1;
  const uint64_t in = device.Upload(v), out = device.Upload(std::vector<uint32_t>(n));
  EXPECT_RUNS(device.Launch(Load(), "Diverge", {8}, {128}, 0, in, out, n));
  const auto r = device.Download<uint32_t>(out, n);
  for (int i = 0; i < n; ++i) {
    uint32_t x = v[i], steps = 0;
    while (x != 1 && steps < 200) {
      if (x & 1) {
        x = 3 * x + 1;
        if (x % 5 == 0) {
          steps += 2;
          continue;
        }
      } else {
        x >>= 1;
      }
      const uint32_t change[8] = {1, 3, 0, x & 15, 7, 2, 0, 1};
      steps = (x & 7) == 2 ? steps ^ 5 : (x & 7) == 6 ? steps ^ 1 : steps + change[x & 7];
      if (steps > 150 && (x & 3) == 2) break;
    }
    ASSERT_EQ(r[i], steps * 1000003u + x) << i;
  }
}

TEST_P(Kernels, Recursion) {
  const uint64_t out = device.Upload(std::vector<uint32_t>(64));
  EXPECT_RUNS(device.Launch(Load(), "Fibonacci", {1}, {64}, 0, out));
  const auto r = device.Download<uint32_t>(out, 64);
  constexpr uint32_t kFibonacci[9] = {0, 1, 1, 2, 3, 5, 8, 13, 21};
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(r[i], kFibonacci[i % 9]) << i;
}

TEST_P(Kernels, Atomics) {
  const uint32_t n = 20 * 128;
  const uint64_t words = device.Upload(std::vector<uint32_t>{0, 0, 0, 0, 0, ~0u, 0, 0});
  const uint64_t sum = device.Upload(std::vector<float>{0});
  const uint64_t wide = device.Upload(std::vector<uint64_t>{0});
  EXPECT_RUNS(device.Launch(Load(), "Atomics", {20}, {128}, 0, words, sum, wide));
  const auto r = device.Download<uint32_t>(words, 8);
  uint32_t total = 0, high = 0, xors = 0;
  for (uint32_t i = 0; i < n; ++i) {
    total += i;
    high = std::max(high, i * 7 % 1009);
    xors ^= i;
  }
  EXPECT_EQ(r[0], total);
  EXPECT_EQ(r[1], high);
  EXPECT_EQ(r[2], 0u - (n - 1));
  EXPECT_EQ(r[3], ~0u);
  EXPECT_EQ(r[4], xors);
  EXPECT_EQ(r[5], 0xffff0000u);
  EXPECT_EQ(r[6], n % 100);
  EXPECT_EQ(r[7], 3 * n);
  EXPECT_EQ(device.Download<float>(sum, 1)[0], 0.5f * n);
  EXPECT_EQ(device.Download<uint64_t>(wide, 1)[0], uint64_t{total} << 20);
}

TEST_P(Kernels, GenericSums) {
  for (const int in_shared : {0, 1}) {
    const uint64_t sum = device.Upload(std::vector<float>{0});
    const uint64_t wide = device.Upload(std::vector<uint64_t>{0});
    EXPECT_RUNS(device.Launch(Load(), "GenericSums", {1}, {128}, 0, sum, wide, in_shared));
    EXPECT_EQ(device.Download<float>(sum, 1)[0], 64.0f) << in_shared;
    EXPECT_EQ(device.Download<uint64_t>(wide, 1)[0], uint64_t{128} << 33) << in_shared;
  }
}

TEST_P(Kernels, CopyPart) {
  const std::vector<uint32_t> words = Words(128, 5);
  const uint64_t in = device.Upload(words);
  const uint64_t out = device.Upload(std::vector<uint32_t>(128));
  for (const int bytes : {0, 4, 8, 12, 16}) {
    EXPECT_RUNS(device.Launch(Load(), "CopyPart", {1}, {32}, 0, in, out, bytes));
    const auto r = device.Download<uint32_t>(out, 128);
    for (uint32_t i = 0; i < 128; ++i) {
      ASSERT_EQ(r[i], static_cast<int>(i % 4 * 4) < bytes ? words[i] : 0u) << bytes << " " << i;
    }
  }
}

TEST_P(Kernels, Barriers) {
  const auto v = Words(256 * 6, 7);
  const uint64_t in = device.Upload(v), out = device.Upload(std::vector<uint32_t>(6));
  const uint64_t lock = device.Upload(std::vector<uint32_t>{0, 0});
  EXPECT_RUNS(device.Launch(Load(), "Barriers", {6}, {256}, 0, in, out, lock));
  const auto r = device.Download<uint32_t>(out, 6);
  for (uint32_t block = 0; block < 6; ++block) {
    uint32_t expected = 2;
    for (uint32_t i = 0; i < 256; ++i) expected += v[block * 256 + i] + (v[block * 256 + i] & 1);
    EXPECT_EQ(r[block], expected) << block;
  }
  EXPECT_EQ(device.Download<uint32_t>(lock, 2)[1], 48u);
}

TEST_P(Kernels, GlobalsAndConstants) {
  const Image& image = Load();
  const auto constant = image.FindGlobal("constant_table"),
             global = image.FindGlobal("device_table");
  ASSERT_TRUE(constant && global);
  const auto c = Words(64, 8), g = Words(64, 9);
  std::memcpy(device.space.Find(constant->address, 256), c.data(), 256);
  std::memcpy(device.space.Find(global->address, 256), g.data(), 256);
  const uint64_t out = device.Upload(std::vector<uint32_t>(64));
  EXPECT_RUNS(device.Launch(image, "Constants", {1}, {64}, 0, out));
  const auto r = device.Download<uint32_t>(out, 64);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(r[i], c[i ^ 5] + g[63 - i]);
}

INSTANTIATE_TEST_SUITE_P(Forms, Kernels, ::testing::Values("", "_debug"), [](const auto& form) {
  return form.param.empty() ? "O3" : form.param.substr(1);
});

TEST(Printf, FormatsAsTheHostDoes) {
  std::string printed;
  std::mutex mutex;
  Device device({.print = [&](std::string_view text) {
    const std::lock_guard lock(mutex);
    printed += text;
  }});
  EXPECT_RUNS(device.Launch(device.Load("kernels.cubin"), "Hello", {1}, {32}, 0, 42));
  EXPECT_EQ(printed, "hello 42 world 1.500 1099511627776\n");
}

}  // namespace
}  // namespace iket::sim::testing
