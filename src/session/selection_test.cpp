#include "session/selection.h"

#include <gtest/gtest.h>

namespace iket::session {
namespace {

Selection Decoded(const std::string& text) {
  auto selection = DecodeSelection(text);
  EXPECT_TRUE(selection) << selection.error().message;
  return selection.value_or(Selection());
}

TEST(Selection, NoWishIsNoText) {
  EXPECT_EQ(Encode({}), "");
  EXPECT_EQ(Decoded(""), Selection());
  EXPECT_FALSE(Selection().windowed());
}

TEST(Selection, TextThereAndBack) {
  const Selection selection{.kernels = "^gemm.*<(half|float)>",
                            .warps = "flash|attention",
                            .events = "^mma( |$)",
                            .triggers = {{3, "tile done"}, {4095, "x"}},
                            .ctas = {.cluster = {{1, 2, 3}}, .sample = 7, .sms = {{0, 3}, {9, 9}}},
                            .rules = {{.part = "attention fwd", .cluster = {{4, 0, 0}}},
                                      {.part = "norm", .cluster = std::nullopt}},
                            .first_launch = 3,
                            .end_launch = 9,
                            .by_program = true,
                            .nvtx = "one step"};
  EXPECT_EQ(Decoded(Encode(selection)), selection);
  EXPECT_TRUE(selection.windowed());
  const Selection open_end{.first_launch = 5};
  EXPECT_EQ(Decoded(Encode(open_end)), open_end);
}

TEST(Selection, WhatIsWrongIsNamed) {
  for (const char* text :
       {"cluster 1,", "cluster 1,2,3,4", "cluster x",     "cluster -1",   "cta-sample 0",
        "cta-sample", "sm 3-1",          "sm 1-",         "sm 1,",        "sm 1,,2",
        "sm ",        "launch 3:3",      "launch :",      "launch",       "launch 5:2",
        "launch a:b", "window",          "window always", "rule 1,2,x a", "kernels a",
        "pmevent 3",  "pmevent x y",     "pmevent 0 a",   "pmevent 31 a", "pmevent 4096 a"}) {
    const auto selection = DecodeSelection(text);
    ASSERT_FALSE(selection) << text;
    EXPECT_NE(selection.error().message.find(std::string("IKET_SELECTION '") + text + "'"),
              std::string::npos)
        << selection.error().message;
  }
}

TEST(Selection, LaunchesAreARangeOrOne) {
  using Range = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(*ParseLaunches("2:5"), Range(2, 5));
  EXPECT_EQ(*ParseLaunches("2:"), Range(2, UINT64_MAX));
  EXPECT_EQ(*ParseLaunches(":5"), Range(0, 5));
  EXPECT_EQ(*ParseLaunches("4"), Range(4, 5));
}

TEST(KernelChooser, FindsInEitherName) {
  const auto chooser = KernelChooser::Make({.kernels = "Gemm(<|$)"});
  ASSERT_TRUE(chooser);
  EXPECT_TRUE(chooser->Wants("_Z4GemmIfEvv", "void Gemm<float>()"));
  EXPECT_TRUE(chooser->Wants("Gemm", "Gemm"));
  EXPECT_FALSE(chooser->Wants("GemmTail", "GemmTail"));
  EXPECT_TRUE(KernelChooser::Make({})->Wants("anything", "at all"));
}

TEST(KernelChooser, WarpsOfUnmarkedKernels) {
  const auto chooser = KernelChooser::Make({.kernels = "x", .warps = "^gemm"});
  ASSERT_TRUE(chooser);
  EXPECT_TRUE(chooser->WantsWarps("_Z4gemmv", "gemm()"));
  EXPECT_FALSE(chooser->WantsWarps("x", "x"));
  EXPECT_FALSE(KernelChooser::Make({})->WantsWarps("gemm", "gemm"));
  EXPECT_FALSE(KernelChooser::Make({.warps = "("}));
}

TEST(KernelChooser, NoRegularExpression) {
  const auto chooser = KernelChooser::Make({.kernels = "Gemm("});
  ASSERT_FALSE(chooser);
  EXPECT_NE(chooser.error().message.find("'Gemm(' is no regular expression"), std::string::npos);
}

TEST(KernelChooser, TheLongestPartOfANameCounts) {
  const auto chooser = KernelChooser::Make(
      {.ctas = {.cluster = {{9, 0, 0}}, .sample = 2},
       .rules = {{"gemm", {{1, 0, 0}}}, {"gemm_tail", std::nullopt}, {"g", {{2, 0, 0}}}}});
  ASSERT_TRUE(chooser);
  using Cluster = std::array<uint32_t, 3>;
  EXPECT_EQ(chooser->Ctas("my_gemm").cluster, (Cluster{1, 0, 0}));
  EXPECT_EQ(chooser->Ctas("my_gemm_tail").cluster, std::nullopt);
  EXPECT_EQ(chooser->Ctas("gelu").cluster, (Cluster{2, 0, 0}));
  EXPECT_EQ(chooser->Ctas("norm").cluster, (Cluster{9, 0, 0}));
  EXPECT_EQ(chooser->Ctas("norm").sample, 2u);
}

}  // namespace
}  // namespace iket::session
