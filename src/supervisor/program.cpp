#include "supervisor/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "session/message.h"
#include "session/selection.h"
#include "supervisor/installation.h"

namespace iket::supervisor {
namespace {

namespace fs = std::filesystem;

// The child's side: environment, then the program. Returns only if exec failed.
[[noreturn]] void Execute(const std::string& program, const Options& options,
                          const std::string& library, const std::string& driver_folder,
                          const std::string& socket, int error_pipe) {
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  if (options.error_to_output) dup2(STDOUT_FILENO, STDERR_FILENO);
  const char* preload = getenv("LD_PRELOAD");
  const std::string preloaded =
      preload != nullptr && *preload != 0 ? library + ":" + preload : library;
  setenv("LD_PRELOAD", preloaded.c_str(), 1);
  setenv(session::kEnvSocket, socket.c_str(), 1);
  setenv(session::kEnvOutput, fs::absolute(options.output_folder).c_str(), 1);
  setenv(session::kEnvRingBytes, fmt::format("{}", options.ring_bytes).c_str(), 1);
  setenv(session::kEnvFlight, options.flight ? "1" : "0", 1);
  setenv(session::kEnvMapEarly, options.map_early ? "1" : "0", 1);
  setenv(session::kEnvStream, options.stream ? "1" : "0", 1);
  unsetenv(session::kEnvMemoryBytes);
  if (options.memory_bytes != 0) {
    setenv(session::kEnvMemoryBytes, fmt::format("{}", options.memory_bytes).c_str(), 1);
  }
  // Not that of somebody who traces us.
  unsetenv(session::kEnvSelection);
  if (!options.selection.empty()) setenv(session::kEnvSelection, options.selection.c_str(), 1);
  if (options.nvtx) setenv(session::kEnvNvtx, library.c_str(), 1);
  if (!driver_folder.empty()) {
    const char* others = getenv("LD_LIBRARY_PATH");
    const std::string path = others != nullptr ? driver_folder + ":" + others : driver_folder;
    setenv("LD_LIBRARY_PATH", path.c_str(), 1);
  }
  std::vector<char*> arguments;
  for (const std::string& word : options.command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  const int error = errno;
  static_cast<void>(!write(error_pipe, &error, sizeof error));
  _exit(127);
}

}  // namespace

Result<pid_t> StartProgram(const std::string& program, const Options& options, SocketFolder& folder,
                           const SignalGuard& signals) {
  const auto library = options.library.empty() ? FindCollector() : Readable(options.library);
  if (!library) return tl::unexpected(library.error());
  const auto preload = folder.Nameable(*library, "libiket_inject.so");
  if (!preload) return tl::unexpected(preload.error());
  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) {
    return Fail(ErrorKind::kSystem, "pipe: {}", std::strerror(errno));
  }
  const pid_t child = fork();
  if (child < 0) {
    const int error = errno;
    close(error_pipe[0]);
    close(error_pipe[1]);
    return Fail(ErrorKind::kSystem, "fork: {}", std::strerror(error));
  }
  if (child == 0) {
    signals.Restore();
    Execute(program, options, *preload, fs::path(options.driver).parent_path(), folder.guests(),
            error_pipe[1]);
  }
  signals.SetChild(child);
  close(error_pipe[1]);
  int exec_error = 0;
  const bool failed = read(error_pipe[0], &exec_error, sizeof exec_error) == sizeof exec_error;
  close(error_pipe[0]);
  if (failed) {
    waitpid(child, nullptr, 0);
    signals.ForgetChild();
    return Fail(ErrorKind::kUsage, "{}: cannot be run: {}", program, std::strerror(exec_error));
  }
  return child;
}

}  // namespace iket::supervisor
