#include "profiling_session/exporter.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "inject/never_destroyed.h"

namespace iket::profiling_session {
namespace {

constexpr int kNothingRecorded = 4;  // exit code of iket

struct Place {
  std::string library;  // its folder
};
Place& Here() noexcept { return inject::NeverDestroyed<Place>(); }

std::string Command() {
  if (const char* const named = std::getenv("IKET_COMMAND"); named != nullptr && *named != 0) {
    return named;
  }
  return Here().library + "/../../bin/iket";
}

// What the child starts with: this process's environment, but for what would load other libraries
// into it.
std::vector<char*> Environment() {
  std::vector<char*> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("LD_PRELOAD=")) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  return variables;
}

class Actions {
 public:
  Actions() { posix_spawn_file_actions_init(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() { posix_spawn_file_actions_destroy(&actions_); }

  void Open(int descriptor, const char* path, int flags) {
    posix_spawn_file_actions_addopen(&actions_, descriptor, path, flags, 0600);
  }
  // What the program has open is none of the command's.
  void CloseRest() { posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// With no signal blocked, whatever the calling thread has blocked.
class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

// Its exit code; nothing if the program itself has reaped it, or a signal ended it.
std::optional<int> ExitCodeOf(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return std::nullopt;
  }
  return WIFEXITED(status) ? std::optional(WEXITSTATUS(status)) : std::nullopt;
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line.empty() ? "it does not say why" : line;
}

}  // namespace

void FindExporter() noexcept {
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&FindExporter), &self) == 0) return;
  char* const path = realpath(self.dli_fname, nullptr);
  if (path == nullptr) return;
  try {
    const std::string_view file(path);
    Here().library = file.substr(0, file.rfind('/'));
  } catch (...) {
    Here().library.clear();  // out of memory: the command will be found missing
  }
  std::free(path);
}

Result<bool> ExportJson(const std::string& capture, const std::string& json,
                        const std::string& errors) {
  const std::string command = Command();
  if (access(command.c_str(), X_OK) != 0) {
    return Fail(ErrorKind::kSystem,
                "{}: {}: it makes traces of captures, and belongs beside the folder of this "
                "library (IKET_COMMAND names another; a path that ends in .iketcap needs none)",
                command, std::strerror(errno));
  }
  Actions actions;
  actions.Open(STDIN_FILENO, "/dev/null", O_RDONLY);
  actions.Open(STDOUT_FILENO, "/dev/null", O_WRONLY);
  actions.Open(STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
  actions.CloseRest();
  const Attributes attributes;
  std::vector<std::string> words = {command, "export", "--format", "trace.json",
                                    "-o",    json,     capture};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawn(&child, command.c_str(), actions.get(), attributes.get(),
                                 arguments.data(), Environment().data());
  if (failed != 0) return Fail(ErrorKind::kSystem, "{}: {}", command, std::strerror(failed));
  const auto code = ExitCodeOf(child);
  if (code == kNothingRecorded) return false;
  // The file appears whole or not at all.
  if (access(json.c_str(), R_OK) == 0) return true;
  return Fail(ErrorKind::kSystem, "{} export: {}", command, FirstLine(errors));
}

}  // namespace iket::profiling_session
