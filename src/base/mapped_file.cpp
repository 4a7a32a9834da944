#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/evictable.h"

namespace iket {

Result<MappedFile> MappedFile::Open(const std::string& path, const char* what) {
  const auto fail = [&](const char* verb) {
    return Fail(ErrorKind::kSystem, "{}: cannot {} the {}: {}", path, verb, what,
                std::strerror(errno));
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail("open");
  struct stat status{};
  void* address = nullptr;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    address = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  }
  close(fd);
  if (address == MAP_FAILED) return fail("map");
  MappedFile file;
  if (address == nullptr) {
    if (S_ISREG(status.st_mode)) return file;
    return Fail(ErrorKind::kBadInput, "{}: not a {}: {}", path, what,
                S_ISDIR(status.st_mode) ? "it is a folder; name the file in it"
                                        : "it is not a regular file");
  }
  file.bytes_ = {static_cast<std::byte*>(address), static_cast<size_t>(status.st_size)};
  AddEvictable(address, file.bytes_.size());
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  RemoveEvictable(bytes_.data());
  munmap(bytes_.data(), bytes_.size());
}

}  // namespace iket
