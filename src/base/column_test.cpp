#include "base/column.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <numeric>

#include "base/evictable.h"
#include "base/mapped_file.h"

namespace iket {
namespace {

constexpr size_t kNumbers = size_t{16} << 20;  // 64 MiB of them

// Columns go to files for good, so each test that wants that has a process of its own.
template <typename Body>
void InProcessOfItsOwn(Body body) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

template <typename Numbers>
bool Counts(const Numbers& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != static_cast<uint32_t>(i)) return false;
  }
  return true;
}

TEST(Column, GrowsAsAVectorDoes) {
  Column<uint32_t> column;
  for (uint32_t i = 0; i < kNumbers / 8; ++i) column.push_back(i);
  EXPECT_TRUE(Counts(column));
  const Column<uint32_t> copy = column;
  column.resize(3);
  column.shrink_to_fit();
  EXPECT_EQ(column, (Column<uint32_t>{0, 1, 2}));
  EXPECT_TRUE(Counts(copy));
  EXPECT_EQ(Column<uint32_t>(2, 7), (Column<uint32_t>{7, 7}));
}

TEST(Column, InFilesHoldsMoreThanMayBeResident) {
  InProcessOfItsOwn([] {
    constexpr uint64_t kResident = uint64_t{48} << 20;
    if (!KeepColumnsInFiles(testing::TempDir(), kResident)) return false;
    Column<uint32_t> column(4 * kNumbers);  // 256 MiB
    uint64_t most = 0;
    for (size_t i = 0; i < column.size(); ++i) {
      column[i] = static_cast<uint32_t>(i);
      // As slow as whoever computes what is written: the keeper looks every 2 ms.
      if (i % (size_t{1} << 20) != 0) continue;
      usleep(5'000);
      most = std::max(most, ResidentBytes());
    }
    if (most > 2 * kResident) {
      std::fprintf(stderr, "%llu MB were resident\n", static_cast<unsigned long long>(most >> 20));
      return false;
    }
    return Counts(column);
  });
}

TEST(Column, InFilesGrowsAndGoesAsOneInMemory) {
  InProcessOfItsOwn([] {
    Column<uint32_t> before(kNumbers / 4);  // of the heap, and given back to it
    if (!KeepColumnsInFiles(testing::TempDir(), uint64_t{64} << 20)) return false;
    std::iota(before.begin(), before.end(), 0u);
    Column<uint32_t> column;
    for (uint32_t i = 0; i < kNumbers / 4; ++i) column.push_back(i);
    const bool same = column == before;
    before = {};
    EvictAll();
    return same && Counts(column);
  });
}

TEST(Column, AFullDiskIsAnErrorAndNoSignal) {
  InProcessOfItsOwn([] {
    if (!KeepColumnsInFiles(testing::TempDir(), uint64_t{64} << 20)) return false;
    try {
      const Column<uint32_t> column(size_t{1} << 50);
    } catch (const ColumnFileError& error) {
      return std::string(error.what()).find("set TMPDIR to a folder with more") !=
             std::string::npos;
    }
    return false;
  });
}

TEST(Column, AFolderThatIsNoneIsAnError) {
  const auto kept = KeepColumnsInFiles("/proc/nowhere", 1 << 20);
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().message, "/proc/nowhere: cannot make a file: No such file or directory");
  const auto in_memory = KeepColumnsInFiles("/dev/shm", 1 << 20);
  ASSERT_FALSE(in_memory);
  EXPECT_EQ(in_memory.error().message, "/dev/shm: is in memory itself (tmpfs)");
}

TEST(Evictable, AMappedFileReadsTheSameAfterItsPagesHaveLeft) {
  const std::string path = testing::TempDir() + "/evictable_test";
  std::ofstream(path) << std::string(100'000, 'x');
  const auto file = MappedFile::Open(path, "file");
  ASSERT_TRUE(file);
  const auto all_x = [&] {
    return std::ranges::all_of(file->bytes(), [](std::byte it) { return it == std::byte{'x'}; });
  };
  EXPECT_TRUE(all_x());
  EvictAll();
  EXPECT_TRUE(all_x());
}

}  // namespace
}  // namespace iket
