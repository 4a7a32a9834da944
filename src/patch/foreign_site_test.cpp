// Sites of other tools' marks against what run-iket says of the same cubins, and what must not be
// taken for one.
#include "patch/foreign_site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "cubin/kernels.h"
#include "cubin/testing.h"
#include "patch/analysis.h"

namespace iket::patch {
namespace {

using sass::Instruction;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kFolder[] = IKET_SOURCE_DIR "/tests/data/foreign/";

cubin::Image Load(const std::string& name) {
  const cubin::testing::Bytes bytes = cubin::testing::ReadFile(kFolder + name + ".cubin");
  return cubin::Image::Parse(UntrustedBytes(bytes)).value();
}
std::vector<Instruction> CodeOf(const cubin::Image& image, const std::string& kernel) {
  return DecodeCode(image.sections()[image.FindSection(".text." + kernel).value()].data).value();
}
ForeignSites Find(const std::vector<Instruction>& code, const ForeignMarks& marks) {
  const uint64_t entries[] = {0};
  return FindForeignSites(code, entries, sass::Generation::kHopper, marks);
}

using Point = std::tuple<uint64_t, uint64_t, uint32_t>;  // timer, PMTRIG, event

TEST(FindForeignSites, EqualInstrumentPoints) {
  std::map<std::pair<std::string, std::string>, std::vector<Point>> expected;
  std::ifstream file(std::string(kFolder) + "points.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string cubin, kernel;
    uint64_t start = 0, end = 0;
    uint32_t event = 0;
    words >> cubin >> kernel >> start >> end >> event;
    expected[{cubin, kernel}].emplace_back(start, end, event);
  }
  ASSERT_THAT(expected, SizeIs(5));
  for (const auto& [where, points] : expected) {
    const cubin::Image image = Load(where.first);
    const ForeignMarks marks = FindForeignMarks(image);
    const ForeignSites sites = Find(CodeOf(image, where.second), marks);
    EXPECT_THAT(sites.problems, SizeIs(0)) << sites.problems.front().reason;
    std::vector<Point> found;
    for (const ForeignSite& site : sites.all) {
      found.emplace_back(site.clock * sass::kInstructionBytes,
                         site.trigger * sass::kInstructionBytes, site.id);
    }
    EXPECT_EQ(found, points) << where.first;
  }
}

class ForeignSiteTest : public ::testing::Test {
 protected:
  const cubin::Image image_ = Load("types");
  ForeignMarks marks_ = FindForeignMarks(image_);
  std::vector<Instruction> code_ =
      CodeOf(image_, "kernel_cutlass_k_types_tensorptrf32gmemo40961__0");

