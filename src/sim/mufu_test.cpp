// The special function unit against what an H200 computed: tests/data/sim/mufu.txt.
#include "sim/mufu.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "sim/half.h"

namespace iket::sim {
namespace {

const std::map<std::string, MufuFunction> kFunctions = {
    {"cos", MufuFunction::kCos},          {"sin", MufuFunction::kSin},
    {"ex2", MufuFunction::kEx2},          {"lg2", MufuFunction::kLg2},
    {"rcp", MufuFunction::kRcp},          {"rsq", MufuFunction::kRsq},
    {"rcp64h", MufuFunction::kRcp64High}, {"rsq64h", MufuFunction::kRsq64High},
    {"sqrt", MufuFunction::kSqrt},        {"tanh", MufuFunction::kTanh},
    {"ex2.f16", MufuFunction::kEx2},      {"tanh.f16", MufuFunction::kTanh},
};

// One line of the file.
struct Recorded {
  std::string function, kind, first_text, stride_text, hash_text;
  uint32_t first = 0, stride = 0, count = 0, hash = 0;

  uint32_t Result(uint32_t i) const {
    const MufuFunction f = kFunctions.at(function);
    if (kind == "half") return MufuOfHalf(f, static_cast<uint16_t>(first + i * stride));
    if (kind == "bits") return Mufu(f, first + i * stride);
    return Mufu(
        f, std::bit_cast<uint32_t>(std::ldexp(static_cast<float>(i), -static_cast<int>(stride))));
  }
};

std::vector<Recorded> ReadRecorded() {
  std::ifstream file(IKET_SOURCE_DIR "/tests/data/sim/mufu.txt");
  std::vector<Recorded> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    Recorded row;
    std::istringstream fields(line);
    fields >> row.function >> row.kind >> row.first_text >> row.stride_text >> row.count >>
        row.hash_text;
    EXPECT_TRUE(fields) << line;
    row.first = static_cast<uint32_t>(std::stoul(row.first_text, nullptr, 16));
    row.stride = static_cast<uint32_t>(std::stoul(row.stride_text, nullptr, 16));
    row.hash = static_cast<uint32_t>(std::stoul(row.hash_text, nullptr, 16));
    all.push_back(row);
  }
  return all;
}

TEST(Mufu, ComputesWhatTheHardwareDoes) {
  const std::vector<Recorded> all = ReadRecorded();
  EXPECT_GE(all.size(), 70u);
  for (const Recorded& row : all) {
    uint32_t hash = 0x811c9dc5;
    for (uint32_t i = 0; i < row.count; ++i) hash = (hash ^ row.Result(i)) * 0x01000193;
    EXPECT_EQ(hash, row.hash) << fmt::format("{} {} {} by {}", row.function, row.kind,
                                             row.first_text, row.stride_text);
  }
}

// The tables are of use for a person too: how far off the unit is (PTX promises no better).
TEST(Mufu, IsAsGoodAsPtxSays) {
  const auto bits = [](float x) { return std::bit_cast<uint32_t>(x); };
  const auto value = [](uint32_t x) { return double{std::bit_cast<float>(x)}; };
  for (int i = 1; i < 4096; ++i) {
    const float x = 1 + static_cast<float>(i) / 4096;
    EXPECT_NEAR(value(Mufu(MufuFunction::kRcp, bits(x))) * double{x}, 1, 0x1p-22);
    EXPECT_NEAR(value(Mufu(MufuFunction::kSqrt, bits(x))), std::sqrt(double{x}), 0x1p-22);
    EXPECT_NEAR(value(Mufu(MufuFunction::kLg2, bits(x))), std::log2(double{x}), 0x1p-22);
    EXPECT_NEAR(value(Mufu(MufuFunction::kEx2, bits(x))), std::exp2(double{x}), 0x1p-20);
    EXPECT_NEAR(value(Mufu(MufuFunction::kTanh, bits(x))), std::tanh(double{x}), 0x1p-11);
    EXPECT_NEAR(value(Mufu(MufuFunction::kSin, bits(x))), std::sin(2 * M_PI * double{x}), 0x1p-20);
  }
}

}  // namespace
}  // namespace iket::sim
