#include "session/launch_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/descriptor.h"
#include "base/write_signals.h"

namespace iket::session {

struct LaunchLog::Header {
  uint64_t magic;
  uint32_t entry_bytes;
  uint32_t capacity;
  std::atomic<uint64_t> appended;  // also counts those that found it full
  uint64_t reserved[5];
};

// What the writing side needs to make room.
struct LaunchLog::Growth {
  std::string path;
  Descriptor file;
  std::mutex mutex;
  std::atomic<uint32_t> entries{0};  // for which the disk has room
  bool failed = false;
};

namespace {

constexpr uint64_t kMagic = 0x31676f6c74656b69;  // "iketlog1"
constexpr size_t kHeaderBytes = 64;
constexpr size_t FileBytes(uint64_t entries) {
  return kHeaderBytes + entries * sizeof(LaunchEntry);
}

// Where the page begins that an entry is on.
constexpr size_t PageStart(uint64_t entry) { return FileBytes(entry) / 4096 * 4096; }
// MADV_POPULATE_WRITE, which older headers do not know, nor older kernels.
constexpr int kPopulateWrite = 23;

}  // namespace

LaunchLog::LaunchLog() = default;

Result<LaunchLog> LaunchLog::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return Fail(ErrorKind::kSystem, "{}: cannot create: {}", path, std::strerror(errno));
  LaunchLog log;
  log.growth_ = std::make_unique<Growth>();
  log.growth_->path = path;
  log.growth_->file = Descriptor(fd);
  // Beyond the end of the file nothing is touched until Grow() has moved it.
  void* memory = mmap(nullptr, FileBytes(kCapacity), PROT_READ | PROT_WRITE, MAP_SHARED,
                      log.growth_->file.get(), 0);
  if (memory == MAP_FAILED) {
    return Fail(ErrorKind::kSystem, "{}: cannot map: {}", path, std::strerror(errno));
  }
  log.header_ = static_cast<Header*>(memory);
  log.mapped_ = FileBytes(kCapacity);
  if (!log.Grow(0)) {
    return Fail(ErrorKind::kSystem, "{}: no room for {} bytes", path, FileBytes(kEntriesAtATime));
  }
  log.header_->entry_bytes = sizeof(LaunchEntry);
  log.header_->capacity = kCapacity;
  log.header_->magic = kMagic;
  return log;
}

