#include "inject/guest.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "inject/driver.h"
#include "inject/host_marks.h"
#include "inject/own_process.h"
#include "inject/ring_room.h"
#include "inject/say.h"
#include "inject/settings.h"
#include "session/control.h"
#include "session/finish.h"

namespace iket::inject {
namespace {

constexpr char kDefaultFolder[] = "iket_output";

std::atomic<Guest*> g_guest{nullptr};
std::atomic<bool> g_off{false};

// argv as the kernel keeps it.
std::vector<std::string> CommandLine() {
  std::vector<std::string> words;
  std::FILE* file = std::fopen("/proc/self/cmdline", "re");
  if (file == nullptr) return words;
  char* line = nullptr;
  size_t capacity = 0;
  while (getdelim(&line, &capacity, 0, file) > 0) words.emplace_back(line);
  std::free(line);
  std::fclose(file);
  return words;
}

// The program may go to another folder.
void MakeAbsolute(std::string& path) {
  char* const absolute = realpath(path.c_str(), nullptr);
  if (absolute != nullptr) path = absolute;
  std::free(absolute);
}

bool Exists(const std::string& path) {
  struct stat status{};
  return lstat(path.c_str(), &status) == 0;
}

// True if the other end of a connection has been closed.
bool HungUp(int socket) {
  pollfd polled{.fd = socket, .events = 0, .revents = 0};
  return poll(&polled, 1, 0) > 0 && (polled.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace

Guest* Guest::Existing() noexcept {
  Guest* guest = g_guest.load(std::memory_order_acquire);
  return guest != nullptr && IsOwnProcess() ? guest : nullptr;
}

bool Guest::MayTrace() noexcept {
  if (g_off.load(std::memory_order_relaxed)) return false;
  return g_guest.load(std::memory_order_acquire) == nullptr || Existing() != nullptr;
}

Guest* Guest::Get() noexcept {
  if (g_off.load(std::memory_order_relaxed)) return nullptr;
  if (g_guest.load(std::memory_order_acquire) != nullptr) return Existing();
  static std::mutex mutex;
  try {
    const std::lock_guard lock(mutex);
    if (g_guest.load() != nullptr) return Existing();
    if (g_off.load()) return nullptr;
    // Too early, and not for ever.
    int count = 0;
    if (Real().usable && Real().DeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED) {
      return nullptr;
    }
    auto* guest = new Guest;  // never freed: hooks may run until the very end of the process
    if (guest->Open()) {
      g_guest.store(guest, std::memory_order_release);
      KeepEarlyHostMarks(*guest);
      return guest;
    }
    delete guest;
  } catch (...) {
    Say("out of memory; this process is not traced");
  }
  g_off.store(true);
  return nullptr;
}

bool Guest::Open() {
  if (!Real().usable) {
    Say("this NVIDIA driver lacks functions that tracing needs (525 or later has them); this "
        "process is not traced");
    return false;
  }
  const auto room = ChooseRingRoom();
  if (!room) {
    Say("not traced: " + room.error().message);
    return false;
  }
  layout_ = room->layout;
  if (layout_.ring_bytes < room->wanted_ring_bytes) {
    Say(fmt::format("rings have {} KiB, not {}: all of them may take {} MiB (--memory)",
                    layout_.ring_bytes >> 10, room->wanted_ring_bytes >> 10,
                    room->memory_bytes >> 20));
  }
  memory_bytes_ = room->memory_bytes;
  in_flight_ = room->in_flight;
  is_streamed_ = Setting(session::kEnvStream) == "1";
  if (!IsOwnProcess()) return false;  // from now on, this one
  pid_ = getpid();
  if (!OpenFolder() || !OpenAccount()) return false;
  auto log =
      session::LaunchLog::Create(session::SessionPath(folder_, number_, session::kSuffixLaunches));
  if (log) {
    launch_log_ = std::move(*log);
  } else {
    Say("launches are not logged: " + log.error().message);
  }
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  char folder[4096] = {};
  if (getcwd(folder, sizeof folder) == nullptr) folder[0] = 0;
  Keep(writer_->Append(capture::Session{.pid = static_cast<uint32_t>(pid_),
                                        .tool_version = IKET_VERSION,
                                        .command_line = CommandLine(),
                                        .host = host,
                                        .working_directory = folder,
                                        .start_realtime_ns = session::NowRealtimeNs(),
                                        .start_ns = session::NowNs()}));
  Connect();
  return true;
}

bool Guest::OpenFolder() {
  folder_ = Setting(session::kEnvOutput);
  if (folder_.empty()) folder_ = kDefaultFolder;
  if (folder_ != kTemporaryFolder) {
    mkdir(folder_.c_str(), 0777);  // whoever opens a file in it says why not
    MakeAbsolute(folder_);
    return true;
  }
  const char* const wanted = std::getenv("TMPDIR");
  folder_ = fmt::format("{}/iket-XXXXXX", wanted != nullptr && *wanted != 0 ? wanted : "/tmp");
  if (mkdtemp(folder_.data()) == nullptr) {
    Say(fmt::format("not traced: {}: no temporary folder: {} (TMPDIR)", folder_,
                    std::strerror(errno)));
    return false;
  }
  MakeAbsolute(folder_);
  is_temporary_ = true;
  return true;
}

// Under the first number that is free. What is there already is left alone: the account of the
// program that this process executed before, or of a process of the same pid in another container.
bool Guest::OpenAccount() {
  const auto pid = static_cast<uint32_t>(pid_);
  uint32_t program = 0;
  int made = -1;
  std::string path;
  for (; made < 0 && program < session::kMostPrograms; ++program) {
    number_ = session::NumberOf(pid, program);
    path = session::SessionPath(folder_, number_, session::kSuffixPart);
    errno = EEXIST;
    if (Exists(session::SessionPath(folder_, number_, session::kSuffixCapture))) continue;
    made = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (made < 0 && errno != EEXIST) break;
  }
  if (made < 0) {
    Say(fmt::format("not traced: {}: cannot create the capture: {}", path, std::strerror(errno)));
    return false;
  }
  close(made);
  auto writer = capture::Writer::Create(path);
  if (!writer) {
    Say("not traced: " + writer.error().message);
    unlink(path.c_str());
    return false;
  }
  writer_ = std::move(*writer);
  return true;
}

void Guest::Connect() {
  const std::string socket = Setting(session::kEnvSocket);
  if (!socket.empty()) {
    if (auto connection = session::Connect(socket)) {
      socket_ = Descriptor(*connection);
      socket_path_ = socket;
      supervisor_ = session::PeerOf(*connection);
      supervisor_gone_ = false;
    } else {
      Say("no supervisor (" + connection.error().message + "); rings are read in this process");
    }
  }
  // Without a supervisor nobody reads the rings of a program that executes another.
  const uint32_t before = session::NumberOf(static_cast<uint32_t>(pid_), 0);
  if (number_ == before) return;
  const std::string there = session::SessionPath(folder_, before, "");
  if (supervisor_gone_) {
    Say(
        fmt::format("{}{} is there already: if this process executed another program before, what "
                    "that one recorded is lost, since no supervisor reads it; use iket profile",
                    there, session::kSuffixPart));
    return;
  }
  Note(capture::Severity::kInfo, -1,
       fmt::format("{}* was there already: if this process executed another program before, it is "
                   "that one's",
                   there));
}

void Guest::Keep(Result<void> result) {
  if (!result) Say("the capture is incomplete: " + result.error().message);
}

void Guest::Append(const capture::RingMoment& moment,
                   std::span<const capture::RingContents> rings) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (writer_) Keep(writer_->Append(moment, rings));
  } catch (...) {
    Say("out of memory while rings were saved");
  }
}

uint64_t Guest::chunks_lost() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    return writer_ ? writer_->chunks_lost() : 0;
  } catch (...) {
    return 0;
  }
}

