#include "base/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace iket {
namespace {

// Vectors of RFC 3720, appendix B.4.
TEST(Crc32c, KnownVectors) {
  EXPECT_EQ(Crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff').data(), 32), 0x62a8ab43u);
  EXPECT_EQ(Crc32c("", 0), 0u);
}

TEST(Crc32c, ContinuesARunningSum) {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    uint32_t first = Crc32c(text.data(), cut);
    EXPECT_EQ(Crc32c(text.data() + cut, text.size() - cut, first),
              Crc32c(text.data(), text.size()));
  }
}

// Long data is summed in lanes, short data is not.
TEST(Crc32c, LongDataIsTheSumOfShortPieces) {
  std::string data(20'000, '\0');
  uint32_t state = 1;
  for (char& c : data) c = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  for (size_t size = 0; size <= data.size(); size += size < 100 ? 1 : 61) {
    uint32_t expected = 0;
    for (size_t at = 0; at < size; at += 1000) {
      expected = Crc32c(data.data() + at, std::min<size_t>(1000, size - at), expected);
    }
    ASSERT_EQ(Crc32c(data.data(), size), expected) << size;
  }
}

// From the FNV reference page (isthe.com/chongo/tech/comp/fnv).
TEST(Fnv1a32, KnownVectors) {
  EXPECT_EQ(Fnv1a32(""), 0x811c9dc5u);
  EXPECT_EQ(Fnv1a32("a"), 0xe40c292cu);
  EXPECT_EQ(Fnv1a32("foobar"), 0xbf9cf968u);
}

}  // namespace
}  // namespace iket
