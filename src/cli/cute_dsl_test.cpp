#include "cli/cute_dsl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace iket::cli {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(CuteDslTest, TheTokenIsAddedBehindABlank) {
  EXPECT_EQ(WithIket(""), "iket");
  EXPECT_EQ(WithIket("opt-level=2"), "opt-level=2 iket");
  EXPECT_EQ(WithIket("a,b"), "a,b iket");
  EXPECT_EQ(WithIket("a "), "a  iket");
}

TEST(CuteDslTest, OptionsThatHaveItStayAsTheyAre) {
  for (const char* options :
       {"iket", "--iket", "a iket b", "a,iket,b", "a, --iket", "iket=1", "iket=", "iket{x y}",
        "iket={x, y},a", "iket={x", "a\tiket", "opt={x iket y}"}) {
    EXPECT_EQ(WithIket(options), options);
  }
}

TEST(CuteDslTest, OtherWordsAreNotTheToken) {
  for (const std::string options : {"ikets", "xiket", "-iket", "---iket", "a=iket", "iket-x",
                                    "IKET", "iket{x", "iket{x}y", "enable-iket"}) {
    EXPECT_EQ(WithIket(options), options + " iket");
  }
}

TEST(CuteDslTest, OnlyWhatMustChangeIsChanged) {
  setenv("CUTE_DSL_COMPILER_OPT", "iket,opt-level=3", 1);
  unsetenv("CUTE_EXPERIMENTAL_DSL_COMPILER_OPT");
  EXPECT_THAT(CuteDslEnvironment(),
              ElementsAre(Pair("CUTE_EXPERIMENTAL_DSL_COMPILER_OPT", "iket")));
  setenv("CUTE_DSL_COMPILER_OPT", "opt-level=3", 1);
  setenv("CUTE_EXPERIMENTAL_DSL_COMPILER_OPT", "--iket", 1);
  EXPECT_THAT(CuteDslEnvironment(), ElementsAre(Pair("CUTE_DSL_COMPILER_OPT", "opt-level=3 iket")));
  unsetenv("CUTE_DSL_COMPILER_OPT");
  unsetenv("CUTE_EXPERIMENTAL_DSL_COMPILER_OPT");
}

}  // namespace
}  // namespace iket::cli