  std::string OnlyProblem() {
    const ForeignSites sites = Find(code_, marks_);
    EXPECT_THAT(sites.problems, SizeIs(1));
    return sites.problems.empty() ? "" : sites.problems.front().reason;
  }
  Instruction& At(uint64_t offset) { return code_[offset / sass::kInstructionBytes]; }
};

TEST_F(ForeignSiteTest, KnowsPayloadsAndWhoStores) {
  const ForeignSites sites = Find(code_, marks_);
  ASSERT_THAT(sites.all, SizeIs(13));
  EXPECT_EQ(sites.all[0].payload, ForeignSite::kNone);
  EXPECT_TRUE(sites.all[0].guard.always());
  EXPECT_EQ(sites.all[7].payload_bytes, 4u);  // i32, of R3
  EXPECT_EQ(sites.all[7].payload_register, 3);
  EXPECT_EQ(sites.all[9].payload_bytes, 8u);  // i64, of R4 and R5
  EXPECT_EQ(sites.all[9].payload_register, 4);
  for (const ForeignSite& site : sites.all) EXPECT_TRUE(site.somebody_stores);
}

TEST_F(ForeignSiteTest, AStoreUnderAGuardMayNotHappen) {
  const cubin::Image image = Load("ranges");
  const auto code = CodeOf(image, "kernel_cutlass_k_ranges_tensorptrf32gmemo40961__0");
  std::vector<uint32_t> doubtful;
  for (const ForeignSite& site : Find(code, FindForeignMarks(image)).all) {
    if (!site.somebody_stores) doubtful.push_back(site.trigger * sass::kInstructionBytes);
  }
  // If-converted, and elected before a branch.
  EXPECT_THAT(doubtful, ::testing::ElementsAre(0x5c0u, 0xc80u, 0xd60u));
}

TEST_F(ForeignSiteTest, OneStoreOfTimeStampAndPayload) {
  // STS.64 of R2, R3 in place of two.
  At(0xe0) = Instruction{At(0xe0).low, (At(0xe0).high & ~(uint64_t{7} << 9)) | uint64_t{5} << 9};
  At(0xf0) = Instruction{0x7918, 0x000fc00000000000};
  const ForeignSites sites = Find(code_, marks_);
  EXPECT_THAT(sites.problems, SizeIs(0));
  EXPECT_EQ(sites.all[1].payload, sites.all[1].store);
  EXPECT_EQ(sites.all[1].payload_register, 3);
}

TEST_F(ForeignSiteTest, WhatNobodyDeclares) {
  std::erase_if(marks_.events, [](const ForeignEvent& event) { return event.id == 1; });
  EXPECT_THAT(OnlyProblem(), HasSubstr("event 1, which nothing declares"));
  // A pmevent of the program's own.
  At(0x80) = Instruction{0x7918, 0x000fc00000000000};
  const ForeignSites sites = Find(code_, marks_);
  EXPECT_THAT(sites.problems, SizeIs(0));
  EXPECT_THAT(sites.all, SizeIs(12));
}

TEST_F(ForeignSiteTest, AnotherIdThanItsTrigger) {
  At(0x60).low ^= uint64_t{2} << 32;
  EXPECT_THAT(OnlyProblem(), HasSubstr("no store of a time stamp"));
}

TEST_F(ForeignSiteTest, NoTimer) {
  At(0x40) = At(0x40).WithGuard(0);
  EXPECT_THAT(Find(code_, marks_).problems, SizeIs(0)) << "its guard is the placeholder's affair";
  At(0x40).high ^= uint64_t{1} << 8;
  EXPECT_THAT(OnlyProblem(), HasSubstr("no store of a time stamp"));
}

TEST_F(ForeignSiteTest, NoPayload) {
  At(0xf0) = Instruction{0x7918, 0x000fc00000000000};
  EXPECT_THAT(OnlyProblem(), HasSubstr("the store of its payload is missing"));
}

TEST_F(ForeignSiteTest, GuardsThatDiffer) {
  At(0x100) = At(0x100).WithGuard(3);
  EXPECT_THAT(OnlyProblem(), HasSubstr("different guards"));
}

TEST_F(ForeignSiteTest, TheReasonOfTheWholeImage) {
  marks_.refusal = "for a reason";
  const ForeignSites sites = Find(code_, marks_);
  EXPECT_THAT(sites.all, SizeIs(0));
  ASSERT_THAT(sites.problems, SizeIs(13));
  EXPECT_EQ(sites.problems.front().reason, "for a reason");
}

TEST_F(ForeignSiteTest, BareTriggersNeedNothingElse) {
  const ForeignMarks bare =
      FindForeignMarks(cubin::testing::ParseData("saxpy.sm_90a.cubin"), {{1, "one"}, {2, "two"}});
  const ForeignSites sites = Find(code_, bare);
  ASSERT_THAT(sites.all, SizeIs(2));
  EXPECT_EQ(sites.all[0].first(), sites.all[0].trigger);
  EXPECT_THAT(sites.problems, SizeIs(0)) << "no others are named";
}

}  // namespace
}  // namespace iket::patch
