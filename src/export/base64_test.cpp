#include "export/base64.h"

#include <gtest/gtest.h>

namespace iket::exporter {
namespace {

std::string Base64(std::string_view bytes) {
  std::string out;
  AppendBase64(bytes, out);
  return out;
}

TEST(Base64, VectorsOfTheRfc) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foob"), "Zm9vYg==");
  EXPECT_EQ(Base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, AppendsAndTakesAnyByte) {
  std::string out = "x";
  AppendBase64(std::string_view("\xff\xfe\0\xfb\xff", 5), out);
  EXPECT_EQ(out, "x//4A+/8=");
}

}  // namespace
}  // namespace iket::exporter
