// Forms of instructions that tests/corpus and the examples do not have, and that NVIDIA's samples
// do: what each computes, against the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sim/bind.h"
#include "sim/float_ops.h"
#include "sim/testing.h"
#include "sim/warp.h"

namespace iket::sim::testing {
namespace {

std::vector<uint32_t> Words(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> words(n);
  for (uint32_t& word : words) word = static_cast<uint32_t>(random());
  return words;
}

TEST(Forms, BytesAndHalves) {
  Device device;
  const auto a = Words(32, 1), b = Words(32, 2), c = Words(32, 3);
  const uint64_t out = device.Upload(std::vector<uint32_t>(7 * 32));
  EXPECT_RUNS(device.Launch(device.Load("forms.cubin"), "Bytes", {1}, {32}, 0, device.Upload(a),
                            device.Upload(b), device.Upload(c), out));
  const auto result = device.Download<uint32_t>(out, 7 * 32);
  for (uint32_t i = 0; i < 32; ++i) {
    uint32_t expected[7] = {c[i], c[i], 0, 0, 0, 0, 0};
    for (uint32_t at = 0; at < 32; at += 8) {
      const int ua = a[i] >> at & 0xff, ub = b[i] >> at & 0xff;
      expected[0] += static_cast<uint32_t>(std::abs(ua - ub));
      expected[1] +=
          static_cast<uint32_t>(std::abs(static_cast<int8_t>(ua) - static_cast<int8_t>(ub)));
      expected[2] |= static_cast<uint32_t>(std::abs(ua - ub)) << at;
    }
    for (uint32_t at = 0; at < 32; at += 16) {
      const auto ua = static_cast<uint16_t>(a[i] >> at), ub = static_cast<uint16_t>(b[i] >> at);
      const auto sa = static_cast<int16_t>(ua), sb = static_cast<int16_t>(ub);
      const auto put = [&](int k, int half) {
        expected[k] |= static_cast<uint32_t>(static_cast<uint16_t>(half)) << at;
      };
      put(3, std::min(ua, ub));
      put(4, std::max(ua, ub));
      put(5, std::min(sa, sb));
      put(6, std::max(sa, sb));
    }
    for (uint32_t k = 0; k < 7; ++k) EXPECT_EQ(result[k * 32 + i], expected[k]) << k << " " << i;
  }
}

TEST(Forms, Tf32OfDepthFour) {
  Device device;
  // Small integers: every sum is exact, in whatever order.
  std::vector<uint32_t> a(64), b(32);
  std::vector<float> c(128);
  for (uint32_t i = 0; i < 64; ++i) a[i] = AsBits(static_cast<float>(i * 7 % 13) - 6);
  for (uint32_t i = 0; i < 32; ++i) b[i] = AsBits(static_cast<float>(i * 5 % 11) - 5);
  for (uint32_t i = 0; i < 128; ++i) c[i] = static_cast<float>(i);
  const uint64_t out = device.Upload(std::vector<float>(128));
  EXPECT_RUNS(device.Launch(device.Load("forms.cubin"), "Tf32", {1}, {32}, 0, device.Upload(a),
                            device.Upload(b), device.Upload(c), out));
  const auto d = device.Download<float>(out, 128);
  // PTX, m16n8k4: lane 4 g + t has A[g][t], A[g + 8][t] and B[t][g].
  for (uint32_t i = 0; i < 16; ++i) {
    for (uint32_t j = 0; j < 8; ++j) {
      const uint32_t at = 32 * (2 * (i / 8) + j % 2) + 4 * (i % 8) + j / 2;
      float expected = c[at];
      for (uint32_t k = 0; k < 4; ++k) {
        expected += AsFloat(a[32 * (i / 8) + 4 * (i % 8) + k]) * AsFloat(b[4 * j + k]);
      }
      EXPECT_EQ(d[at], expected) << i << " " << j;
    }
  }
}

TEST(Forms, AsynchronousCopyWithAnOffset) {
  Device device;
  const auto from = Words(128 * 4, 4);
  const uint64_t out = device.Upload(std::vector<uint32_t>(96 * 4));
  EXPECT_RUNS(
      device.Launch(device.Load("forms.cubin"), "CopyAt", {1}, {32}, 0, device.Upload(from), out));
  const auto result = device.Download<uint32_t>(out, 96 * 4);
  for (uint32_t i = 0; i < 128; ++i) {
    EXPECT_EQ(result[i], from[64 * 4 + i]) << i;
    EXPECT_EQ(result[128 + i], from[96 * 4 + i]) << i;
    EXPECT_EQ(result[256 + i], from[i]) << i;
  }
}

TEST(Forms, CopiesAnnouncedToAnMbarrierAreNoArrivals) {
  Device device;
  const uint64_t from = device.Upload(Words(128, 5));
  const uint64_t out = device.Upload(std::vector<uint32_t>(32));
  const Image& image = device.Load("forms.cubin");
  // Bit 0: the phase is over before anybody arrived, bit 1: it is afterwards.
  EXPECT_RUNS(device.Launch(image, "Announced", {1}, {32}, 0, from, out, 0));
  EXPECT_EQ(device.Download<uint32_t>(out, 32), std::vector<uint32_t>(32, 2));
  EXPECT_RUNS(device.Launch(image, "Announced", {1}, {32}, 0, from, out, 1));
  EXPECT_EQ(device.Download<uint32_t>(out, 32), std::vector<uint32_t>(32, 3));
}

// Every QSPC that asks for shared memory, made to ask for `space` instead.
std::vector<std::byte> Asking(std::vector<std::byte> cubin, uint64_t space) {
  int changed = 0;
  for (size_t at = 0; at + 16 <= cubin.size(); at += 8) {
    sass::Instruction word;
    std::memcpy(&word, &cubin[at], sizeof word);
    if (word.opcode() != 0x3aa || word.Bits(72, 4) != 5) continue;
    word.high = (word.high & ~uint64_t{0xf00}) | space << 8;
    std::memcpy(&cubin[at], &word, sizeof word);
    ++changed;
  }
  EXPECT_GT(changed, 0);
  return cubin;
}

TEST(Forms, SpacesAndAtomicsOfGenericAddresses) {
  // As compiled, shared memory is updated by ATOMS.CAST; where QSPC.S says no, the code asks for
  // the shared memory of the cluster, and does it by ATOM.CAST.
  const auto bytes = ReadFile(IKET_BINARY_DIR "/src/sim/forms.cubin");
  constexpr uint64_t kShared = 5, kLocal = 3;
  for (const uint64_t asked : {kShared, kLocal}) {
    Device device;
    const uint64_t sums = device.Upload(std::vector<double>{0, 0});
    const uint64_t out = device.Upload(std::vector<uint32_t>(96));
    EXPECT_RUNS(
        device.Launch(device.LoadBytes(Asking(bytes, asked)), "Generic", {1}, {96}, 0, sums, out));
    EXPECT_EQ(device.Download<double>(sums, 2), (std::vector<double>{16, 17}));
    const auto said = device.Download<uint32_t>(out, 96);
    for (uint32_t i = 0; i < 96; ++i) {
      const uint32_t expected[2][3] = {{1, 2, 4}, {1, 0, 4 + 2}};
      EXPECT_EQ(said[i], expected[asked == kLocal][i % 3]) << i;
    }
  }
}

TEST(Forms, BarriersOfTheGrid) {
  Device device;
  const uint32_t ctas = 300;
  const uint64_t words = device.Upload(std::vector<uint32_t>(ctas));
  const uint64_t sums = device.Upload(std::vector<uint32_t>(ctas));
  const Image& image = device.Load("forms.cubin");
  device.cooperative = true;
  EXPECT_RUNS(device.Launch(image, "GridSync", {ctas}, {32}, 0, words, sums));
  const uint32_t expected = 4 * (ctas * (ctas - 1) / 2) + ctas * (0 + 1 + 2 + 3);
  EXPECT_EQ(device.Download<uint32_t>(sums, ctas), std::vector<uint32_t>(ctas, expected));
  // Another launch has no such barrier, which the compiled code looks for.
  device.cooperative = false;
  const auto fault = device.Launch(image, "GridSync", {ctas}, {32}, 0, words, sums);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, Fault::Kind::kTrap) << fault->message;
}

struct Many {
  uint32_t words[8000];
};

TEST(Forms, ALargeParameter) {
  Device device;
  const Image& image = device.Load("forms.cubin");
  const Kernel* const kernel = image.FindKernel("LargeParameter");
  ASSERT_NE(kernel, nullptr);
  ASSERT_EQ(kernel->params.size(), 2u);
  EXPECT_EQ(kernel->params[0].size, sizeof(Many));
  EXPECT_EQ(kernel->params[1].offset, sizeof(Many));
  EXPECT_EQ(kernel->params[1].size, 8u);
  Many many{};
  for (uint32_t i = 0; i < 8000; ++i) many.words[i] = i * 3;
  const uint64_t out = device.Upload(std::vector<uint32_t>(8000));
  struct {
    Many many;
    uint64_t out;
  } params{many, out};
  EXPECT_RUNS(device.Launch(image, "LargeParameter", {1}, {32}, 0, params));
  const auto result = device.Download<uint32_t>(out, 8000);
  for (uint32_t i = 0; i < 8000; ++i) ASSERT_EQ(result[i], i * 3 + 1) << i;
}

// Words that nvcc makes only in large kernels, run by themselves.
struct OneWord {
  explicit OneWord(uint64_t high, uint64_t low) : op(BindInstruction({low, high}, 0)) {
    warp.Start(kFirstRow + 256, kAllLanes, 0);
    warp.exec = kAllLanes;
  }
  Warp warp;
  Op op;
};

TEST(Forms, UniformPredicatesAsData) {
  OneWord word(0x000fe20008001000, 0x000000053f2d7883);  // UP2UR.B1 UR45, UPR, URZ, 0x5
  ASSERT_TRUE(Executes(word.op));
  word.warp.uniform_predicate = {true, true, false, true, false, false, false, true};
  word.op.run(word.warp, word.op);
  EXPECT_EQ(word.warp.uniform[45], 0x100u);
  word.warp.uniform_predicate[2] = true;
  word.op.run(word.warp, word.op);
  EXPECT_EQ(word.warp.uniform[45], 0x500u);
}

TEST(Forms, LanesWithAnotherWideValue) {
  OneWord first(0x000fda0000000000, 0x00000000060472ca);   // R2UR P0, UR4, R6
  OneWord second(0x000fda0000100000, 0x00000000070572ca);  // R2UR.OR P0, UR5, R7
  Warp& warp = first.warp;
  for (uint32_t i = 0; i < kLanes; ++i) {
    warp.Register(6, i) = i % 4;  // lanes 0, 4, 8, ... have lane 0's low half
    warp.Register(7, i) = i / 8;  // lanes 0 to 7 its high half
  }
  warp.predicate[0] = 0;
  first.op.run(warp, first.op);
  EXPECT_EQ(warp.predicate[0], ~0x11111111u);
  second.op.run(warp, second.op);
  EXPECT_EQ(warp.predicate[0], ~0x00000011u);
}

TEST(Forms, UniformConstantsByIndex) {
  OneWord word(0x000fe20008000a00, 0x00c0020005087abb);  // ULDC.64 UR8, c[0x3][UR5+0x8]
  ASSERT_TRUE(Executes(word.op));
  const auto bank = Words(16, 6);
  word.warp.constants[3] = reinterpret_cast<const std::byte*>(bank.data());
  word.warp.constant_bytes[3] = 64;
  word.warp.uniform[5] = 16;
  word.op.run(word.warp, word.op);
  EXPECT_EQ(word.warp.uniform[8], bank[6]);
  EXPECT_EQ(word.warp.uniform[9], bank[7]);
}

// Known opcodes with a modifier that was never compared with a GPU's.
TEST(Forms, RefusesWhatItIsNotSureOf) {
  EXPECT_FALSE(Executes(BindInstruction({0x0000000009097220, 0x000fca0000300000}, 0)));  // FMUL.D2
  EXPECT_FALSE(Executes(BindInstruction({0x0000000304287947, 0x000fea000b800000}, 0)));  // BRA.CONV
}

}  // namespace
}  // namespace iket::sim::testing
