#include "cli/output_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "export/formats.h"

namespace iket::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OutputFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    base_ = fs::path(testing::TempDir()) / ("iket_output_folder_" + std::to_string(getpid()));
    fs::create_directories(base_);
    folder_ = base_ / "a" / "b";
  }
  void TearDown() override { fs::remove_all(base_); }

  void Put(const fs::path& path) { std::ofstream(path) << "x"; }

  fs::path base_, folder_;
};

TEST_F(OutputFolderTest, IsMadeWithItsParentsAndMarked) {
  ASSERT_TRUE(PrepareOutputFolder(folder_, false));
  EXPECT_TRUE(fs::exists(folder_ / kMarkerFile));
}

TEST_F(OutputFolderTest, UsedAgainLosesOurFilesOnly) {
  ASSERT_TRUE(PrepareOutputFolder(folder_, false));
  Put(folder_ / "iket_pid_0x1f3.iketcap");
  const std::vector<std::string> formats = exporter::FormatNames();
  for (const std::string& format : formats) Put(folder_ / ("iket_pid_0x1f3." + format));
  Put(folder_ / "iket_pid_0x1f3.pftrace.mine");
  Put(folder_ / "iket_pid_0x1f3.json");
  Put(folder_ / "notes.txt");
  fs::create_directory(folder_ / "iket_pid_0x2.iketcap");
  ASSERT_TRUE(PrepareOutputFolder(folder_, false));
  EXPECT_FALSE(fs::exists(folder_ / "iket_pid_0x1f3.iketcap"));
  for (const std::string& format : formats) {
    EXPECT_FALSE(fs::exists(folder_ / ("iket_pid_0x1f3." + format))) << format;
  }
  EXPECT_TRUE(fs::exists(folder_ / "iket_pid_0x1f3.json"));
  EXPECT_TRUE(fs::exists(folder_ / "iket_pid_0x1f3.pftrace.mine"));
  EXPECT_TRUE(fs::exists(folder_ / "notes.txt"));
  EXPECT_TRUE(fs::exists(folder_ / "iket_pid_0x2.iketcap"));
}

TEST_F(OutputFolderTest, IsRemovedWhole) {
  ASSERT_TRUE(PrepareOutputFolder(folder_, false));
  fs::create_directories(folder_ / "iket" / "pid_0x1");
  Put(folder_ / "notes.txt");
  ASSERT_TRUE(RemoveOutputFolder(folder_));
  EXPECT_FALSE(fs::exists(folder_));
  EXPECT_TRUE(fs::exists(folder_.parent_path()));
}

TEST_F(OutputFolderTest, ForeignFolderNeedsClobber) {
  fs::create_directories(folder_);
  Put(folder_ / "precious.txt");
  auto refused = PrepareOutputFolder(folder_, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("--clobber"));
  EXPECT_FALSE(fs::exists(folder_ / kMarkerFile));
  ASSERT_TRUE(PrepareOutputFolder(folder_, true));
  EXPECT_TRUE(fs::exists(folder_ / "precious.txt"));
}

TEST_F(OutputFolderTest, EmptyFolderIsTaken) {
  fs::create_directories(folder_);
  EXPECT_TRUE(PrepareOutputFolder(folder_, false));
}

TEST_F(OutputFolderTest, FileInTheWayIsRefusedEvenWithClobber) {
  Put(base_ / "file");
  for (bool clobber : {false, true}) {
    auto refused = PrepareOutputFolder(base_ / "file", clobber);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("is a file"));
  }
  auto refused = PrepareOutputFolder(base_ / "file" / "below", false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kSystem);
}

TEST(ExpandPattern, ReplacesWhatItKnows) {
  setenv("IKET_TEST_JOB", "job 7", 1);
  unsetenv("IKET_TEST_UNSET");
  EXPECT_EQ(ExpandPattern("out").value(), "out");
  EXPECT_EQ(ExpandPattern("o_%p.%%").value(), "o_" + std::to_string(getpid()) + ".%");
  EXPECT_EQ(ExpandPattern("%q{IKET_TEST_JOB}/%q{IKET_TEST_UNSET}x").value(), "job 7/x");
  EXPECT_THAT(ExpandPattern("%h").value(), testing::Not(testing::IsEmpty()));
}

TEST(ExpandPattern, RefusesWhatItDoesNot) {
  for (const char* pattern :
       {"%", "a%", "%x", "%q", "%q{", "%q{HOME", "%qHOME", "", "%q{IKET_NO}"}) {
    auto expanded = ExpandPattern(pattern);
    ASSERT_FALSE(expanded) << pattern;
    EXPECT_EQ(expanded.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace iket::cli
