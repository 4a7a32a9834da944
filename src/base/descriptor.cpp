#include "base/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace iket {

Descriptor::Descriptor(int fd) : fd_(fd) {
  if (fd >= 0 && fd <= STDERR_FILENO) {
    fd_ = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
  }
  struct stat status{};
  if (fd_ >= 0 && fstat(fd_, &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

int Descriptor::get() const {
  struct stat status{};
  const bool ours =
      fd_ >= 0 && fstat(fd_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
  return ours ? fd_ : -1;
}

int Descriptor::GetOrReopen(const char* path, int flags) {
  if (const int fd = get(); fd >= 0) return fd;
  Descriptor again(open(path, flags | O_CLOEXEC));
  if (!again.is_open() || again.device_ != device_ || again.inode_ != inode_) return -1;
  // Not Close(): the number is not ours any more, or `again` has got it.
  fd_ = -1;
  *this = std::move(again);
  return fd_;
}

int Descriptor::Close() {
  const int fd = get();
  fd_ = -1;
  return fd >= 0 ? close(fd) : 0;
}

}  // namespace iket