void Guest::Note(capture::Severity severity, int32_t kernel, std::string text) noexcept {
  Append(capture::Note{.severity = severity,
                       .kernel = kernel,
                       .time_ns = session::NowNs(),
                       .text = std::move(text)});
}

bool Guest::Share(const session::RingMemory& memory) noexcept {
  if (!HasSupervisor()) return false;
  try {
    const std::lock_guard lock(socket_mutex_);
    const int socket = socket_.get();
    if (socket < 0) return false;
    session::RingMemory signed_memory = memory;
    signed_memory.pid = number_;
    return session::Send(socket, signed_memory).has_value();
  } catch (...) {
    return false;
  }
}

void Guest::SayFarewell(std::optional<uint64_t> launches) noexcept {
  try {
    const std::lock_guard lock(socket_mutex_);
    if (const int socket = socket_.get(); socket >= 0) {
      const session::Farewell farewell{
          .pid = number_, .rings_read = launches.has_value(), .launches = launches.value_or(0)};
      static_cast<void>(session::Send(socket, farewell));  // it does without
    }
  } catch (...) {
    return;  // and so it does here
  }
}

bool Guest::HasSupervisor() noexcept {
  try {
    const std::lock_guard lock(socket_mutex_);
    if (supervisor_gone_) return false;
    const int socket = socket_.get();
    if (socket >= 0) {
      supervisor_gone_ = HungUp(socket);
      return !supervisor_gone_;
    }
    // The program has closed it.
    if (auto connection = session::Connect(socket_path_)) {
      socket_ = Descriptor(*connection);
      return true;
    }
    // Or removed its name. A parent that lives keeps its pid.
    supervisor_gone_ = supervisor_ == 0 || getppid() != supervisor_;
    return !supervisor_gone_;
  } catch (...) {
    return true;  // out of memory: what there is stays for whoever is there
  }
}

