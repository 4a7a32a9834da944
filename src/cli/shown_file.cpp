#include "cli/shown_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "base/retry.h"
#include "base/write_signals.h"

namespace iket::cli {

Result<ShownFile> ShownFile::Open(const std::string& path) {
  struct stat facts{};
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &facts) != 0) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) close(fd);
    return Fail(ErrorKind::kSystem, "{}: cannot open: {}", path, why);
  }
  return ShownFile(fd, path, static_cast<uint64_t>(facts.st_size));
}

Result<ShownFile> ShownFile::Create() {
  std::error_code why;
  std::string folder = std::filesystem::temp_directory_path(why).string();
  if (why) {
    return Fail(ErrorKind::kSystem, "no folder for temporary files: {}; TMPDIR names one",
                why.message());
  }
  constexpr mode_t kMine = 0600;
  int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kMine);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    // A file system without such files: one whose name is taken away at once.
    std::string path = folder + "/iket_view_XXXXXX";
    fd = mkostemp(path.data(), O_CLOEXEC);
    if (fd >= 0) unlink(path.c_str());
  }
  if (fd < 0) {
    return Fail(ErrorKind::kSystem,
                "{}: cannot create a temporary file: {}; TMPDIR names another "
                "folder",
                folder, std::strerror(errno));
  }
  return ShownFile(fd, std::move(folder), 0);
}

ShownFile::ShownFile(ShownFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), place_(std::move(other.place_)), size_(other.size_) {}

ShownFile::~ShownFile() {
  if (fd_ >= 0) close(fd_);
}

Result<void> ShownFile::Write(std::string_view bytes) {
  const WriteSignalGuard guard;
  while (!bytes.empty()) {
    const ssize_t written = Retry([&] { return write(fd_, bytes.data(), bytes.size()); });
    if (written < 0) {
      return Fail(
          ErrorKind::kSystem,
          "{}: cannot write a temporary file after {} bytes: {}; TMPDIR names another folder",
          place_, size_, std::strerror(errno));
    }
    size_ += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace iket::cli
