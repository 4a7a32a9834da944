#include "cli/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "export/formats.h"

namespace iket::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "iket_pid_0x";
constexpr std::array<std::string_view, 5> kExtensions = {".iketcap", ".iketcap.part",
                                                         ".iketcap.tmp", ".launches", ".html"};

// What was made of a capture goes with it: beside a new one it would be another run's.
bool IsExport(std::string_view extension) {
  return std::ranges::any_of(exporter::FormatNames(),
                             [&](const std::string& format) { return extension == "." + format; });
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

tl::unexpected<Error> CannotMake(const std::string& path, const std::error_code& why) {
  return Fail(ErrorKind::kSystem, "{}: cannot make the output folder: {}; choose another with -o",
              path, why.message());
}

Result<void> RemoveOurFiles(const std::string& path) {
  std::error_code why;
  for (fs::directory_iterator entry(path, why), end; !why && entry != end; entry.increment(why)) {
    std::error_code ignored;
    if (!IsOurFile(entry->path().filename().string()) || !entry->is_regular_file(ignored)) continue;
    if (!fs::remove(entry->path(), why)) break;
  }
  if (why) return CannotMake(path, why);
  return {};
}

// Held until the process ends, or takes another folder: two runs in one folder would take each
// other's files.
Result<void> Lock(const std::string& path) {
  static int held = -1;
  if (held >= 0) close(held);
  held = -1;
  const int fd = open((fs::path(path) / kMarkerFile).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};  // no marker: not ours yet
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
    held = fd;
    return {};
  }
  close(fd);
  return Fail(ErrorKind::kUsage,
              "{}: another iket profile is using it; choose another with -o, as "
              "-o 'iket_output.%p'",
              path);
}

}  // namespace

Result<std::string> ExpandPattern(const std::string& pattern) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      path += pattern[i];
      continue;
    }
    const char what = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    const size_t close = what == 'q' && pattern.compare(i + 2, 1, "{") == 0
                             ? pattern.find('}', i + 3)
                             : std::string::npos;
    if (what == 'p') {
      path += std::to_string(getpid());
    } else if (what == 'h') {
      path += HostName();
    } else if (what == '%') {
      path += '%';
    } else if (close != std::string::npos) {
      const char* value = std::getenv(pattern.substr(i + 3, close - i - 3).c_str());
      path += value != nullptr ? value : "";
      i = close - 1;
    } else {
      return Fail(ErrorKind::kUsage,
                  "-o {}: what is meant at character {}? Known are %p, %h, %q{{NAME}} and %%",
                  pattern, i + 1);
    }
    ++i;
  }
  if (path.empty()) return Fail(ErrorKind::kUsage, "-o {}: the name comes out empty", pattern);
  return path;
}

Result<void> PrepareOutputFolder(const std::string& path, bool clobber) {
  std::error_code why;
  const fs::file_status status = fs::status(path, why);
  if (fs::exists(status)) {
    if (!fs::is_directory(status)) {
      return Fail(ErrorKind::kUsage, "{}: is a file, not a folder; choose another with -o", path);
    }
    const bool ours = fs::exists(fs::path(path) / kMarkerFile, why);
    const bool empty = fs::is_empty(path, why);
    if (why) return CannotMake(path, why);
    if (!ours && !empty && !clobber) {
      return Fail(
          ErrorKind::kUsage,
          "{}: exists and was not made by iket; choose another folder with -o, or --clobber "
          "to put files there",
          path);
    }
    if (auto locked = Lock(path); !locked) return locked;
    if (auto removed = RemoveOurFiles(path); !removed) return removed;
  } else {
    fs::create_directories(path, why);
    if (why) return CannotMake(path, why);
  }
  const bool locked = fs::exists(fs::path(path) / kMarkerFile, why);
  std::ofstream marker(fs::path(path) / kMarkerFile);
  marker
      << "Made by iket profile, which empties this folder of its own files when it runs again.\n";
  marker.close();
  if (!marker) return CannotMake(path, std::error_code(errno, std::generic_category()));
  return locked ? Result<void>() : Lock(path);
}

Result<void> RemoveOutputFolder(const std::string& path) {
  if (auto locked = Lock(path); !locked) return locked;
  std::error_code why;
  fs::remove_all(path, why);
  if (!why) return {};
  return Fail(ErrorKind::kSystem, "{}: cannot remove the folder: {}", path, why.message());
}

bool IsOurFile(std::string_view name) {
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  const size_t digits = std::min(name.find_first_not_of("0123456789abcdef"), name.size());
  std::string_view extension = name.substr(digits);
  constexpr std::string_view kSnapshot = "_snapshot";
  if (extension.starts_with(kSnapshot)) {
    extension.remove_prefix(kSnapshot.size());
    extension.remove_prefix(std::min(extension.find_first_not_of("0123456789"), extension.size()));
  }
  if (digits == 0 || extension.empty()) return false;
  return std::ranges::find(kExtensions, extension) != kExtensions.end() || IsExport(extension);
}

}  // namespace iket::cli
