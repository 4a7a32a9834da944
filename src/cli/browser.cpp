#include "cli/browser.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

namespace iket::cli {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool IsProgram(const std::string& name) {
  if (name.find('/') != name.npos) return access(name.c_str(), X_OK) == 0;
  std::istringstream folders(Variable("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    folder.append("/").append(name);
    if (access(folder.c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::vector<std::string> CommandOf(const std::string& text, const std::string& address) {
  constexpr std::string_view kPlace = "%s";
  std::vector<std::string> command;
  bool placed = false;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    for (size_t at = word.find(kPlace); at != word.npos;
         at = word.find(kPlace, at + address.size())) {
      word.replace(at, kPlace.size(), address);
      placed = true;
    }
    command.push_back(word);
  }
  if (!placed) command.push_back(address);
  return command;
}

}  // namespace

std::optional<std::vector<std::string>> BrowserCommand(const std::string& address) {
  if (Variable("DISPLAY").empty() && Variable("WAYLAND_DISPLAY").empty()) return std::nullopt;
  std::istringstream browsers(Variable("BROWSER") + ":xdg-open");
  for (std::string browser; std::getline(browsers, browser, ':');) {
    std::vector<std::string> command = CommandOf(browser, address);
    if (command.size() > 1 && IsProgram(command.front())) return command;
  }
  return std::nullopt;
}

Result<void> Start(const std::vector<std::string>& command) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Out of the way of this terminal's Ctrl-C, which is meant for us.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t ours;  // the signal that is ignored here, below
  sigemptyset(&ours);
  sigaddset(&ours, SIGCHLD);
  posix_spawnattr_setsigdefault(&attributes, &ours);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  // posix_spawnp is older than const.
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::signal(SIGCHLD, SIG_IGN);  // nobody waits for it
  pid_t process = 0;
  const int failed =
      posix_spawnp(&process, words.front(), &files, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) {
    return Fail(ErrorKind::kSystem, "{}: cannot be started: {}", command.front(),
                std::strerror(failed));
  }
  return {};
}

}  // namespace iket::cli
