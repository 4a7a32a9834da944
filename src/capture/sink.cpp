#include "capture/sink.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace iket::capture {
namespace {

// The text of an errno value; unlike std::strerror safe among threads.
std::string ErrorText(int error) {
  std::array<char, 128> buffer{};
  return strerror_r(error, buffer.data(), buffer.size());
}

// Keeps the signals that a failing write raises in this thread from being delivered: they would
// end a program that never asked for a capture.
class WriteSignalGuard {
 public:
  WriteSignalGuard() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGXFSZ);
    sigaddset(&signals_, SIGPIPE);
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    // What was pending before is the program's own and stays.
    for (int signal : {SIGXFSZ, SIGPIPE}) {
      if (sigismember(&pending, signal) == 1) sigdelset(&signals_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~WriteSignalGuard() {
    const timespec now{};
    while (sigtimedwait(&signals_, nullptr, &now) > 0 || errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WriteSignalGuard(const WriteSignalGuard&) = delete;
  WriteSignalGuard& operator=(const WriteSignalGuard&) = delete;

 private:
  sigset_t signals_;
  sigset_t before_;
};

}  // namespace

FdSink::FdSink(int fd, std::string name)
    : fd_(fd), name_(std::move(name)), seekable_(lseek(fd, 0, SEEK_CUR) == 0) {}

FdSink::~FdSink() {
  if (fd_ >= 0) close(fd_);
}

Result<std::unique_ptr<FdSink>> FdSink::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    return Fail(ErrorKind::kSystem, "{}: cannot create the capture: {}", path, ErrorText(errno));
  }
  return std::make_unique<FdSink>(fd, path);
}

Result<void> FdSink::Write(std::span<const std::span<const std::byte>> parts) {
  if (fd_ < 0 || torn_) {
    return Fail(ErrorKind::kSystem, "{}: the capture was given up before", name_);
  }
  const WriteSignalGuard guard;
  uint64_t piece_written = 0;
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      const ssize_t written = seekable_ ? pwrite(fd_, part.data(), part.size(),
                                                 static_cast<off_t>(written_ + piece_written))
                                        : write(fd_, part.data(), part.size());
      if (written > 0) {
        piece_written += static_cast<uint64_t>(written);
        part = part.subspan(static_cast<size_t>(written));
        continue;
      }
      if (written < 0 && errno == EINTR) continue;
      const int error = written < 0 ? errno : EIO;
      if (piece_written > 0) {
        torn_ = !seekable_ || ftruncate(fd_, static_cast<off_t>(written_)) != 0;
      }
      return Fail(ErrorKind::kSystem, "{}: cannot write the capture after {} bytes: {}", name_,
                  written_, ErrorText(error));
    }
  }
  written_ += piece_written;
  return {};
}

Result<void> FdSink::Close() {
  const int fd = std::exchange(fd_, -1);
  // EINTR: Linux has closed the descriptor all the same.
  if (fd >= 0 && close(fd) != 0 && errno != EINTR) {
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
