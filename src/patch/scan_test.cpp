#include "patch/scan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "cubin/testing.h"

namespace iket::patch {
namespace {

bool Holds(const std::string& text) {
  return MayHoldMarks(UntrustedBytes(text.data(), text.size()));
}

TEST(MayHoldMarks, WhereverItStands) {
  const std::string name = "iket_";
  for (size_t size = name.size(); size < 300; ++size) {
    for (size_t at = 0; at + name.size() <= size; ++at) {
      std::string text(size, '.');
      text.replace(at, name.size(), name);
      ASSERT_TRUE(Holds(text)) << at << " of " << size;
      text[at + 4] = '-';
      ASSERT_FALSE(Holds(text)) << at << " of " << size;
    }
  }
}

TEST(MayHoldMarks, NotInWhatIsTooShort) {
  const std::string name = "iket_";
  for (size_t size = 0; size < name.size(); ++size) EXPECT_FALSE(Holds(name.substr(0, size)));
  EXPECT_TRUE(Holds(name));
}

TEST(MayHoldMarks, OfCubins) {
  const cubin::testing::Bytes marked =
      cubin::testing::ReadFile(IKET_SOURCE_DIR "/tests/data/patch/plain.sm_90a.cubin");
  EXPECT_TRUE(MayHoldMarks(UntrustedBytes(marked)));
  const cubin::testing::Bytes foreign =
      cubin::testing::ReadFile(IKET_SOURCE_DIR "/tests/data/foreign/types.cubin");
  EXPECT_TRUE(MayHoldMarks(UntrustedBytes(foreign)));
  EXPECT_FALSE(MayHoldMarks(UntrustedBytes(cubin::testing::Data("saxpy.sm_90a.cubin"))));
}

// Few letters, so that parts of the name come often.
TEST(MayHoldMarks, AsAPlainSearch) {
  std::mt19937_64 random(1);
  int found = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text(random() % 400, 0);
    for (char& c : text) c = "iket_decl"[random() % 9];
    if (random() % 2 == 0 && text.size() > 9)
      text.replace(random() % (text.size() - 8), 9, "iket_decl");
    const bool plain = text.find("iket_") != std::string::npos;
    found += plain ? 1 : 0;
    ASSERT_EQ(Holds(text), plain) << text;
  }
  EXPECT_GT(found, 5000);
}

}  // namespace
}  // namespace iket::patch
