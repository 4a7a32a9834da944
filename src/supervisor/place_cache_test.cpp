#include "supervisor/place_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace iket::supervisor {
namespace {

namespace fs = std::filesystem;

class PlaceCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/placesXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The one file that is there.
  std::string File() const {
    const fs::directory_iterator files(folder_ + "/iket");
    return begin(files)->path();
  }

  std::string folder_;
  std::array<uint8_t, 16> uuid_{0x90, 0xad, 0x5c, 0x10};
  std::vector<capture::SmPlace> places_{{0, 3}, {0, 3}, {1, 3}, {-1, -1}};
};

TEST_F(PlaceCacheTest, KeepsWhatItWasGiven) {
  const PlaceCache cache(folder_ + "/iket", "580.159.04");
  EXPECT_TRUE(cache.Load(uuid_, 4).empty());
  cache.Keep(uuid_, places_);
  EXPECT_EQ(cache.Load(uuid_, 4), places_);
  EXPECT_TRUE(cache.Load(uuid_, 3).empty()) << "another GPU by the same name";
  EXPECT_TRUE(cache.Load(uuid_, 5).empty());
  EXPECT_TRUE(cache.Load({}, 4).empty());
  EXPECT_TRUE(PlaceCache(folder_ + "/iket", "590.1").Load(uuid_, 4).empty());
  cache.Keep(uuid_, places_);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ + "/iket"), {}), 1);
}

TEST_F(PlaceCacheTest, BelievesNoDamagedFile) {
  const PlaceCache cache(folder_ + "/iket", "1");
  for (const char* rows : {"", "3 0\n3 0\n3 1\n", "3 0\n3 0\n3 1\n-2 0\n", "3 0\n3 0\n3 1\nx 0\n",
                           "3 0\n3 0\n3 1\n99999999999 0\n", "3 0\n3 0\n3 1\n3 1\n3 2\n"}) {
    cache.Keep(uuid_, places_);
    std::ofstream(File()) << "iket places 1, driver 1\n" << rows;
    EXPECT_TRUE(cache.Load(uuid_, 4).empty()) << rows;
  }
}

TEST_F(PlaceCacheTest, DoesWithoutAFolder) {
  const PlaceCache none("", "1"), impossible("/proc/iket", "1");
  none.Keep(uuid_, places_);
  impossible.Keep(uuid_, places_);
  EXPECT_TRUE(none.Load(uuid_, 4).empty());
  EXPECT_TRUE(impossible.Load(uuid_, 4).empty());
}

}  // namespace
}  // namespace iket::supervisor
