#include "export/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/write_signals.h"

namespace iket::exporter {
namespace {

// Paths that a signal handler may have to unlink: it can take no lock and allocate nothing, so they
// are plain C strings in a fixed array. More open files than slots only lose the clean-up.
constexpr int kSlots = 16;
std::atomic<char*> g_temporaries[kSlots];

int Remember(const std::string& path) {
  char* copy = strdup(path.c_str());
  for (int i = 0; i < kSlots; ++i) {
    char* empty = nullptr;
    if (g_temporaries[i].compare_exchange_strong(empty, copy)) return i;
  }
  free(copy);
  return -1;
}

void Forget(int slot) {
  if (slot >= 0) free(g_temporaries[slot].exchange(nullptr));
}

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

// All of kSignals wait while this runs: a second one must not end the process before its time.
extern "C" void RemoveAndDie(int signal_number) {
  for (auto& temporary : g_temporaries) {
    if (const char* path = temporary.load()) unlink(path);
  }
  // The parent shall see a death by this signal.
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal_number, &action, nullptr);
  raise(signal_number);
  sigset_t this_one;
  sigemptyset(&this_one);
  sigaddset(&this_one, signal_number);
  pthread_sigmask(SIG_UNBLOCK, &this_one, nullptr);
}

std::string Why() { return std::strerror(errno); }

// What a link points at is replaced or made, not the link. False if links go in a circle.
bool FollowLinks(std::string& path) {
  namespace fs = std::filesystem;
  std::error_code why;
  fs::path target = path;
  constexpr int kMostLinks = 40;  // as many as Linux follows
  for (int i = 0; i < kMostLinks && fs::is_symlink(target, why); ++i) {
    // Of a file that is there, the shortest name; canonical() knows none of one that is not.
    const fs::path whole = fs::canonical(target, why);
    target = !why ? whole : target.parent_path() / fs::read_symlink(target, why);
    if (why) break;
  }
  if (fs::is_symlink(target, why)) return false;
  path = target.string();
  return true;
}

}  // namespace

Result<OutputFile> OutputFile::Create(std::string path) {
  std::error_code why;
  const auto status = std::filesystem::status(path, why);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    // A device or a pipe is written to; it cannot be replaced by a file.
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return Fail(ErrorKind::kSystem, "{}: cannot open: {}", path, Why());
    return OutputFile(std::move(path), {}, fd, -1);
  }
  if (!FollowLinks(path)) {
    return Fail(ErrorKind::kSystem, "{}: cannot create: {}; choose another place with -o", path,
                std::strerror(ELOOP));
  }
  std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  // Before the file is there: a signal may come in between.
  const int slot = Remember(temporary);
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    auto error = Fail(ErrorKind::kSystem, "{}: cannot create: {}; choose another place with -o",
                      path, Why());
    Forget(slot);
    return error;
  }
  return OutputFile(std::move(path), std::move(temporary), fd, slot);
}

Result<OutputFile> OutputFile::StandardOutput() {
  const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return Fail(ErrorKind::kSystem, "standard output: cannot write: {}", Why());
  return OutputFile("standard output", {}, fd, -1);
}

OutputFile::OutputFile(std::string path, std::string temporary, int fd, int slot)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd), slot_(slot) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      slot_(std::exchange(other.slot_, -1)),
      bytes_written_(other.bytes_written_) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) {
    close(fd_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }
  Forget(slot_);
}

Result<void> OutputFile::Write(std::string_view bytes) {
  const WriteSignalGuard guard;  // a file size limit is an error to be told, not a death
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return Fail(ErrorKind::kSystem, "{}: cannot write after {} bytes: {}", path_, bytes_written_,
                  Why());
    }
    bytes_written_ += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

std::string OutputFile::folder() const {
  if (temporary_.empty()) return {};
  const std::filesystem::path parent = std::filesystem::path(temporary_).parent_path();
  return parent.empty() ? "." : parent.string();
}

Result<void> OutputFile::Commit() {
  // close() reports what a network file system could not store.
  bool done = close(std::exchange(fd_, -1)) == 0;
  if (done && !temporary_.empty()) done = rename(temporary_.c_str(), path_.c_str()) == 0;
  if (!done) {
    const std::string why = Why();
    if (!temporary_.empty()) unlink(temporary_.c_str());
    return Fail(ErrorKind::kSystem, "{}: cannot finish: {}", path_, why);
  }
  Forget(std::exchange(slot_, -1));
  return {};
}

void RemoveTemporariesOnSignals() {
  struct sigaction action = {};
  action.sa_handler = RemoveAndDie;
  sigemptyset(&action.sa_mask);
  for (int signal_number : kSignals) sigaddset(&action.sa_mask, signal_number);
  for (int signal_number : kSignals) {
    struct sigaction old = {};
    sigaction(signal_number, nullptr, &old);
    if (old.sa_handler == SIG_IGN) continue;  // nohup, background jobs of a shell
    sigaction(signal_number, &action, nullptr);
  }
}

}  // namespace iket::exporter
