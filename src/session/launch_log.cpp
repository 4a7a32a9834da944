#include "session/launch_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace iket::session {

struct LaunchLog::Header {
  uint64_t magic;
  uint32_t entry_bytes;
  uint32_t capacity;
  std::atomic<uint64_t> appended;  // also counts those that found it full
  uint64_t reserved[5];
};

namespace {

constexpr uint64_t kMagic = 0x31676f6c74656b69;  // "iketlog1"
constexpr size_t kHeaderBytes = 64;
constexpr size_t kFileBytes = kHeaderBytes + size_t{LaunchLog::kCapacity} * sizeof(LaunchEntry);

}  // namespace

Result<LaunchLog> LaunchLog::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return Fail(ErrorKind::kSystem, "{}: cannot create: {}", path, std::strerror(errno));
  void* memory = MAP_FAILED;
  if (ftruncate(fd, kFileBytes) == 0) {
    memory = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  const int error = errno;
  close(fd);
  if (memory == MAP_FAILED) {
    return Fail(ErrorKind::kSystem, "{}: cannot map: {}", path, std::strerror(error));
  }
  LaunchLog log;
  log.header_ = static_cast<Header*>(memory);
  log.mapped_ = kFileBytes;
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
  if (fstat(fd, &status) == 0 && status.st_size >= static_cast<off_t>(kFileBytes)) {
    memory = mmap(nullptr, kFileBytes, PROT_READ, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (memory == MAP_FAILED) return Fail(ErrorKind::kBadInput, "{}: not a launch log", path);
  LaunchLog log;
  log.header_ = static_cast<Header*>(memory);
  log.mapped_ = kFileBytes;
  if (log.header_->magic != kMagic || log.header_->entry_bytes != sizeof(LaunchEntry) ||
      log.header_->capacity != kCapacity) {
    return Fail(ErrorKind::kBadInput, "{}: not a launch log of this version", path);
  }
  return log;
}

LaunchLog::LaunchLog(LaunchLog&& other) noexcept
    : header_(std::exchange(other.header_, nullptr)), mapped_(std::exchange(other.mapped_, 0)) {}

LaunchLog& LaunchLog::operator=(LaunchLog&& other) noexcept {
  std::swap(header_, other.header_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

LaunchLog::~LaunchLog() {
  if (header_ != nullptr) munmap(header_, mapped_);
}

LaunchEntry* LaunchLog::entries() const {
  return reinterpret_cast<LaunchEntry*>(reinterpret_cast<std::byte*>(header_) + kHeaderBytes);
}

LaunchEntry* LaunchLog::Append() {
  const uint64_t index = header_->appended.fetch_add(1, std::memory_order_relaxed);
  return index < kCapacity ? entries() + index : nullptr;
}

std::vector<capture::Launch> LaunchLog::Launches() const {
  const uint64_t count =
      std::min<uint64_t>(header_->appended.load(std::memory_order_acquire), kCapacity);
  std::vector<capture::Launch> launches;
  launches.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const LaunchEntry& entry = entries()[i];
    const uint32_t state = entry.state.load(std::memory_order_acquire);
    if (state == 0) continue;  // its thread died in between
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
                        .failed = state == 2});
  }
  return launches;
}

uint64_t LaunchLog::lost() const {
  const uint64_t appended = header_->appended.load(std::memory_order_acquire);
  return appended > kCapacity ? appended - kCapacity : 0;
}

}  // namespace iket::session
