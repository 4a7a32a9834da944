#include "patch/window_constant.h"

#include <gtest/gtest.h>

#include "cubin/kernels.h"
#include "cubin/testing.h"

namespace iket::patch {
namespace {

using cubin::Image;
using cubin::testing::Bytes;

Image ImageWithoutConstants() {
  Image image = cubin::testing::ParseData("saxpy.sm_90a.cubin");
  EXPECT_FALSE(cubin::UserConstantSection(image));
  return image;
}
// The user's constants are so many bytes of 0x5a.
Image ImageWithConstants(size_t bytes, uint64_t align) {
  Image image = ImageWithoutConstants();
  EXPECT_TRUE(image.AddSection({.name = ".nv.constant3",
                                .flags = cubin::kFlagAlloc,
                                .align = align,
                                .data = Bytes(bytes, std::byte{0x5a})}));
  return image;
}
// What a reader of the file finds.
Image Again(const Image& image) {
  auto parsed = Image::Parse(UntrustedBytes(image.Serialize()));
  EXPECT_TRUE(parsed) << parsed.error().message;
  return std::move(parsed).value();
}

TEST(AddWindowConstant, AddsASectionWhereThereIsNone) {
  Image image = ImageWithoutConstants();
  EXPECT_EQ(AddWindowConstant(image).value(), 0u);
  const Image again = Again(image);
  const cubin::Section& section = again.sections()[cubin::UserConstantSection(again).value()];
  EXPECT_EQ(section.data.size(), 8u);
  EXPECT_EQ(section.align, 8u);
  EXPECT_NE(section.flags & cubin::kFlagAlloc, 0u);
}

TEST(AddWindowConstant, GoesBehindTheConstantsOfTheUser) {
  const struct {
    size_t bytes;
    uint64_t align;
    uint32_t offset;
  } cases[] = {{8, 8, 8}, {12, 4, 16}, {1, 1, 8}, {100, 16, 104}, {65528, 8, 65528}};
  for (const auto& c : cases) {
    Image image = ImageWithConstants(c.bytes, c.align);
    ASSERT_EQ(AddWindowConstant(image).value(), c.offset);
    const Image again = Again(image);
    const cubin::Section& section = again.sections()[cubin::UserConstantSection(again).value()];
    ASSERT_EQ(section.data.size(), c.offset + 8u);
    EXPECT_GE(section.align, 8u) << "the constant is read as 64 bits";
    for (size_t i = 0; i < c.bytes; ++i) ASSERT_EQ(section.data[i], std::byte{0x5a}) << i;
    const cubin::Symbol& symbol = again.symbols()[again.FindSymbol(kWindowSymbol).value()];
    EXPECT_EQ(symbol.value, c.offset);
    EXPECT_EQ(symbol.size, 8u);
  }
}

TEST(AddWindowConstant, RefusesWhereThereIsNoRoom) {
  for (const size_t bytes : {65529, 65536}) {
    Image image = ImageWithConstants(bytes, 8);
    const auto added = AddWindowConstant(image);
    ASSERT_FALSE(added);
    EXPECT_NE(added.error().message.find("no room"), std::string::npos);
    EXPECT_FALSE(image.FindSymbol(kWindowSymbol));
  }
}

TEST(AddWindowConstant, RefusesASecondTime) {
  Image image = ImageWithoutConstants();
  ASSERT_TRUE(AddWindowConstant(image));
  EXPECT_FALSE(AddWindowConstant(image));
}

}  // namespace
}  // namespace iket::patch
