#include "ring/layout.h"

#include <gtest/gtest.h>

namespace iket::ring {
namespace {

TEST(Layout, NumbersOfAnH200) {
  auto layout = MakeLayout(32 << 10, 132);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->ring_count(), 8448u);
  EXPECT_EQ(layout->offset_mask(), 0x7fffu);
  EXPECT_EQ(layout->ring_shift(), 15u);
  EXPECT_EQ(layout->header_shift(), 7u);
  EXPECT_EQ(layout->table_bytes(), uint64_t{4} << 20);
  EXPECT_EQ(layout->rings_bytes(), uint64_t{264} << 20);
}

// What the patched code computes with 32-bit registers stays inside the window for every ring.
TEST(Layout, AddressesOfThePatchedCodeStayInside) {
  for (uint32_t ring_bytes : {4096u, 16384u, 262144u}) {
    auto layout = MakeLayout(ring_bytes, 132);
    ASSERT_TRUE(layout);
    for (uint32_t sm : {0u, 1u, 131u}) {
      for (uint32_t slot : {0u, 1u, 63u}) {
        const uint64_t index = uint64_t{sm} * kSlotsPerSm + slot;
        const uint32_t ur3 = static_cast<uint32_t>(index * ring_bytes);
        EXPECT_EQ(uint64_t{ur3}, index * ring_bytes);
        EXPECT_EQ(ur3 >> layout->header_shift(), index * kHeaderStride);
        for (uint32_t written : {0u, 16u, 0xfffffff0u}) {
          const uint32_t address = (written & layout->offset_mask()) | ur3;
          EXPECT_GE(address, ur3);
          EXPECT_LE(address + kRecordBytes - 1, uint64_t{ur3} + ring_bytes - 1);
        }
      }
    }
  }
}

TEST(Layout, RefusesWhatDoesNotFit) {
  EXPECT_FALSE(MakeLayout(0, 132));
  EXPECT_FALSE(MakeLayout(2048, 132));
  EXPECT_FALSE(MakeLayout(24 << 10, 132));
  EXPECT_FALSE(MakeLayout(16 << 10, 0));
  EXPECT_FALSE(MakeLayout(16 << 10, 513));
  EXPECT_TRUE(MakeLayout(256 << 10, 132));
  auto too_large = MakeLayout(512 << 10, 132);
  ASSERT_FALSE(too_large);
  EXPECT_NE(too_large.error().message.find("at most 262144"), std::string::npos);
}

TEST(Layout, HalvesUntilItFits) {
  auto layout = FitLayout(32 << 10, 132, uint64_t{100} << 20);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->ring_bytes, 8192u);
  EXPECT_LE(layout->window_bytes(), uint64_t{100} << 20);
  EXPECT_FALSE(FitLayout(32 << 10, 132, uint64_t{20} << 20));
  // Memory is not all that bounds them: a window has 4 GiB.
  layout = FitLayout(1 << 20, 132, uint64_t{64} << 30);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->ring_bytes, uint32_t{256} << 10);
}

TEST(Record, EveryBitPatternIsSomeKind) {
  EXPECT_EQ(KindOf({0, 0, 0, 0}), RecordKind::kUnknown);
  EXPECT_EQ(KindOf({0, 1, 0, 0}), RecordKind::kEvent);
  EXPECT_EQ(KindOf({0, 0x7fffffff, 0, 0}), RecordKind::kEvent);
  EXPECT_EQ(KindOf({0, BeginTag(5), 0, 0}), RecordKind::kBegin);
  EXPECT_EQ(KindOf({0, kTagIdentity | 0x7fff03ff, 0, 0}), RecordKind::kIdentity);
  EXPECT_EQ(KindOf({0, 0xffffffff, 0, 0}), RecordKind::kUnknown);
}

TEST(Record, KernelNumbersSurviveTheTag) {
  for (uint32_t kernel : {0u, 1u, 1023u, 1024u, 0x12345u, kMaxKernels - 1}) {
    EXPECT_EQ(KindOf({0, BeginTag(kernel), 0, 0}), RecordKind::kBegin);
    EXPECT_EQ(KernelOf(BeginTag(kernel)), kernel);
  }
}

// Words seen on an H200 for blocks of (8, 4, 2) threads in a grid of (2, 3, 2).
TEST(Record, IdentityOfAWarp) {
  Identity id = IdentityOf({1, kTagIdentity | 0x04030000, 0x00010002, 7});
  EXPECT_EQ(id.cta_x, 1u);
  EXPECT_EQ(id.cta_y, 2u);
  EXPECT_EQ(id.cta_z, 1u);
  EXPECT_EQ(id.grid, 7u);
  EXPECT_EQ(WarpInCta(id, 8, 4), 1u);
  EXPECT_EQ(WarpInCta(IdentityOf({1, kTagIdentity | 0x00030000, 0, 7}), 8, 4), 0u);
}

}  // namespace
}  // namespace iket::ring
