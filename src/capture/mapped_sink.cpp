#include "capture/mapped_sink.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/write_signals.h"

namespace iket::capture {
namespace {

// Taking a window up and giving it back stops all threads that are at the same: few of them. But
// giving it back takes time, and others may wait for who does it: not too large ones.
constexpr uint64_t kWindowBytes = uint64_t{64} << 20;
constexpr size_t kWindowsKept = 2;
// What is made present at a time: the kernel has cleared it, and it is still in the core's cache.
constexpr uint64_t kStep = uint64_t{128} << 10;
static_assert(kWindowBytes % kStep == 0);
constexpr uint64_t kPage = 4096;

std::string ErrorText(int error) {
  std::array<char, 128> buffer{};
  return strerror_r(error, buffer.data(), buffer.size());
}

}  // namespace

// A part of the file in memory, perhaps past its end. Unmapped when nobody uses it any more.
class MappedSink::Window {
 public:
  Window(int fd, uint64_t begin) : begin_(begin) {
    void* const mapped = mmap(nullptr, kWindowBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                              static_cast<off_t>(begin));
    if (mapped != MAP_FAILED) bytes_ = static_cast<std::byte*>(mapped);
  }
  ~Window() {
    if (bytes_ != nullptr) munmap(bytes_, kWindowBytes);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  uint64_t begin() const { return begin_; }
  uint64_t end() const { return begin_ + kWindowBytes; }
  bool is_mapped() const { return bytes_ != nullptr; }
  std::byte* At(uint64_t offset) const { return bytes_ + (offset - begin_); }

 private:
  uint64_t begin_;
  std::byte* bytes_ = nullptr;
};

MappedSink::MappedSink(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
MappedSink::~MappedSink() = default;

Result<std::unique_ptr<MappedSink>> MappedSink::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    return Fail(ErrorKind::kSystem, "{}: cannot create the capture: {}", path, ErrorText(errno));
  }
  return std::unique_ptr<MappedSink>(new MappedSink(fd, path));
}

Result<uint64_t> MappedSink::Take(uint64_t bytes) {
  // Memory past the end of a file cannot be touched.
  const WriteSignalGuard guard;
  if (ftruncate(fd_.get(), static_cast<off_t>(end_ + bytes)) != 0) {
    return Fail(ErrorKind::kSystem, "{}: cannot write the capture after {} bytes: {}", path_, end_,
                ErrorText(errno));
  }
  return std::exchange(end_, end_ + bytes);
}

bool MappedSink::GiveBack(uint64_t at, uint64_t bytes) {
  if (at + bytes != end_) {
    holes_[at] = bytes;
    return false;
  }
  // The end of the capture may need the room.
  end_ = at;
  static_cast<void>(ftruncate(fd_.get(), static_cast<off_t>(end_)));
  return true;
}

// Some MiB: all that other threads were writing when one found the disk full. They give their room
// back before they take it again, since there may be no other.
Result<void> MappedSink::CloseHoles() {
  if (holes_.empty()) return {};
  const uint64_t first = holes_.begin()->first;
  std::vector<std::byte> moved;
  for (uint64_t at = first; at < end_;) {
    if (const auto hole = holes_.find(at); hole != holes_.end()) {
      at += hole->second;
      continue;
    }
    const auto next = holes_.upper_bound(at);
    const uint64_t bytes = (next != holes_.end() ? next->first : end_) - at;
    const size_t before = moved.size();
    moved.resize(before + bytes);
    if (auto done = ReadAt(at, std::span(moved).subspan(before)); !done) return done;
    at += bytes;
  }
  holes_.clear();
  end_ = first;
  if (ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0) {
    return Fail(ErrorKind::kSystem, "{}: cannot cut the capture: {}", path_, ErrorText(errno));
  }
  auto done = WriteAt(end_, moved);
  if (done) end_ += moved.size();
  return done;
}

Result<void> MappedSink::ReadAt(uint64_t at, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (got > 0) {
      at += static_cast<uint64_t>(got);
      bytes = bytes.subspan(static_cast<size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      return Fail(ErrorKind::kSystem, "{}: cannot read the capture at {}: {}", path_, at,
                  ErrorText(got < 0 ? errno : EIO));
    }
  }
  return {};
}

std::shared_ptr<MappedSink::Window> MappedSink::WindowAt(uint64_t at) {
  const uint64_t begin = at / kWindowBytes * kWindowBytes;
  // Unmapped outside of the lock, if nobody else uses it.
  std::shared_ptr<Window> dropped;
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(windows_, begin, &Window::begin);
  if (found != windows_.end()) return *found;
  auto window = std::make_shared<Window>(fd_.get(), begin);
  if (!window->is_mapped()) return nullptr;
  windows_.push_back(window);
  if (windows_.size() > kWindowsKept) {
    const auto oldest = std::ranges::min_element(windows_, {}, &Window::begin);
    dropped = std::move(*oldest);
    windows_.erase(oldest);
  }
  return window;
}

// Makes pages present for writing. False if that cannot be.
bool MappedSink::Populate(const Window& window, uint64_t begin, uint64_t end) {
  begin = begin / kPage * kPage;
  while (madvise(window.At(begin), end - begin, MADV_POPULATE_WRITE) != 0) {
    if (errno == EAGAIN || errno == EINTR) continue;
    if (errno == EINVAL) can_map_ = false;  // a kernel before 5.14
    return false;
  }
  return true;
}

Result<void> MappedSink::WriteAt(uint64_t at, std::span<const std::byte> part) {
  const WriteSignalGuard guard;
  while (!part.empty()) {
    const ssize_t written = pwrite(fd_.get(), part.data(), part.size(), static_cast<off_t>(at));
    if (written > 0) {
      at += static_cast<uint64_t>(written);
      part = part.subspan(static_cast<size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      return Fail(ErrorKind::kSystem, "{}: cannot write the capture after {} bytes: {}", path_, at,
                  ErrorText(written < 0 ? errno : EIO));
    }
  }
  return {};
}

Result<void> MappedSink::Fill(uint64_t at, std::span<const std::span<const std::byte>> parts) {
  uint64_t bytes = 0;
  for (const std::span<const std::byte> part : parts) bytes += part.size();
  const uint64_t end = at + bytes;
  std::shared_ptr<Window> window;
  uint64_t present = at;  // pages up to here
  bool mapped = can_map_;
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      if (mapped && at == present) {
        if (window == nullptr || at == window->end()) window = WindowAt(at);
        present = std::min(end, (at / kStep + 1) * kStep);
        mapped = window != nullptr && Populate(*window, at, present);
      }
      if (!mapped) {
        if (auto done = WriteAt(at, part); !done) return done;
        at += part.size();
        break;
      }
      const size_t count = std::min<uint64_t>(part.size(), present - at);
      std::memcpy(window->At(at), part.data(), count);
      part = part.subspan(count);
      at += count;
    }
  }
  return {};
}

Result<void> MappedSink::Write(std::span<const std::span<const std::byte>> parts) {
  uint64_t bytes = 0;
  for (const std::span<const std::byte> part : parts) bytes += part.size();
  const auto at = Take(bytes);
  if (!at) return tl::unexpected(at.error());
  auto done = Fill(*at, parts);
  if (!done) GiveBack(*at, bytes);
  return done;
}

Result<void> MappedSink::Close() {
  windows_.clear();
  if (fd_.Close() != 0 && errno != EINTR) {
    return Fail(ErrorKind::kSystem, "{}: cannot write the capture to its end: {}", path_,
                ErrorText(errno));
  }
  return {};
}

}  // namespace iket::capture
