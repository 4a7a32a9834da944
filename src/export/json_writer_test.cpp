#include "export/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace iket::exporter {
namespace {

TEST(JsonWriter, PutsCommasBetweenValues) {
  JsonWriter json;
  {
    auto object = json.Object();
    json.Member("a", 1);
    {
      auto array = json.Array("b");
      json.Value(-2);
      {
        auto empty = json.Object();
      }
      json.Value(true);
      {
        auto empty = json.Array();
      }
      json.Value(nullptr);
    }
    json.Member("c", std::optional<double>());
    json.Member("d", 0.5);
  }
  EXPECT_EQ(json.text(), R"({"a":1,"b":[-2,{},true,[],null],"c":null,"d":0.5})");
}

TEST(JsonWriter, KeepsAllBitsOfIntegers) {
  JsonWriter json;
  {
    auto array = json.Array();
    json.Value(std::numeric_limits<uint64_t>::max());
    json.Value(std::numeric_limits<int64_t>::min());
    json.Value(uint8_t{200});
  }
  EXPECT_EQ(json.text(), "[18446744073709551615,-9223372036854775808,200]");
}

TEST(JsonWriter, WritesNullForWhatJsonCannotSay) {
  JsonWriter json;
  {
    auto array = json.Array();
    json.Value(std::nan(""));
    json.Value(std::numeric_limits<double>::infinity());
  }
  EXPECT_EQ(json.text(), "[null,null]");
}

TEST(JsonWriter, EscapesText) {
  JsonWriter json;
  json.Value("a\"b\\c\n\x01\x7f</é𝄞");
  EXPECT_EQ(json.text(), "\"a\\\"b\\\\c\\u000a\\u0001\\u007f</é𝄞\"");
}

TEST(JsonWriter, ReplacesBadUtf8) {
  // Cut sequence, lone tail, overlong slash, surrogate, above U+10FFFF, 0xff.
  for (const char* bad : {"\xc3", "\xe2\x82", "\x80", "\xc0\xaf", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xe0\x80\xaf", "\xff"}) {
    JsonWriter json;
    json.Value(std::string("x") + bad + "y");
    std::string expected = "\"x";
    for (const char* c = bad; *c != 0; ++c) expected += "\xef\xbf\xbd";
    EXPECT_EQ(json.text(), expected + "y\"");
  }
}

}  // namespace
}  // namespace iket::exporter
