#include "supervisor/supervise.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "capture/software_device.h"
#include "session/finish.h"
#include "session/message.h"
#include "supervisor/driver.h"
#include "supervisor/ring_memory.h"

namespace iket::supervisor {
namespace {

namespace fs = std::filesystem;
using session::RingMemory;

constexpr char kLibraryName[] = "libiket_inject.so";

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

Result<std::string> Readable(const std::string& path) {
  if (access(path.c_str(), R_OK) == 0) return path;
  return Fail(ErrorKind::kSystem, "{}: {}; it belongs beside the program's folder, in lib/", path,
              std::strerror(errno));
}

// A file of ours, by its name in the lib folder beside this program's folder.
Result<std::string> FindOurs(const char* name) {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return Fail(ErrorKind::kSystem, "/proc/self/exe: {}", std::strerror(errno));
  const fs::path program(std::string(self, static_cast<size_t>(length)));
  return Readable(program.parent_path().parent_path() / "lib" / name);
}

// A folder of our own for the socket, removed at the end.
class SocketFolder {
 public:
  Result<void> Create() {
    constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - sizeof "/iket-XXXXXX/s";
    const char* base = getenv("TMPDIR");
    const bool usable = base != nullptr && *base != 0 && std::strlen(base) <= kLongest;
    path_ = fs::absolute(usable ? base : "/tmp").string() + "/iket-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) {
      const int error = errno;
      const std::string folder = std::exchange(path_, {});
      return Fail(ErrorKind::kSystem, "{}: cannot make a folder for a socket: {}; set TMPDIR",
                  folder, std::strerror(error));
    }
    return {};
  }
  SocketFolder() = default;
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;
  ~SocketFolder() {
    if (path_.empty()) return;
    unlink(socket().c_str());
    if (!link_.empty()) unlink(link_.c_str());
    rmdir(path_.c_str());
  }
  std::string socket() const { return path_ + "/s"; }

  // The library under a name that LD_PRELOAD can hold: it takes blanks and colons for separators
  // and expands $. A link beside the socket, where the library's own path has one of those.
  Result<std::string> Preloadable(const std::string& library) {
    if (library.find_first_of(" :$") == std::string::npos) return library;
    link_ = path_ + "/" + kLibraryName;
    if (symlink(fs::absolute(library).c_str(), link_.c_str()) != 0) {
      return Fail(ErrorKind::kSystem, "{}: cannot link to {}: {}", link_, library,
                  std::strerror(errno));
    }
    return link_;
  }

 private:
  std::string path_;
  std::string link_;
};

// SIGINT, SIGTERM, SIGHUP and SIGQUIT reach the program while the supervisor goes on to save what
// was recorded. What a terminal sends goes to its whole process group, the program too; what
// somebody sends to us alone is passed on.
volatile pid_t g_child = 0;
void PassOn(int signal, siginfo_t* info, void*) {
  const bool from_terminal = info->si_code == SI_KERNEL;
  if (!from_terminal && g_child > 0) kill(g_child, signal);
}

// Until the program runs, the signals wait: none may be lost between fork and exec.
class SignalGuard {
 public:
  SignalGuard() {
    sigset_t wait;
    sigemptyset(&wait);
    for (int signal : kSignals) sigaddset(&wait, signal);
    sigprocmask(SIG_BLOCK, &wait, &mask_);
    struct sigaction pass{};
    pass.sa_sigaction = PassOn;
    pass.sa_flags = SA_RESTART | SA_SIGINFO;
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &pass, &before_[i]);
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  ~SignalGuard() { Restore(); }
  // Everything as it was; also for the child, between fork and exec.
  void Restore() const {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }
  // The program has been started: what waited goes to it.
  void SetChild(pid_t child) const {
    g_child = child;
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
  sigset_t mask_;
};

struct Guest {
  int connection = -1;
  std::vector<RingMemory> contexts;
};

// Takes connections and messages until the program has ended and all that was sent is read.
class Mailbox {
 public:
  explicit Mailbox(int listener) : listener_(listener) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox() {
    close(listener_);
    for (Guest& guest : guests_) {
      if (guest.connection >= 0) close(guest.connection);
      for (RingMemory& memory : guest.contexts) {
        close(memory.table);
        close(memory.rings);
      }
    }
  }

