#include "supervisor/installation.h"

#include <limits.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace iket::supervisor {
namespace {

namespace fs = std::filesystem;

// A file of ours, by its name in the lib folder beside this program's folder.
Result<std::string> FindOurs(const char* name) {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return Fail(ErrorKind::kSystem, "/proc/self/exe: {}", std::strerror(errno));
  const fs::path program(std::string(self, static_cast<size_t>(length)));
  return Readable(program.parent_path().parent_path() / "lib" / name);
}

}  // namespace

Result<std::string> Readable(const std::string& path) {
  if (access(path.c_str(), R_OK) == 0) return path;
  return Fail(ErrorKind::kSystem, "{}: {}; it belongs beside the program's folder, in lib/", path,
              std::strerror(errno));
}

Result<std::string> FindCollector() { return FindOurs("libiket_inject.so"); }

Result<std::string> FindSoftwareDevice() { return FindOurs("iket-sim/libcuda.so.1"); }

Result<std::string> FindTrialImage() { return FindOurs("iket/trial.fatbin"); }

}  // namespace iket::supervisor
