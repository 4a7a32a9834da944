#include "supervisor/command.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace iket::supervisor {
namespace {

// True for an ELF program without an interpreter: the loader never runs, nothing can be preloaded.
bool IsStaticProgram(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  std::vector<std::byte> head(64 << 10);
  const ssize_t got = read(fd, head.data(), head.size());
  close(fd);
  if (got <= 0) return false;
  const UntrustedBytes bytes(head.data(), static_cast<size_t>(got));
  const auto elf = bytes.Read<Elf64_Ehdr>(0);
  if (!elf || std::memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0) return false;  // a script
  if (elf->e_ident[EI_CLASS] != ELFCLASS64) return false;
  for (uint32_t i = 0; i < elf->e_phnum; ++i) {
    const auto segment = bytes.Read<Elf64_Phdr>(elf->e_phoff + uint64_t{i} * sizeof(Elf64_Phdr));
    if (!segment) return false;
    if (segment->p_type == PT_INTERP) return false;
  }
  return true;
}

}  // namespace

Result<std::string> ResolveCommand(const std::string& command) {
  std::string path = command;
  if (command.find('/') == std::string::npos) {
    path.clear();
    const char* variable = getenv("PATH");
    std::string_view rest = variable != nullptr ? variable : "/usr/bin:/bin";
    while (path.empty() && !rest.empty()) {
      const size_t colon = rest.find(':');
      const std::string_view folder = rest.substr(0, colon);
      rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
      const std::string candidate = std::string(folder.empty() ? "." : folder) + "/" + command;
      struct stat status{};
      if (stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
          access(candidate.c_str(), X_OK) == 0) {
        path = candidate;
      }
    }
    if (path.empty()) {
      return Fail(ErrorKind::kUsage, "{}: command not found; give a path, or check PATH", command);
    }
  }
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) {
    return Fail(ErrorKind::kUsage, "{}: {}", path, std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) return Fail(ErrorKind::kUsage, "{}: not a program", path);
  if (access(path.c_str(), X_OK) != 0) {
    return Fail(ErrorKind::kUsage, "{}: not executable; try chmod +x", path);
  }
  if ((status.st_mode & (S_ISUID | S_ISGID)) != 0) {
    return Fail(ErrorKind::kUsage,
                "{}: set-uid or set-gid: the loader refuses preloaded libraries there; run a copy "
                "without that bit",
                path);
  }
  if (IsStaticProgram(path)) {
    return Fail(ErrorKind::kUsage,
                "{}: statically linked: no library can be preloaded; link libc dynamically", path);
  }
  return path;
}

}  // namespace iket::supervisor
