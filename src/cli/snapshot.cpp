// iket snapshot: writes down what a running program has recorded so far.
#include <dirent.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>

#include "cli/command.h"
#include "cli/read_file.h"
#include "cli/terminal.h"
#include "session/control.h"
#include "session/message.h"

namespace iket::cli {
namespace {

struct Options {
  uint32_t pid = 0;
};

// The socket that a process was given to hand its rings over; empty if it has none.
std::string GuestSocketOf(uint32_t pid) {
  const std::string environment = ReadFile(fmt::format("/proc/{}/environ", pid));
  const std::string wanted = std::string(session::kEnvSocket) + "=";
  std::istringstream variables(environment);
  for (std::string variable; std::getline(variables, variable, '\0');) {
    if (variable.starts_with(wanted)) return variable.substr(wanted.size());
  }
  return "";
}

std::vector<uint32_t> ChildrenOf(uint32_t pid) {
  std::vector<uint32_t> children;
  std::error_code error;
  const std::string tasks = fmt::format("/proc/{}/task", pid);
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    std::istringstream list(ReadFile(task.path().string() + "/children"));
    for (uint32_t child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

Result<int> RunSnapshot(const Options& options) {
  if (access(fmt::format("/proc/{}", options.pid).c_str(), F_OK) != 0) {
    return Fail(ErrorKind::kUsage, "there is no process {}", options.pid);
  }
  std::string socket = GuestSocketOf(options.pid);
  for (const uint32_t child : ChildrenOf(options.pid)) {
    if (socket.empty()) socket = GuestSocketOf(child);
  }
  if (socket.empty()) {
    return Fail(ErrorKind::kUsage,
                "process {} does not run under iket profile, or is another user's: give the number "
                "of the program, or of iket profile",
                options.pid);
  }
  const auto answer = session::Ask(session::ControlPath(socket),
                                   fmt::format("{}{}", session::kSnapshotRequest, options.pid));
  if (!answer) return FailIn("no snapshot", answer.error());
  Print(*answer + "\n");
  return kExitDone;
}

}  // namespace

void AddSnapshot(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "snapshot",
      "Write what a running program has recorded so far, which goes on: iket snapshot PID");
  sub->add_option("pid", options->pid, "Number of the program, of iket profile, or of a child")
      ->required()
      ->type_name("PID");
  sub->footer(
      "Prints the file, a capture beside the final one. iket report says what every warp was "
      "doing.\n"
      "A signal SIGUSR2 to iket profile does the same.");
  sub->callback([options, &run] { run = [options] { return RunSnapshot(*options); }; });
}

}  // namespace iket::cli
