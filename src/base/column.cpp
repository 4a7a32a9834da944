#include "base/column.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/evictable.h"
#include "base/write_signals.h"

namespace iket {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
// What is smaller gains nothing from huge pages, or from a file.
constexpr size_t kLarge = 2 * kHugePage;
constexpr size_t kInFile = 8 * kHugePage;
// What is in the file cache already is mapped fast: in 10 ms half a GB more than was asked for.
constexpr auto kKeeperPeriod = std::chrono::milliseconds(2);

// Where the files are; never destroyed, since the keeper outlives main().
struct Files {
  std::mutex mutex;
  std::string folder;  // "" none
  std::atomic<bool> used = false;
  std::atomic<uint64_t> resident_bytes = 0;
};

Files& TheFiles() {
  static Files& files = *new Files;
  return files;
}

// A file that has no name, or the errno.
int OpenNameless(const std::string& folder) {
  const int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  std::string name = folder + "/iket-columns-XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

void* TakeFile(size_t bytes) {
  Files& files = TheFiles();
  const std::string folder = [&] {
    const std::scoped_lock lock(files.mutex);
    return files.folder;
  }();
  const int fd = OpenNameless(folder);
  const WriteSignalGuard guard;  // a limit of file sizes is an error, too
  // Room that is not there must be known now: later it would end the process.
  int error = fd < 0 ? errno : posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  void* address = MAP_FAILED;
  if (error == 0) {
    address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) error = errno;
  }
  if (fd >= 0) close(fd);
  if (error != 0) {
    throw ColumnFileError(fmt::format(
        "{}: no room for {} MB of what is larger than memory: {}; set TMPDIR to a folder with more",
        folder, bytes >> 20, std::strerror(error)));
  }
  AddEvictable(address, bytes);
  return address;
}

// Bytes that are resident, and of them those of mapped files.
struct Residence {
  uint64_t all = 0, files = 0;
};
Residence Resident(int statm) {
  char text[128] = {};
  unsigned long long size = 0, resident = 0, shared = 0;
  if (pread(statm, text, sizeof(text) - 1, 0) <= 0 ||
      std::sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3) {
    return {};
  }
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return {resident * page, shared * page};
}

void Keep() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // they are for the others
  const int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (statm < 0) return;
  for (;;) {
    std::this_thread::sleep_for(kKeeperPeriod);
    const uint64_t most = TheFiles().resident_bytes;
    const Residence now = Resident(statm);
    // Where the heap alone is as large as that, giving up little again and again helps nobody.
    if (now.all > most / 2 && now.files > most / 8) EvictAll();
  }
}

}  // namespace

Result<void> KeepColumnsInFiles(const std::string& folder, uint64_t resident_bytes) {
  struct statfs status{};
  if (statfs(folder.c_str(), &status) == 0 && status.f_type == TMPFS_MAGIC) {
    return Fail(ErrorKind::kSystem, "{}: is in memory itself (tmpfs)", folder);
  }
  const int fd = OpenNameless(folder);
  if (fd < 0) {
    return Fail(ErrorKind::kSystem, "{}: cannot make a file: {}", folder, std::strerror(errno));
  }
  close(fd);
  Files& files = TheFiles();
  {
    const std::scoped_lock lock(files.mutex);
    files.folder = folder;
  }
  files.resident_bytes = resident_bytes;
  if (!files.used.exchange(true)) std::thread(Keep).detach();
  return {};
}

bool ColumnsAreInFiles() { return TheFiles().used; }

void AdviseColumnUse(const void* first, size_t bytes, ColumnUse use) {
  if (bytes < kInFile || !TheFiles().used) return;
  // Whole pages: from the first that begins there.
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t ahead = (page - reinterpret_cast<uintptr_t>(first) % page) % page;
  auto* const begin = static_cast<std::byte*>(const_cast<void*>(first)) + ahead;
  madvise(begin, (bytes - ahead) / page * page,
          use == ColumnUse::kScattered ? MADV_RANDOM : MADV_NORMAL);
}

void* TakeColumnBytes(size_t bytes) {
  if (bytes < kLarge) {
    if (void* const address = std::malloc(bytes)) return address;
    throw std::bad_alloc();
  }
  if (bytes >= kInFile && TheFiles().used) return TakeFile(bytes);
  const size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* const address = std::aligned_alloc(kHugePage, whole);
  if (address == nullptr) throw std::bad_alloc();
  madvise(address, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);  // none for the rest of it
  return address;
}

void GiveColumnBytes(void* address, size_t bytes) noexcept {
  if (bytes >= kInFile && TheFiles().used && RemoveEvictable(address)) {
    munmap(address, bytes);
  } else {
    std::free(address);
  }
}

}  // namespace iket
