#include "base/utf8.h"

#include <gtest/gtest.h>

namespace iket {
namespace {

TEST(Utf8, KnowsCharactersOfEveryLength) {
  EXPECT_EQ(Utf8Length("a\xff"), 1u);
  EXPECT_EQ(Utf8Length("\xc3\xa9x"), 2u);
  EXPECT_EQ(Utf8Length("\xe2\x82\xac"), 3u);
  EXPECT_EQ(Utf8Length("\xf0\x9f\x98\x80"), 4u);
  EXPECT_EQ(Utf8Length("\xf4\x8f\xbf\xbf"), 4u) << "the last of all";
}

TEST(Utf8, RefusesWhatIsNone) {
  for (const char* text :
       {"\x80", "\xff", "\xc3", "\xc3(", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xe2\x82", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf0\x9f\x98", "\xf5\x80\x80\x80"}) {
    EXPECT_EQ(Utf8Length(text), 0u) << text;
  }
}

}  // namespace
}  // namespace iket
