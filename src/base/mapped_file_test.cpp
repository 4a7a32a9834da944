#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace iket {
namespace {

using testing::HasSubstr;

std::string Path(const char* name) { return testing::TempDir() + "iket_mapped_file_" + name; }

TEST(MappedFile, HasTheBytes) {
  const std::string path = Path("bytes");
  std::ofstream(path) << "some text";
  auto file = MappedFile::Open(path, "capture");
  ASSERT_TRUE(file);
  MappedFile moved = std::move(*file);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(moved.bytes().data()), moved.bytes().size()),
            "some text");
  EXPECT_TRUE(file->bytes().empty());
  std::filesystem::remove(path);
}

TEST(MappedFile, AnEmptyFileHasNone) {
  const std::string path = Path("empty");
  const std::ofstream touch(path);
  const auto file = MappedFile::Open(path, "capture");
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->bytes().empty());
  std::filesystem::remove(path);
}

TEST(MappedFile, SaysWhatItIsNot) {
  const auto missing = MappedFile::Open(Path("missing"), "capture");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kSystem);
  EXPECT_THAT(missing.error().message, HasSubstr("cannot open the capture: No such file"));
  const auto folder = MappedFile::Open(testing::TempDir(), "capture");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(folder.error().message, HasSubstr("not a capture: it is a folder"));
  const std::string pipe = Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto fifo = MappedFile::Open(pipe, "capture");
  std::filesystem::remove(pipe);
  ASSERT_FALSE(fifo);
  EXPECT_THAT(fifo.error().message, HasSubstr("not a capture: it is not a regular file"));
}

}  // namespace
}  // namespace iket
