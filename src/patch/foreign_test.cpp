// Declarations of NVIDIA's contract, laid out by hand.
#include "patch/foreign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cubin/testing.h"

namespace iket::patch {
namespace {

using cubin::testing::Bytes;
using ::testing::ElementsAre;

Bytes Declaration(const std::string& name, uint32_t method) {
  Bytes bytes(60);
  cubin::testing::Poke<uint32_t>(bytes, 0, 60);
  cubin::testing::Poke<uint32_t>(bytes, 8, method);
  std::memcpy(bytes.data() + 28, name.data(), std::min<size_t>(name.size(), 32));
  return bytes;
}

ForeignMarks Find(const std::vector<Bytes>& declarations) {
  cubin::Image image = cubin::testing::ParseData("saxpy.sm_90a.cubin");
  for (size_t i = 0; i < declarations.size(); ++i) {
    const uint32_t section =
        image.AddSection({.name = fmt::format("foreign{}", i), .data = declarations[i]}).value();
    EXPECT_TRUE(image.AddSymbol({.name = fmt::format("__iket_evt_decl_{}_attrs", i),
                                 .section = section,
                                 .size = declarations[i].size()}));
  }
  return FindForeignMarks(image);
}

TEST(FindForeignMarks, FindsNoneInOrdinaryAndInOurImages) {
  EXPECT_FALSE(Find({}).any());
  const Bytes ours =
      cubin::testing::ReadFile(IKET_SOURCE_DIR "/tests/data/patch/plain.sm_90a.cubin");
  EXPECT_FALSE(FindForeignMarks(cubin::Image::Parse(UntrustedBytes(ours)).value()).any());
}

TEST(FindForeignMarks, NamesEventsAndTheirMethod) {
  const ForeignMarks marks = Find({Declaration("load", 3), Declaration("mma", 3)});
  EXPECT_EQ(marks.events, 2u);
  EXPECT_EQ(marks.malformed, 0u);
  EXPECT_THAT(marks.names, ElementsAre("load", "mma"));
  EXPECT_EQ(marks.method, "NativeDump");
  EXPECT_EQ(Find({Declaration("x", 5)}).method, "ExtendedNativeDump");
  EXPECT_EQ(Find({Declaration("x", 77)}).method, "method 77");
}

TEST(FindForeignMarks, ReadsANameThatFillsItsField) {
  const std::string name(32, 'n');
  EXPECT_THAT(Find({Declaration(name + "more", 1)}).names, ElementsAre(name));
}

TEST(FindForeignMarks, CountsWhatIsMalformed) {
  Bytes other_size = Declaration("x", 3);
  cubin::testing::Poke<uint32_t>(other_size, 0, 64);
  Bytes cut = Declaration("x", 3);
  cut.resize(59);
  const ForeignMarks marks = Find({other_size, cut, Bytes(1)});
  EXPECT_EQ(marks.events, 0u);
  EXPECT_EQ(marks.malformed, 3u);
  EXPECT_TRUE(marks.any());
}

}  // namespace
}  // namespace iket::patch
