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

TEST(Base64, BackAgain) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(DecodeBase64(Base64(bytes)), bytes);
    bytes += static_cast<char>(i * 37);
  }
}

TEST(Base64, TakesNothingElse) {
  const auto bad = [](std::string_view text) {
    const auto bytes = DecodeBase64(text);
    EXPECT_FALSE(bytes) << text;
    return bytes ? std::string_view::npos : bytes.error();
  };
  EXPECT_EQ(bad("Zm9v!mFy"), 4u);
  EXPECT_EQ(bad("Zg==Zg=="), 2u);
  EXPECT_EQ(bad("Zm9v\n"), 4u);
  EXPECT_EQ(bad("Zg="), 2u);
  EXPECT_EQ(bad("Z"), 1u);
  EXPECT_EQ(bad("Zg"), 2u);
  EXPECT_EQ(bad("Zm8"), 3u);
  EXPECT_EQ(bad("Zm9v===="), 4u);
  EXPECT_EQ(bad("Zm9v=="), 4u);
  EXPECT_EQ(bad("Zh=="), 2u);  // bits that no byte has
  EXPECT_EQ(bad("Zm9="), 3u);
}

}  // namespace
}  // namespace iket::exporter
