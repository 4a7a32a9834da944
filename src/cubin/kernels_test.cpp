#include "cubin/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cubin/testing.h"

namespace iket::cubin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::ParseData;
using ::testing::UnorderedElementsAre;

// "name" for a kernel, "name@section+offset" for a device function.
std::vector<std::string> Names(const Image& image) {
  std::vector<std::string> names;
  const auto functions = Functions(image).value();
  for (const Function& f : functions) {
    EXPECT_EQ(f.name, image.symbols()[f.symbol].name);
    names.push_back(f.is_kernel ? std::string(f.name)
                                : fmt::format("{}@{}", f.name, image.sections()[f.section].name));
  }
  return names;
}

TEST(Functions, InTheKernelsOwnSection) {
  EXPECT_THAT(Names(ParseData("pipeline.sm_90a.cubin")),
              UnorderedElementsAre("work32", "work64", "$work32$_Z4Slowfi@.text.work32",
                                   "$work64$_Z4Slowfi@.text.work64"));
}

TEST(Functions, InSectionsOfTheirOwn) {
  for (const char* file : {"pointers.sm_90a.rdc.cubin", "pointers.sm_90a.linked.cubin"}) {
    EXPECT_THAT(Names(ParseData(file)),
                UnorderedElementsAre("through_table", "recursive", "_Z6Triplei@.text._Z6Triplei",
                                     "_Z4Foldi@.text._Z4Foldi", "_Z3Fibi@.text._Z3Fibi"));
  }
}

TEST(Functions, KernelsFillTheirSection) {
  for (const std::string& file : testing::DataNames(".cubin")) {
    const Image image = ParseData(file);
    const auto functions = Functions(image).value();
    for (const Function& f : functions) {
      if (!f.is_kernel) continue;
      EXPECT_EQ(f.offset, 0u) << file;
      EXPECT_EQ(f.size, image.sections()[f.section].data.size()) << file;
    }
  }
}

TEST(Functions, OutsideTheirSection) {
  Image image = ParseData("saxpy.sm_90a.cubin");
  const uint32_t symbol = image.FindSymbol("saxpy").value();
  ASSERT_TRUE(image.SetSymbolValue(symbol, ~uint64_t{0} - 15));
  EXPECT_THAT(Functions(image).error().message,
              ::testing::AllOf(HasSubstr("saxpy"), HasSubstr(".text.saxpy")));
}

TEST(Parameters, OfEachGeneration) {
  const std::pair<const char*, uint32_t> bases[] = {{"saxpy.sm_80.cubin", 0x160},
                                                    {"saxpy.sm_90a.cubin", 0x210},
                                                    {"saxpy.sm_100a.cubin", 0x380},
                                                    {"saxpy.sm_120.cubin", 0x380}};
  for (const auto& [file, base] : bases) {
    const Image image = ParseData(file);
    const auto layout = Parameters(image, image.FindSection(".text.saxpy").value());
    ASSERT_TRUE(layout) << layout.error().message;
    EXPECT_EQ(layout->base, base) << file;
    EXPECT_EQ(layout->size, 24u) << file;
    std::vector<std::pair<uint32_t, uint32_t>> places;
    for (const Parameter& p : layout->parameters) {
      EXPECT_EQ(p.ordinal, places.size());
      places.emplace_back(p.offset, p.size);
    }
    EXPECT_THAT(places, ElementsAre(Pair(0, 4), Pair(4, 4), Pair(8, 8), Pair(16, 8))) << file;
  }
}

std::vector<std::string> Edges(const Image& image, const std::vector<Call>& calls) {
  std::vector<std::string> edges;
  for (const Call& call : calls) {
    edges.push_back(
        fmt::format("{} {}", image.symbols()[call.caller].name, image.symbols()[call.callee].name));
  }
  return edges;
}

std::vector<std::string> SymbolNames(const Image& image, const std::vector<uint32_t>& symbols) {
  std::vector<std::string> names;
  for (const uint32_t symbol : symbols) names.emplace_back(image.symbols()[symbol].name);
  return names;
}

TEST(CallGraph, DirectAndThroughPointers) {
  for (const char* file : {"pointers.sm_90a.rdc.cubin", "pointers.sm_90a.linked.cubin"}) {
    const Image image = ParseData(file);
    const auto graph = ReadCallGraph(image);
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_THAT(Edges(image, graph->direct),
                UnorderedElementsAre("_Z4Foldi _Z6Triplei", "_Z3Fibi _Z3Fibi", "_Z3Fibi _Z6Triplei",
                                     "recursive _Z3Fibi"));
    EXPECT_THAT(Edges(image, graph->indirect),
                UnorderedElementsAre("through_table _Z6Triplei", "through_table _Z4Foldi"));
    EXPECT_THAT(SymbolNames(image, graph->address_taken),
                UnorderedElementsAre("_Z6Triplei", "_Z4Foldi"));
    EXPECT_THAT(SymbolNames(image, graph->calls_pointers), UnorderedElementsAre("through_table"));
  }
}

TEST(CallGraph, WithinOneSectionIsNotListed) {
  const Image image = ParseData("pipeline.sm_90a.cubin");
  const auto graph = ReadCallGraph(image).value();
  EXPECT_THAT(Edges(image, graph.direct), UnorderedElementsAre("work32 vprintf", "work64 vprintf"));
  EXPECT_TRUE(graph.indirect.empty());
}

TEST(CallGraph, Damaged) {
  Image image = ParseData("pointers.sm_90a.linked.cubin");
  const uint32_t section = image.FindSection(".nv.callgraph").value();
  const auto data = image.sections()[section].data;
  testing::Bytes bytes(data.begin(), data.end());
  testing::Poke(bytes, 12, 0x1000u);  // the first callee
  ASSERT_TRUE(image.SetSectionData(section, bytes));
  EXPECT_THAT(ReadCallGraph(image).error().message, HasSubstr("edge at 8"));
  bytes.resize(bytes.size() - 4);
  testing::Poke(bytes, 12, 0u);
  ASSERT_TRUE(image.SetSectionData(section, bytes));
  EXPECT_FALSE(ReadCallGraph(image));
  ASSERT_TRUE(image.SetSectionData(section, testing::Bytes(8)));
  EXPECT_FALSE(ReadCallGraph(image)) << "an edge that belongs to no list";
}

TEST(UserConstants, WhereTheyAre) {
  const Image image = ParseData("pipeline.sm_90a.cubin");
  EXPECT_EQ(UserConstantSection(image), image.FindSection(".nv.constant3"));
  EXPECT_TRUE(UserConstantSection(image));
  EXPECT_FALSE(UserConstantSection(ParseData("saxpy.sm_90a.cubin")));
}

}  // namespace
}  // namespace iket::cubin
