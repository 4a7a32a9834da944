#include "inject/beside.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace iket::inject {

Beside::~Beside() {
  for (const std::string& file : files_) unlink(file.c_str());
  if (!folder_.empty()) rmdir(folder_.c_str());
}

Result<void> Beside::Ready() {
  struct stat status{};
  if (lstat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return Fail(ErrorKind::kUsage, "{}: there is something that is no plain file", path_);
  }
  std::string folder = path_ + ".XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    return Fail(ErrorKind::kSystem, "{}: cannot be written: {}", path_, std::strerror(errno));
  }
  folder_ = std::move(folder);
  return {};
}

std::string Beside::File(const char* name) { return files_.emplace_back(folder_ + "/" + name); }

Result<void> Beside::Place(const std::string& file) {
  if (std::rename(file.c_str(), path_.c_str()) == 0) return {};
  return Fail(ErrorKind::kSystem, "{}: cannot be replaced: {}", path_, std::strerror(errno));
}

}  // namespace iket::inject
