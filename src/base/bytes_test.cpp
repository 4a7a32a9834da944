#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace iket {
namespace {

constexpr std::array<uint8_t, 6> kData = {0x01, 0x02, 0x03, 'h', 'i', 0};

TEST(UntrustedBytes, ReadsLittleEndianAtAnyOffset) {
  UntrustedBytes bytes(kData.data(), kData.size());
  EXPECT_EQ(bytes.Read<uint16_t>(1), 0x0302);
  EXPECT_EQ(bytes.Read<uint8_t>(5), 0);
}

TEST(UntrustedBytes, RefusesWhatEndsPastTheView) {
  UntrustedBytes bytes(kData.data(), kData.size());
  EXPECT_FALSE(bytes.Read<uint16_t>(5));
  EXPECT_FALSE(bytes.Read<uint8_t>(6));
  EXPECT_FALSE(bytes.Slice(7, 0));
  EXPECT_TRUE(bytes.Slice(6, 0));
}

TEST(UntrustedBytes, OffsetsNearTheTopDoNotWrap) {
  UntrustedBytes bytes(kData.data(), kData.size());
  constexpr uint64_t kTop = std::numeric_limits<uint64_t>::max();
  EXPECT_FALSE(bytes.Contains(kTop, 1));
  EXPECT_FALSE(bytes.Contains(1, kTop));
  EXPECT_FALSE(bytes.Read<uint32_t>(kTop - 2));
}

TEST(UntrustedBytes, CStringNeedsItsNul) {
  UntrustedBytes bytes(kData.data(), kData.size());
  EXPECT_EQ(bytes.CString(3), "hi");
  EXPECT_EQ(bytes.CString(5), "");
  EXPECT_FALSE(bytes.CString(6));
  EXPECT_FALSE(bytes.Slice(0, 5)->CString(3));
}

}  // namespace
}  // namespace iket