Result<LaunchLog> LaunchLog::Open(const std::string& path) {
  static_assert(sizeof(Header) == kHeaderBytes);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Fail(ErrorKind::kSystem, "{}: cannot open: {}", path, std::strerror(errno));
  struct stat status{};
  void* memory = MAP_FAILED;
  size_t bytes = 0;
  if (fstat(fd, &status) == 0 && status.st_size >= static_cast<off_t>(kHeaderBytes)) {
    bytes = std::min(static_cast<size_t>(status.st_size), FileBytes(kCapacity));
    memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (memory == MAP_FAILED) return Fail(ErrorKind::kBadInput, "{}: not a launch log", path);
  LaunchLog log;
  log.header_ = static_cast<Header*>(memory);
  log.mapped_ = bytes;
  log.entries_ = static_cast<uint32_t>((bytes - kHeaderBytes) / sizeof(LaunchEntry));
  if (log.header_->magic != kMagic || log.header_->entry_bytes != sizeof(LaunchEntry) ||
      log.header_->capacity != kCapacity) {
    return Fail(ErrorKind::kBadInput, "{}: not a launch log of this version", path);
  }
  return log;
}

LaunchLog::LaunchLog(LaunchLog&& other) noexcept { *this = std::move(other); }

LaunchLog& LaunchLog::operator=(LaunchLog&& other) noexcept {
  std::swap(header_, other.header_);
  std::swap(mapped_, other.mapped_);
  std::swap(entries_, other.entries_);
  std::swap(growth_, other.growth_);
  return *this;
}

LaunchLog::~LaunchLog() {
  if (header_ != nullptr) munmap(header_, mapped_);
}

// Makes room for entry `index` and those behind it. False where there is none.
bool LaunchLog::Grow(uint64_t index) {
  const std::lock_guard lock(growth_->mutex);
  uint32_t entries = growth_->entries.load(std::memory_order_relaxed);
  if (growth_->failed) return index < entries;
  const WriteSignalGuard guard;  // of a limit to the size of files
  while (index >= entries) {
    const uint32_t more = std::min(entries + kEntriesAtATime, kCapacity);
    const int fd = growth_->file.GetOrReopen(growth_->path.c_str(), O_RDWR);
    if (fd < 0 || posix_fallocate(fd, 0, static_cast<off_t>(FileBytes(more))) != 0) {
      growth_->failed = true;
      return false;
    }
    // All at once costs a tenth of one page after the other, when a launch meets it.
    static_cast<void>(madvise(reinterpret_cast<std::byte*>(header_) + PageStart(entries),
                              PageStart(more) - PageStart(entries), kPopulateWrite));
    entries = more;
    growth_->entries.store(entries, std::memory_order_release);
  }
  return true;
}

LaunchEntry* LaunchLog::entries() const {
  return reinterpret_cast<LaunchEntry*>(reinterpret_cast<std::byte*>(header_) + kHeaderBytes);
}

LaunchEntry* LaunchLog::Append() {
  const uint64_t index = header_->appended.fetch_add(1, std::memory_order_relaxed);
  if (index >= kCapacity) return nullptr;
  if (index >= growth_->entries.load(std::memory_order_acquire) && !Grow(index)) return nullptr;
  return entries() + index;
}

// Entries that are there to be read.
uint64_t LaunchLog::logged() const {
  const uint64_t room = growth_ ? growth_->entries.load(std::memory_order_acquire) : entries_;
  return std::min<uint64_t>(header_->appended.load(std::memory_order_acquire), room);
}

uint64_t LaunchLog::next_sequence() const {
  return header_->appended.load(std::memory_order_acquire);
}

// visit(sequence number, entry, whether the driver refused it) of what was written wholly.
template <typename Visit>
void LaunchLog::ForEach(const Visit& visit) const {
  const uint64_t count = logged();
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t state = entries()[i].state.load(std::memory_order_acquire);
    if (state != 0) visit(i, entries()[i], state == 2);  // 0: its thread died in between
  }
}

std::vector<capture::Launch> LaunchLog::Launches() const {
  std::vector<capture::Launch> launches;
  launches.reserve(logged());
  ForEach([&](uint64_t i, const LaunchEntry& entry, bool failed) {
    if ((entry.flags & kLaunchOfGraph) != 0) return;
    launches.push_back({.sequence = i,
                        .stream = entry.stream,
                        .host_ns = entry.host_ns,
                        .kernel = entry.kernel,
                        .context = entry.context,
                        .grid = {entry.grid[0], entry.grid[1], entry.grid[2]},
                        .block = {entry.block[0], entry.block[1], entry.block[2]},
                        .cluster = {entry.cluster[0], entry.cluster[1], entry.cluster[2]},
                        .dynamic_shared_bytes = entry.dynamic_shared_bytes,
                        .cooperative = (entry.flags & kLaunchCooperative) != 0,
                        .graph = (entry.flags & kLaunchCaptured) != 0,
                        .failed = failed,
                        .left_out = (entry.flags & kLaunchLeftOut) != 0});
  });
  return launches;
}

std::vector<capture::GraphLaunch> LaunchLog::GraphLaunches() const {
  std::vector<capture::GraphLaunch> launches;
  ForEach([&](uint64_t i, const LaunchEntry& entry, bool failed) {
    if ((entry.flags & kLaunchOfGraph) == 0) return;
    launches.push_back({.sequence = i,
                        .stream = entry.stream,
                        .host_ns = entry.host_ns,
                        .graph = entry.graph,
                        .context = entry.context,
                        .captured = (entry.flags & kLaunchCaptured) != 0,
                        .failed = failed,
                        .left_out = (entry.flags & kLaunchLeftOut) != 0});
  });
  return launches;
}

uint64_t LaunchLog::lost() const {
  return header_->appended.load(std::memory_order_acquire) - logged();
}

}  // namespace iket::session