  // Waits up to `timeout_ms` (-1: for ever) for `other` to become readable or for something to do;
  // returns true when `other` is readable.
  bool Serve(int other, int timeout_ms) {
    served_ = false;
    std::vector<pollfd> polled = {{other, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Guest& guest : guests_) {
      if (guest.connection >= 0) polled.push_back({guest.connection, POLLIN, 0});
    }
    if (poll(polled.data(), polled.size(), timeout_ms) <= 0) return false;
    if (polled[1].revents != 0) {
      const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection >= 0) guests_.push_back({.connection = connection, .contexts = {}});
    }
    for (size_t i = 2; i < polled.size(); ++i) {
      if (polled[i].revents != 0) Receive(polled[i].fd);
    }
    served_ = polled[1].revents != 0 || std::any_of(polled.begin() + 2, polled.end(),
                                                    [](const pollfd& p) { return p.revents != 0; });
    return polled[0].revents != 0;
  }
  bool served() const { return served_; }

  std::vector<RingMemory> ContextsOf(uint32_t pid) const {
    std::vector<RingMemory> contexts;
    for (const Guest& guest : guests_) {
      for (const RingMemory& memory : guest.contexts) {
        if (memory.pid == pid) contexts.push_back(memory);
      }
    }
    return contexts;
  }

 private:
  void Receive(int connection) {
    const auto guest = std::find_if(guests_.begin(), guests_.end(),
                                    [&](const Guest& g) { return g.connection == connection; });
    auto message = session::ReceiveUntrusted(connection);
    if (message) {
      guest->contexts.push_back(*message);
    } else if (message.error().kind == ErrorKind::kSystem) {
      close(connection);
      guest->connection = -1;
    }
  }

