#include "capture/sink.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/write_signals.h"

namespace iket::capture {
namespace {

// The text of an errno value; unlike std::strerror safe among threads.
std::string ErrorText(int error) {
  std::array<char, 128> buffer{};
  return strerror_r(error, buffer.data(), buffer.size());
}

}  // namespace

Result<uint64_t> ByteSink::Take(uint64_t) {
  return Fail(ErrorKind::kUsage, "this sink has no places");
}
Result<void> ByteSink::Fill(uint64_t, std::span<const std::span<const std::byte>>) {
  return Fail(ErrorKind::kUsage, "this sink has no places");
}
bool ByteSink::GiveBack(uint64_t, uint64_t) { return false; }

FdSink::FdSink(int fd, std::string name)
    : fd_(fd), name_(std::move(name)), seekable_(lseek(fd_.get(), 0, SEEK_CUR) == 0) {}

FdSink::~FdSink() = default;

Result<std::unique_ptr<FdSink>> FdSink::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    return Fail(ErrorKind::kSystem, "{}: cannot create the capture: {}", path, ErrorText(errno));
  }
  return std::make_unique<FdSink>(fd, path);
}

Result<void> FdSink::Write(std::span<const std::span<const std::byte>> parts) {
  if (!fd_.is_open() || torn_) {
    return Fail(ErrorKind::kSystem, "{}: the capture was given up before", name_);
  }
  // The program may have closed descriptors that it does not know, and got ours for a file of its
  // own.
  const int fd = seekable_ ? fd_.GetOrReopen(name_.c_str(), O_WRONLY) : fd_.get();
  if (fd < 0) {
    return Fail(ErrorKind::kSystem, "{}: the program closed the capture after {} bytes", name_,
                written_);
  }
  const WriteSignalGuard guard;
  uint64_t piece_written = 0;
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      const ssize_t written = seekable_ ? pwrite(fd, part.data(), part.size(),
                                                 static_cast<off_t>(written_ + piece_written))
                                        : write(fd, part.data(), part.size());
      if (written > 0) {
        piece_written += static_cast<uint64_t>(written);
        part = part.subspan(static_cast<size_t>(written));
        continue;
      }
      if (written < 0 && errno == EINTR) continue;
      const int error = written < 0 ? errno : EIO;
      if (piece_written > 0) {
        torn_ = !seekable_ || ftruncate(fd, static_cast<off_t>(written_)) != 0;
      }
      return Fail(ErrorKind::kSystem, "{}: cannot write the capture after {} bytes: {}", name_,
                  written_, ErrorText(error));
    }
  }
  written_ += piece_written;
  return {};
}

Result<void> FdSink::Close() {
  // EINTR: Linux has closed the descriptor all the same.
  if (fd_.Close() != 0 && errno != EINTR) {
    return Fail(ErrorKind::kSystem, "{}: cannot write the capture to its end: {}", name_,
                ErrorText(errno));
  }
  return {};
}

Result<void> MemorySink::Write(std::span<const std::span<const std::byte>> parts) {
  for (std::span<const std::byte> part : parts) {
    bytes_.insert(bytes_.end(), part.begin(), part.end());
  }
  return {};
}

}  // namespace iket::capture