std::optional<std::string> Guest::Ask(std::string_view request) noexcept {
  try {
    if (!HasSupervisor()) return std::nullopt;
    if (request == session::kFlushRequest) is_streamed_ = true;
    const auto answer =
        session::Ask(session::ControlPath(socket_path_), fmt::format("{}{}", request, number_));
    if (answer) return *answer;
    Say(fmt::format("{}not done: {}", request, answer.error().message));
  } catch (...) {
    Say("out of memory; the supervisor was not asked for what the program wants");
  }
  return std::nullopt;
}

bool Guest::AccountIsTaken() noexcept {
  try {
    return !socket_path_.empty() && !HasSupervisor() &&
           !Exists(session::SessionPath(folder_, number_, session::kSuffixPart));
  } catch (...) {
    return false;
  }
}

Result<session::FinishedCapture> Guest::WriteSnapshot(const std::string& path,
                                                      const session::AppendRings& append_rings,
                                                      const session::Times* part) const {
  return session::WriteSnapshot(folder_, number_, path, append_rings, part);
}

Result<std::string> Guest::NewSnapshotPath() {
  if (is_temporary_) {
    return Fail(ErrorKind::kUsage, "no folder for it: name one to iket_embed_open()");
  }
  return session::SessionPath(
      folder_, number_, fmt::format("_snapshot{}.iketcap", next_snapshot_.fetch_add(1)).c_str());
}

void Guest::Discard() {
  {
    const std::lock_guard lock(mutex_);
    writer_.reset();
  }
  unlink(session::SessionPath(folder_, number_, session::kSuffixPart).c_str());
  unlink(session::SessionPath(folder_, number_, session::kSuffixLaunches).c_str());
  rmdir(folder_.c_str());
}

void Guest::Finish() noexcept {
  try {
    if (is_temporary_) return Discard();
    {
      const std::lock_guard lock(mutex_);
      if (!writer_) return;
      Keep(writer_->Finish());
      writer_.reset();
    }
    const session::Ending ending{.end_ns = session::NowNs(),
                                 .end_realtime_ns = session::NowRealtimeNs()};
    const auto finished = session::FinishCapture(folder_, number_, ending,
                                                 [](capture::Writer&) { return Result<void>(); });
    if (!finished) {
      Say("no capture: " + finished.error().message);
    } else if (!finished->incomplete.empty()) {
      Say(finished->path + " is incomplete: " + finished->incomplete);
    }
  } catch (...) {
    Say("out of memory; no capture was written");
  }
}

uint32_t Guest::TakeKernelNumbers(uint32_t count) { return next_kernel_.fetch_add(count); }

}  // namespace iket::inject
