// Patched kernels of other front ends, walked: what a warp would store, where, and whether every
// uniform register had arrived.
#include "patch/foreign_code.h"

#include <gtest/gtest.h>

#include <map>

#include "cubin/testing.h"
#include "patch/patch.h"
#include "patch/testing_flips.h"
#include "patch/testing_warp.h"
#include "sass/encode.h"

namespace iket::patch {
namespace {

using sass::Instruction;
using testing::Warp;

constexpr char kCute[] = "kernel_cutlass_k_types_tensorptrf32gmemo40961__0";

cubin::Image Load(const std::string& name) {
  const cubin::testing::Bytes bytes =
      cubin::testing::ReadFile(IKET_SOURCE_DIR "/tests/data/foreign/" + name + ".cubin");
  return cubin::Image::Parse(UntrustedBytes(bytes)).value();
}
ring::Layout TestLayout() { return ring::MakeLayout(32 << 10, 132).value(); }

struct PatchedKernel {
  ImageReport report;
  std::vector<Instruction> code{};
  std::map<std::string, uint32_t> ids{};  // by name; "" the pop
};

PatchedKernel Patch(const cubin::Image& image, const std::string& kernel) {
  auto patched = PatchImage(image, {.layout = TestLayout()});
  EXPECT_TRUE(patched) << patched.error().message;
  PatchedKernel result{.report = patched->report};
  const auto after = cubin::Image::Parse(UntrustedBytes(*patched->image)).value();
  result.code =
      DecodeCode(after.sections()[after.FindSection(".text." + kernel).value()].data).value();
  for (const Declaration& declaration : result.report.declarations) {
    result.ids[declaration.name] = declaration.id;
  }
  return result;
}

// A record, by the stores that made it: those of one address are of one event.
struct Record {
  std::map<uint32_t, uint32_t> words;  // by index
};
std::vector<Record> RecordsOf(const Warp& warp) {
  std::vector<Record> records;
  std::map<uint32_t, size_t> at;
  for (const testing::RingStore& store : warp.ring_stores) {
    const uint32_t start = store.address / ring::kRecordBytes * ring::kRecordBytes;
    const auto [known, is_new] = at.try_emplace(start, records.size());
    if (is_new) records.emplace_back();
    for (uint32_t n = 0; n < store.bytes / 4; ++n) {
      records[known->second].words[(store.address - start) / 4 + n] = store.words[n];
    }
  }
  return records;
}

TEST(ForeignCode, StoresWhatOurMarksStore) {
  const PatchedKernel kernel = Patch(Load("types"), kCute);
  Warp warp;
  warp.Walk(kernel.code, [](uint32_t) { return false; });
  EXPECT_TRUE(warp.exited);
  EXPECT_TRUE(warp.hazards.empty()) << warp.hazards.front();
  const std::vector<Record> records = RecordsOf(warp);
  const std::vector<std::pair<std::string, size_t>> expected = {
      {"plain", 2}, {"lit_int", 3}, {"lit_float", 3}, {"i8", 3},  {"u8", 3},
      {"i16", 3},   {"u16", 3},     {"i32", 3},       {"u32", 3}, {"i64", 4},
      {"u64", 4},   {"f32", 3},     {"f64", 4}};
  ASSERT_EQ(records.size(), 2 + expected.size()) << "begin and identity before them";
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& words = records[2 + i].words;
    EXPECT_EQ(words.size(), expected[i].second) << expected[i].first;
    EXPECT_EQ(words.at(0), Warp::kClock);
    EXPECT_EQ(words.at(1), kernel.ids.at(expected[i].first));
  }
  EXPECT_EQ(records[3].words.at(2), static_cast<uint32_t>(-7));
  EXPECT_EQ(records[4].words.at(2), 0x3fc00000u);
}

// Whatever the branches do, every path records whole events, and nothing is read too early.
TEST(ForeignCode, OnEveryPath) {
  for (const char* name : {"ranges", "many", "cpp", "tilelang"}) {
    const cubin::Image image = Load(name);
    const auto report = Inspect(image).value();
    for (const FunctionReport& function : report.functions) {
      const PatchedKernel kernel = Patch(image, function.name);
      for (uint32_t pattern = 0; pattern < 64; ++pattern) {
        Warp warp;
        warp.Walk(kernel.code, [pattern](uint32_t n) { return ((pattern >> n % 6) & 1) != 0; });
        EXPECT_TRUE(warp.hazards.empty()) << name << ": " << warp.hazards.front();
        const std::vector<Record> records = RecordsOf(warp);
        for (size_t i = 2; i < records.size(); ++i) {
          EXPECT_TRUE(records[i].words.contains(0) && records[i].words.contains(1));
        }
      }
    }
  }
}

// Puts an instruction that may name all registers in place of an EXIT, and that behind it.
cubin::Image NamingAll(const std::string& name, const std::string& kernel, uint64_t exit) {
  cubin::Image image = Load(name);
  const uint32_t section = image.FindSection(".text." + kernel).value();
  auto code = DecodeCode(image.sections()[section].data).value();
  Instruction* const at = &code[exit / sass::kInstructionBytes];
  EXPECT_EQ(at[0].opcode(), sass::kOpExit);
  at[1] = at[0];
  at[0] = Instruction{0x0000000004007bff, 0x000fea0003800000};
  const auto bytes = std::as_bytes(std::span(code));
  EXPECT_TRUE(image.SetSectionData(section, {bytes.begin(), bytes.end()}));
  return image;
}

// A kernel that asks for all it may have leaves nothing to borrow: clock and id go one by one.
TEST(ForeignCode, WithoutSpareRegisters) {
  const PatchedKernel kernel = Patch(NamingAll("types", kCute, 0x690), kCute);
  Warp warp;
  warp.Walk(kernel.code, [](uint32_t) { return false; });
  EXPECT_TRUE(warp.hazards.empty()) << warp.hazards.front();
  const std::vector<Record> records = RecordsOf(warp);
  ASSERT_EQ(records.size(), 15u);
  EXPECT_EQ(records[2].words.at(0), Warp::kClock);
  EXPECT_EQ(records[2].words.at(1), kernel.ids.at("plain"));
  EXPECT_EQ(records[11].words.size(), 4u) << "i64";
  // The id is moved into the register of the clock only after that was read.
  uint32_t waits = 0;
  for (size_t i = 1; i < kernel.code.size(); ++i) {
    const Instruction& before = kernel.code[i - 1];
    const Instruction& now = kernel.code[i];
    if (before.base_opcode() != 0x186 || now.opcode() != 0x802) continue;
    if (before.Bits(32, 8) != now.Bits(16, 8)) continue;
    EXPECT_NE(before.control().read_barrier, sass::kNoBarrier);
    EXPECT_TRUE((now.control().wait >> before.control().read_barrier) & 1);
    ++waits;
  }
  EXPECT_EQ(waits, 13u);
}

// Under a guard the register of the time stamp may be another's in lanes that do not come here.
TEST(ForeignCode, ItsRegistersKeepTheirGuards) {
  constexpr char kRanges[] = "kernel_cutlass_k_ranges_tensorptrf32gmemo40961__0";
  cubin::Image image = Load("ranges");
  const uint32_t section = image.FindSection(std::string(".text.") + kRanges).value();
  auto code = DecodeCode(image.sections()[section].data).value();
  // In place of some of its products: so that nothing is left to borrow.
  for (uint8_t r = 11; r < 22; ++r) {
    code[0x290 / sass::kInstructionBytes + r] = sass::MovImmediate(r, 0, {.stall = 1});
  }
  const auto bytes = std::as_bytes(std::span(code));
  ASSERT_TRUE(image.SetSectionData(section, {bytes.begin(), bytes.end()}));
  const PatchedKernel kernel = Patch(image, kRanges);
  // `@!P1 CS2R.32 R7` and what follows it, in the copy.
  uint32_t clocks = 0, ids = 0;
  for (const Instruction& i : kernel.code) {
    const bool is_guarded = i.guard() == 1 && i.guard_negated();
    const bool is_clock = i.opcode() == sass::kOpCs2r && i.Bits(72, 8) == 0x50;
    if (is_guarded && is_clock && i.Bits(16, 8) == 7) ++clocks;
    if (is_guarded && sass::MovedConstant(i) == kernel.ids.at("span")) ++ids;
  }
  EXPECT_EQ(clocks, 1u);
  EXPECT_EQ(ids, 1u);
}

// The cursor moves on only if somebody stored.
TEST(ForeignCode, AGuardedSiteAsksItsLanes) {
  const PatchedKernel kernel =
      Patch(Load("ranges"), "kernel_cutlass_k_ranges_tensorptrf32gmemo40961__0");
  uint32_t votes = 0;
  for (size_t i = 1; i < kernel.code.size(); ++i) {
    const Instruction& vote = kernel.code[i - 1];
    if (vote.opcode() != 0x886) continue;
    const Instruction& advance = kernel.code[i];
    EXPECT_EQ(advance.opcode(), 0x890u);
    EXPECT_EQ(advance.guard(), vote.Bits(81, 3));
    EXPECT_GE(vote.control().stall, 13);
    ++votes;
  }
  EXPECT_EQ(votes, 3u);
}

TEST(ForeignCode, BareTriggersBecomeMarks) {
  cubin::Image image = cubin::testing::ParseData("saxpy.sm_90a.cubin");
  const auto report = Inspect(image).value();
  const std::string kernel = "saxpy";
  const auto section = image.FindSection(".text." + kernel);
  ASSERT_TRUE(section);
  auto code = DecodeCode(image.sections()[*section].data).value();
  code[2] = Instruction{uint64_t{5} << 32 | 0x7801, 0x000fe40003800000};  // PMTRIG 5
  const auto bytes = std::as_bytes(std::span(code));
  ASSERT_TRUE(image.SetSectionData(*section, {bytes.begin(), bytes.end()}));
  auto patched = PatchImage(image, {.layout = TestLayout(), .triggers = {{5, "half"}}});
  ASSERT_TRUE(patched && patched->image);
  ASSERT_EQ(patched->report.declarations.size(), 1u);
  EXPECT_EQ(patched->report.declarations[0].name, "half");
  const auto after = cubin::Image::Parse(UntrustedBytes(*patched->image)).value();
  Warp warp;
  warp.Walk(DecodeCode(after.sections()[*section].data).value(), [](uint32_t) { return false; });
  EXPECT_TRUE(warp.hazards.empty()) << warp.hazards.front();
  const std::vector<Record> records = RecordsOf(warp);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[2].words.at(1), patched->report.declarations[0].id);
}

// Whatever happened to the bits: no crash, and what is written can be read.
TEST(ForeignCode, SurvivesFlippedBits) {
  EXPECT_GT(testing::PatchFlippedBits({"../foreign/types.cubin", "../foreign/ranges.cubin",
                                       "../foreign/cpp.cubin", "../foreign/tilelang.cubin"},
                                      3, {.layout = TestLayout()}),
            100u);
}

}  // namespace
}  // namespace iket::patch