  int listener_;
  bool served_ = false;
  std::vector<Guest> guests_;
};

// The child's side: environment, then the program. Returns only if exec failed.
[[noreturn]] void Execute(const std::string& program, const Options& options,
                          const std::string& library, const std::string& socket, int error_pipe) {
  const char* preload = getenv("LD_PRELOAD");
  const std::string preloaded =
      preload != nullptr && *preload != 0 ? library + ":" + preload : library;
  setenv("LD_PRELOAD", preloaded.c_str(), 1);
  setenv(session::kEnvSocket, socket.c_str(), 1);
  setenv(session::kEnvOutput, fs::absolute(options.output_folder).c_str(), 1);
  setenv(session::kEnvRingBytes, fmt::format("{}", options.ring_bytes).c_str(), 1);
  if (!options.driver.empty()) {
    const std::string folder = fs::path(options.driver).parent_path();
    const char* others = getenv("LD_LIBRARY_PATH");
    setenv("LD_LIBRARY_PATH", others != nullptr ? (folder + ":" + others).c_str() : folder.c_str(),
           1);
  }
  std::vector<char*> arguments;
  for (const std::string& word : options.command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  const int error = errno;
  if (write(error_pipe, &error, sizeof error) != sizeof error) _exit(127);
  _exit(127);
}

// Pids of which the folder holds a file with this suffix.
std::vector<uint32_t> PidsOf(const std::string& folder, std::string_view suffix) {
  std::vector<uint32_t> pids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    unsigned pid = 0;
    int end = 0;
    if (std::sscanf(name.c_str(), "iket_pid_0x%x%n", &pid, &end) == 1 &&
        name.substr(static_cast<size_t>(end)) == suffix) {
      pids.push_back(pid);
    }
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

// Reads the rings of all contexts of one guest. What cannot be read is a note, not an error.
class RingReader {
 public:
  explicit RingReader(const std::string& driver) : path_(driver) {}

  Result<void> Append(const std::vector<RingMemory>& contexts, bool live, capture::Writer& writer) {
    Result<void> result;
    for (const RingMemory& memory : contexts) {
      if (!driver_) driver_ = Driver::Open(path_);
      auto done = *driver_ ? AppendRingMemory(**driver_, memory, live, 0, writer)
                           : Result<void>(tl::unexpected(driver_->error()));
      if (done) continue;
      warnings.push_back(fmt::format("rings of context {} of process {} not read: {}",
                                     memory.context, memory.pid, done.error().message));
      auto noted = writer.Append(capture::Note{.severity = capture::Severity::kWarning,
                                               .time_ns = session::NowNs(),
                                               .text = warnings.back()});
      if (!noted && result) result = noted;
    }
    return result;
  }
  std::vector<std::string> warnings;

 private:
  std::string path_;
  std::optional<Result<Driver>> driver_;
};

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

Result<Outcome> Supervise(const Options& options) {
  if (options.command.empty()) return Fail(ErrorKind::kUsage, "no command");
  const auto program = ResolveCommand(options.command.front());
  if (!program) return tl::unexpected(program.error());
  const auto library = options.library.empty() ? FindOurs(kLibraryName) : Readable(options.library);
  if (!library) return tl::unexpected(library.error());
  SocketFolder folder;
  if (auto made = folder.Create(); !made) return tl::unexpected(made.error());
  const auto preload = folder.Preloadable(*library);
  if (!preload) return tl::unexpected(preload.error());
  const auto listener = session::Listen(folder.socket());
  if (!listener) return tl::unexpected(listener.error());
  Mailbox mailbox(*listener);

  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) {
    return Fail(ErrorKind::kSystem, "pipe: {}", std::strerror(errno));
  }
  const SignalGuard signals;
  const pid_t child = fork();
  if (child < 0) return Fail(ErrorKind::kSystem, "fork: {}", std::strerror(errno));
  if (child == 0) {
    signals.Restore();
    Execute(*program, options, *preload, folder.socket(), error_pipe[1]);
  }
  signals.SetChild(child);
  close(error_pipe[1]);
  int exec_error = 0;
  const bool failed = read(error_pipe[0], &exec_error, sizeof exec_error) == sizeof exec_error;
  close(error_pipe[0]);
  if (failed) {
    waitpid(child, nullptr, 0);
    g_child = 0;
    return Fail(ErrorKind::kUsage, "{}: cannot be run: {}", *program, std::strerror(exec_error));
  }

  const int ended = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (ended < 0) return Fail(ErrorKind::kSystem, "pidfd_open: {}", std::strerror(errno));
  while (!mailbox.Serve(ended, -1)) {
  }
  close(ended);
  do {
    mailbox.Serve(-1, 0);
  } while (mailbox.served());
  int status = 0;
  waitpid(child, &status, 0);
  g_child = 0;

  Outcome outcome;
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  // Guests that lost us (a daemon closes descriptors that it does not know) finish on their own.
  for (uint32_t pid : PidsOf(options.output_folder, session::kSuffixCapture)) {
    outcome.captures.push_back(
        session::SessionPath(options.output_folder, pid, session::kSuffixCapture));
  }
  RingReader rings(options.driver);
  for (uint32_t pid : PidsOf(options.output_folder, session::kSuffixPart)) {
    session::Ending ending{.end_ns = session::NowNs(), .end_realtime_ns = session::NowRealtimeNs()};
    const bool is_child = pid == static_cast<uint32_t>(child);
    if (is_child) {
      ending.exit_status = WIFEXITED(status) ? outcome.exit_code : -1;
      ending.signal = outcome.signal;
    }
    const bool live = !is_child && kill(static_cast<pid_t>(pid), 0) == 0;
    const auto finished =
        session::FinishCapture(options.output_folder, pid, ending, [&](capture::Writer& writer) {
          return rings.Append(mailbox.ContextsOf(pid), live, writer);
        });
    if (!finished) {
      outcome.warnings.push_back(finished.error().message);
      continue;
    }
    outcome.captures.push_back(finished->path);
    if (!finished->incomplete.empty()) {
      outcome.warnings.push_back(
          fmt::format("{}: incomplete: {}", finished->path, finished->incomplete));
    }
  }
  outcome.warnings.insert(outcome.warnings.end(), rings.warnings.begin(), rings.warnings.end());
  return outcome;
}

std::string WhyNoGpu(const std::string& driver) {
  const auto opened = Driver::Open(driver);
  return opened ? "" : opened.error().message;
}

Result<GpuList> ListGpus(const std::string& path) {
  const auto driver = Driver::Open(path);
  if (!driver) return tl::unexpected(driver.error());
  GpuList list;
  int version = 0, count = 0;
  if (driver->DriverGetVersion(&version) == CUDA_SUCCESS) {
    list.driver_version = static_cast<uint32_t>(version);
  }
  if (const CUresult result = driver->DeviceGetCount(&count); result != CUDA_SUCCESS) {
    return driver->Failure("cuDeviceGetCount", result);
  }
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    char name[256] = "";
    if (driver->DeviceGet(&device, i) != CUDA_SUCCESS) continue;
    driver->DeviceGetName(name, sizeof name, device);
    const auto attribute = [&](CUdevice_attribute which) {
      int value = 0;
      driver->DeviceGetAttribute(&value, which, device);
      return static_cast<uint32_t>(value);
    };
    list.gpus.push_back(
        {.name = name,
         .simulated = std::string_view(name).starts_with(capture::kSoftwareDeviceName),
         .sm = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
               attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
         .sm_count = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)});
  }
  return list;
}

Result<std::string> FindCollector() { return FindOurs(kLibraryName); }

Result<std::string> FindSoftwareDevice() { return FindOurs("iket-sim/libcuda.so.1"); }

}  // namespace iket::supervisor
