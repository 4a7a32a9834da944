#include "export/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace iket::exporter {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / fmt::format("iket_output_file_{}", getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  size_t FileCount() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  static std::string ReadAll(const fs::path& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  fs::path folder_;
};

TEST_F(OutputFileTest, AppearsOnlyWhenCommitted) {
  const fs::path path = folder_ / "out";
  std::ofstream(path) << "old";
  {
    auto file = OutputFile::Create(path);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->Write("ne"));
    ASSERT_TRUE(file->Write("w"));
    EXPECT_EQ(ReadAll(path), "old");
    ASSERT_TRUE(file->Commit());
    EXPECT_EQ(file->bytes_written(), 3u);
  }
  EXPECT_EQ(ReadAll(path), "new");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(OutputFileTest, LeavesNothingWithoutCommit) {
  {
    auto file = OutputFile::Create(folder_ / "out");
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->Write("half"));
  }
  EXPECT_EQ(FileCount(), 0u);
}

TEST_F(OutputFileTest, SaysWhyItCannotBeMade) {
  auto file = OutputFile::Create(folder_ / "missing" / "out");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, ErrorKind::kSystem);
  EXPECT_THAT(file.error().message, testing::HasSubstr("No such file or directory"));
}

TEST_F(OutputFileTest, SaysThatTheDiskIsFull) {
  if (access("/dev/full", W_OK) != 0) FAIL() << "/dev/full is missing";
  // The temporary of "full" is a link to /dev/full, so every write fails with ENOSPC.
  fs::create_symlink("/dev/full", folder_ / fmt::format("full.{}.tmp", getpid()));
  auto file = OutputFile::Create(folder_ / "full");
  ASSERT_TRUE(file);
  auto written = file->Write("x");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, testing::HasSubstr("No space left on device"));
}

TEST_F(OutputFileTest, MakesWhatALinkPointsAt) {
  fs::create_directory(folder_ / "there");
  fs::create_symlink("there/second", folder_ / "first");
  fs::create_symlink("out", folder_ / "there" / "second");
  for (const char* text : {"new", "newer"}) {
    auto file = OutputFile::Create(folder_ / "first");
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->Write(text) && file->Commit());
    EXPECT_EQ(ReadAll(folder_ / "there" / "out"), text);
    EXPECT_TRUE(fs::is_symlink(folder_ / "first") && fs::is_symlink(folder_ / "there" / "second"));
  }
  fs::create_symlink("circle", folder_ / "circle");
  const auto circle = OutputFile::Create(folder_ / "circle");
  ASSERT_FALSE(circle);
  EXPECT_THAT(circle.error().message, testing::HasSubstr("symbolic links"));
}

TEST_F(OutputFileTest, SecondSignalWaitsForTheFirst) {
  const pid_t child = fork();
  if (child == 0) {
    RemoveTemporariesOnSignals();
    auto file = OutputFile::Create(folder_ / "out");
    if (!file || !file->Write("half")) _exit(1);
    // All are pending when the first is handled.
    sigset_t all;
    sigemptyset(&all);
    for (const int one : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&all, one);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    for (const int one : {SIGINT, SIGTERM, SIGHUP}) raise(one);
    sigprocmask(SIG_UNBLOCK, &all, nullptr);
    _exit(2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(FileCount(), 0u);
}

TEST_F(OutputFileTest, NoSignalInterruptsTheHandler) {
  // The handler is entered with the second one pending: were it let through, it would end the
  // process first.
  struct sigaction action = {};
  RemoveTemporariesOnSignals();
  for (const int one : {SIGINT, SIGTERM, SIGHUP}) {
    ASSERT_EQ(sigaction(one, nullptr, &action), 0);
    EXPECT_EQ(action.sa_flags & (SA_NODEFER | static_cast<int>(SA_RESETHAND)), 0);
    for (const int other : {SIGINT, SIGTERM, SIGHUP}) {
      EXPECT_EQ(sigismember(&action.sa_mask, other), 1);
    }
    ASSERT_NE(signal(one, SIG_DFL), SIG_ERR);
  }
}

TEST_F(OutputFileTest, SignalRemovesTheTemporaryAndKills) {
  const pid_t child = fork();
  if (child == 0) {
    RemoveTemporariesOnSignals();
    auto file = OutputFile::Create(folder_ / "out");
    if (!file || !file->Write("half")) _exit(1);
    raise(SIGTERM);
    _exit(2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  EXPECT_EQ(FileCount(), 0u);
}

}  // namespace
}  // namespace iket::exporter
