#include "export/dag_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "export/perfetto.h"
#include "export/synthetic_model.h"

namespace iket::exporter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kGemm =
    R"({"name": "gemm", "regions": ["mma", "store", "tma"], "edges": [
        {"source": "tma", "target": "mma", "label": "smem[0]", "via": "mbarrier"},
        {"source": "mma", "target": "store"}]})";

TEST(DagJson, AddsEdges) {
  trace::Model model;
  ASSERT_TRUE(AddDag(kGemm, "f", model));
  ASSERT_EQ(model.edges.size(), 2u);
  EXPECT_EQ(EdgeLabel(model, model.edges[0]), "gemm: tma -> mma, smem[0], by mbarrier");
  EXPECT_EQ(EdgeLabel(model, model.edges[1]), "gemm: mma -> store");
  EXPECT_THAT(DagNames(model), ElementsAre("gemm"));
}

TEST(DagJson, WhatIsThereAlreadyIsNotThereTwice) {
  trace::Model model;
  ASSERT_TRUE(AddDag(kGemm, "f", model));
  ASSERT_TRUE(AddDag(kGemm, "f", model));
  EXPECT_EQ(model.edges.size(), 2u);
  ASSERT_TRUE(AddDag(R"({"name":"b","edges":[{"source":"tma","target":"mma"}]})", "f", model));
  EXPECT_EQ(model.edges.size(), 3u);
  EXPECT_THAT(DagNames(model), ElementsAre("gemm", "b"));
}

TEST(DagJson, WritesWhatItReads) {
  trace::Model model;
  ASSERT_TRUE(AddDag(kGemm, "f", model));
  EXPECT_EQ(DagJson(model, "gemm"),
            R"({"name":"gemm","regions":["mma","store","tma"],"edges":[)"
            R"({"source":"tma","target":"mma","label":"smem[0]","via":"mbarrier"},)"
            R"({"source":"mma","target":"store"}]})"
            "\n");
  trace::Model again;
  ASSERT_TRUE(AddDag(DagJson(model, "gemm"), "f", again));
  EXPECT_EQ(DagJson(again, "gemm"), DagJson(model, "gemm"));
}

TEST(DagJson, SaysWhatIsWrong) {
  const auto fault = [](std::string_view text) {
    trace::Model model;
    const auto added = AddDag(text, "x.iket_dag.json", model);
    EXPECT_TRUE(model.edges.empty());
    return added ? "" : added.error().message;
  };
  EXPECT_THAT(fault("{"), HasSubstr("x.iket_dag.json: not a graph of dependencies: it is no JSON"));
  EXPECT_THAT(fault("{"), HasSubstr(R"({"name": .., "edges": [{"source": .., "target": ..}]})"));
  EXPECT_THAT(fault("[]"), HasSubstr("it is no object"));
  EXPECT_THAT(fault(R"({"edges":[]})"), HasSubstr("it has no \"name\""));
  EXPECT_THAT(fault(R"({"name":"a"})"), HasSubstr("it has no list \"edges\""));
  EXPECT_THAT(fault(R"({"name":"a","edges":{}})"), HasSubstr("it has no list \"edges\""));
  EXPECT_THAT(fault(R"({"name":"a","edges":[{"source":"x","target":"y"},{"source":"x"}]})"),
              HasSubstr("edge 1 has no \"target\""));
  EXPECT_THAT(fault(R"({"name":"a","edges":[{"source":"","target":"y"}]})"),
              HasSubstr("edge 0 has an empty \"source\""));
  EXPECT_THAT(fault(R"({"name":"a","edges":[{"source":"x","target":"y","via":3}]})"),
              HasSubstr("edge 0 has a \"via\" that is no text"));
  EXPECT_THAT(fault(R"({"name":"a","edges":[3]})"), HasSubstr("edge 0 is no object"));
}

}  // namespace
}  // namespace iket::exporter
