#include "cli/selection_options.h"

#include <gtest/gtest.h>

namespace iket::cli {
namespace {

using session::Selection;

Selection Read(const std::string& text) {
  auto selection = ParseConfig(text, "config.json");
  EXPECT_TRUE(selection) << selection.error().message;
  return selection.value_or(Selection());
}

TEST(SelectionConfig, OurOptions) {
  EXPECT_EQ(Read("{}"), Selection());
  EXPECT_EQ(Read(R"({"kernel": "^gemm", "launch": "2:5", "cluster": [1, 2, 3], "cta-sample": 8,
                     "sm": "0-3,7", "clusters": {"tail": "all", "head": [4, 0, 0]}})"),
            (Selection{.kernels = "^gemm",
                       .ctas = {.cluster = {{1, 2, 3}}, .sample = 8, .sms = {{0, 3}, {7, 7}}},
                       .rules = {{"head", {{4, 0, 0}}}, {"tail", std::nullopt}},
                       .first_launch = 2,
                       .end_launch = 5}));
  EXPECT_EQ(Read(R"({"range-filter": "^mma|load$"})"), (Selection{.events = "^mma|load$"}));
  EXPECT_EQ(Read(R"({"launch": 3, "sm": 9})"),
            (Selection{.ctas = {.sms = {{9, 9}}}, .first_launch = 3, .end_launch = 4}));
}

TEST(SelectionConfig, RunIketsClusters) {
  EXPECT_EQ(
      Read(R"({"gemm": [1, 0, 0], "norm": null, "kernels": "all"})"),
      (Selection{
          .rules = {{"gemm", {{1, 0, 0}}}, {"kernels", std::nullopt}, {"norm", std::nullopt}}}));
}

TEST(SelectionConfig, WhatIsWrongIsNamed) {
  const auto error = [](const std::string& text) {
    const auto selection = ParseConfig(text, "config.json");
    EXPECT_FALSE(selection) << text;
    EXPECT_EQ(selection ? ErrorKind::kUsage : selection.error().kind, ErrorKind::kBadInput);
    return selection ? "" : selection.error().message;
  };
  EXPECT_EQ(error("[1]"), "config.json: not a JSON object");
  EXPECT_NE(error("{").find("config.json: not JSON: "), std::string::npos);
  EXPECT_NE(error(std::string(100, '[')).find("nested too deep"), std::string::npos);
  EXPECT_EQ(error(R"({"cta-sample": 0})"),
            "config.json: 'cta-sample': the value: '0' is not a number from 1 on");
  EXPECT_EQ(error(R"({"gemm": [1, 2]})"),
            "config.json: 'gemm': a cluster is [x, y, z], null or \"all\"");
  EXPECT_EQ(error(R"({"gemm": [1, 2, 4294967296]})"),
            "config.json: 'gemm': a cluster is [x, y, z], null or \"all\"");
  EXPECT_EQ(error(R"({"range-filter": []})"),
            "config.json: 'range-filter': not a regular expression");
  EXPECT_EQ(error(R"({"range-filter": "a\nb"})"),
            "config.json: 'range-filter': a regular expression: no line breaks, and no zeros");
  EXPECT_EQ(error(R"({"kernel": 5.5e3, "sm": [1]})"),
            "config.json: 'sm': the value: '' is no list of SMs such as 0-3,7");
  EXPECT_EQ(error(R"({"clusters": {"a\nb": null}})"),
            "config.json: 'clusters': a kernel name: no line breaks, and no zeros");
  EXPECT_EQ(error("{\"kernel\": \"a\\u0000b\"}"),
            "config.json: 'kernel': a regular expression: no line breaks, and no zeros");
  EXPECT_EQ(error(R"({"kernel": "a", "paused": true})"),
            "config.json: 'paused': no such key; there are kernel, warp-trace, range-filter, "
            "launch, cluster, cta-sample, sm, clusters");
}

}  // namespace
}  // namespace iket::cli
