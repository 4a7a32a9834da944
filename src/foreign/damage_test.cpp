// Files that are cut or changed at random: what is said stays true to what a model promises, and
// nothing is read that is not there (the sanitizers watch).
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "foreign/read_run.h"

namespace iket::foreign {
namespace {

std::string ReadFile(const std::string& name) {
  std::ifstream file(IKET_SOURCE_DIR "/tests/data/run-iket/" + name, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}
std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void Check(const trace::Model& model) {
  for (uint32_t warp = 0; warp < model.warps.size(); ++warp) {
    const uint32_t first = model.warps.first_event[warp];
    ASSERT_LE(first + model.warps.event_count[warp], model.events.size());
    for (uint32_t i = 1; i < model.warps.event_count[warp]; ++i) {
      ASSERT_LE(model.events.cycles[first + i - 1], model.events.cycles[first + i]);
    }
    ASSERT_LE(model.warps.begin_cycles[warp], model.warps.end_cycles[warp]);
    const trace::Device& device = model.devices[model.launches[model.warps.launch[warp]].device];
    ASSERT_LT(model.warps.sm[warp], device.clock_count);
  }
  for (size_t i = 0; i < model.ranges.size(); ++i) {
    ASSERT_LE(model.ranges.begin_cycles[i], model.ranges.end_cycles[i]);
  }
}

class Damage : public ::testing::TestWithParam<const char*> {
 protected:
  std::string json_ = ReadFile(std::string(GetParam()) + "/iket.data.json");
  std::string bin_ = ReadFile(std::string(GetParam()) + "/iket.data.bin");

  Result<foreign::Run> Read(const std::string& json, const std::string& bin) {
    const auto raw = ParseRawRun(Bytes(json), "f");
    if (!raw) return tl::unexpected(raw.error());
    return MakeRun(*raw, [&](const std::string&) { return Bytes(bin); });
  }
};

TEST_P(Damage, BuffersThatAreCut) {
  const auto whole = Read(json_, bin_);
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->facts.damage.any());
  for (size_t size = 0; size < bin_.size(); size += 1 + size / 50) {
    const auto run = Read(json_, bin_.substr(0, size));
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_TRUE(run->facts.damage.cut) << size;
    EXPECT_LE(run->model.warps.size(), whole->model.warps.size());
    Check(run->model);
  }
}

TEST_P(Damage, WordsThatAreChanged) {
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string bin = bin_;
    for (int change = 0; change <= i % 4; ++change) {
      const auto word = static_cast<uint32_t>(random() % 3 == 0 ? random() : random() % 64);
      std::memcpy(bin.data() + random() % (bin.size() / 4) * 4, &word, 4);
    }
    const auto run = Read(json_, bin);
    ASSERT_TRUE(run) << run.error().message;
    Check(run->model);
  }
}

TEST_P(Damage, JsonThatIsChanged) {
  std::mt19937 random(2);
  size_t read = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string json = json_;
    // Digits stay digits in every other round: those get past the parser.
    const size_t at = random() % json.size();
    if (i % 2 == 0) {
      size_t digit = json.find_first_of("0123456789", at);
      if (digit == json.npos) continue;
      json[digit] = static_cast<char>('0' + random() % 10);
    } else {
      json[at] = static_cast<char>(random());
    }
    const auto run = Read(json, bin_);
    if (!run) continue;
    ++read;
    Check(run->model);
  }
  EXPECT_GT(read, 500u);
}

TEST_P(Damage, JsonThatIsCut) {
  for (size_t size = 0; size < json_.size(); size += 1 + size / 50) {
    EXPECT_FALSE(Read(json_.substr(0, size), bin_)) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Reference, Damage, ::testing::Values("cpp", "ranges", "types"));

// A small file must not ask for much memory.
TEST(SharedBuffers, AreReadOnce) {
  RawRun raw{.modules = {{.kernels = {{"k", {}}}}}, .launches = {}, .topology = {}};
  std::string bin(16 * 1024, '\0');
  for (size_t i = 0; i < 1024; ++i) bin[16 * i] = 16;
  for (int i = 0; i < 1000; ++i) {
    raw.launches.push_back({.kernel = "k",
                            .grid = {1024, 1, 1},
                            .block = {32, 1, 1},
                            .recorded = true,
                            .file = "f",
                            .bytes = bin.size(),
                            .warp_bytes = 16});
  }
  const auto run = MakeRun(raw, [&](const std::string&) { return Bytes(bin); });
  ASSERT_TRUE(run);
  EXPECT_EQ(run->model.warps.size(), 1024u);
  EXPECT_EQ(run->facts.damage.chunks_malformed, 999u);
}

}  // namespace
}  // namespace iket::foreign
