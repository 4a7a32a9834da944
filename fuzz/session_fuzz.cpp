// What comes from a traced process: its launch log, its messages, its own account, its rings. The
// first byte says which; the rest is that. What must hold: nothing is read past what is there,
// every entry is in the list, lost or was never written wholly, and no descriptor stays open.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "capture/reader.h"
#include "mutate_capture.h"
#include "session/finish.h"
#include "session/launch_log.h"
#include "session/message.h"
#include "session/ring_follower.h"

namespace {

using iket::Result;
namespace capture = iket::capture;
namespace session = iket::session;
using Bytes = std::span<const uint8_t>;

void Require(bool holds) {
  if (!holds) std::abort();
}

// A file in memory that holds `bytes`.
class MemoryFile {
 public:
  explicit MemoryFile(Bytes bytes) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    Require(fd_ >= 0);
    Require(write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  int fd() const { return fd_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

void ReadLog(Bytes bytes) {
  const MemoryFile file(bytes);
  const auto log = session::LaunchLog::Open(file.path());
  if (!log) return;
  const auto launches = log->Launches();
  Require(launches.size() * sizeof(session::LaunchEntry) <= bytes.size());
  for (size_t i = 1; i < launches.size(); ++i) {
    Require(launches[i - 1].sequence < launches[i].sequence);
  }
  (void)log->lost();
}

// The first byte says how many descriptors go along; packets of at most 64 bytes.
void ReceiveMessages(Bytes bytes) {
  int ends[2];
  Require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  const int first_free = dup(ends[0]);
  close(first_free);
  while (bytes.size() >= 2) {
    const size_t descriptors = bytes[0] % 12;
    const size_t size = std::min<size_t>(bytes[1] % 64, bytes.size() - 2);
    iovec part{const_cast<uint8_t*>(bytes.data()) + 2, size};
    bytes = bytes.subspan(2 + size);
    alignas(cmsghdr) char control[CMSG_SPACE(12 * sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (descriptors != 0) {
      header.msg_control = control;
      header.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
      for (size_t i = 0; i < descriptors; ++i) {
        std::memcpy(CMSG_DATA(rights) + i * sizeof(int), &ends[1], sizeof(int));
      }
    }
    Require(sendmsg(ends[0], &header, MSG_NOSIGNAL) >= 0);
    const auto message = session::ReceiveUntrusted(ends[1]);
    if (message) {
      if (const auto* const memory = std::get_if<session::RingMemory>(&*message)) {
        Require(descriptors == 2 && memory->table >= 0 && memory->rings >= 0);
        close(memory->table);
        close(memory->rings);
      } else {
        Require(descriptors == 0);
      }
    }
  }
  const int still_free = dup(ends[0]);
  Require(still_free == first_free);
  for (const int fd : {still_free, ends[0], ends[1]}) close(fd);
}

// Readings of a ring of 64 records: of each a byte that says whether it is quiet, a header, the
// memory.
void FollowRing(Bytes bytes) {
  constexpr size_t kRecords = 64;
  session::RingFollower follower(kRecords);
  uint64_t end = 0, given = 0;
  while (!bytes.empty()) {
    iket::ring::RingHeader header{};
    std::vector<iket::ring::Record> memory(kRecords);
    const bool quiet = (bytes[0] & 1) != 0;
    bytes = bytes.subspan(1);
    const auto take = [&bytes](void* to, size_t size) {
      size = std::min(size, bytes.size());
      std::memcpy(to, bytes.data(), size);
      bytes = bytes.subspan(size);
    };
    take(&header, sizeof header);
    take(memory.data(), memory.size() * sizeof memory[0]);
    const auto row = follower.Follow(3, header, memory, quiet);
    if (!row) continue;
    const size_t count = row->older.size() + row->newer.size();
    Require(count <= kRecords && row->written % sizeof memory[0] == 0);
    const uint64_t last = row->written / sizeof memory[0];
    Require(last >= count && last - count >= end);
    end = last;
    given += count;
    Require(follower.given() == given && follower.lost() == end - given);
  }
}

// Two bytes of length of the launch log, the log, and the rest is the account.
void Finish(Bytes bytes) {
  if (bytes.size() < 2) return;
  static const std::string kFolder = [] {
    char name[] = "/dev/shm/iket_fuzz_XXXXXX";
    Require(mkdtemp(name) != nullptr);
    return std::string(name);
  }();
  static const bool kRemovedAtExit = std::atexit([] { rmdir(kFolder.c_str()); }) == 0;
  Require(kRemovedAtExit);
  const size_t log_bytes = std::min<size_t>(bytes[0] | bytes[1] << 8, bytes.size() - 2);
  const auto put = [](const char* suffix, Bytes content) {
    std::FILE* file = std::fopen(session::SessionPath(kFolder, 1, suffix).c_str(), "wb");
    Require(file != nullptr);
    Require(std::fwrite(content.data(), 1, content.size(), file) == content.size());
    std::fclose(file);
  };
  const Bytes log = bytes.subspan(2, log_bytes);
  const Bytes account = bytes.subspan(2 + log_bytes);
  put(session::kSuffixLaunches, log);
  put(session::kSuffixPart, account);
  const auto finished =
      session::FinishCapture(kFolder, 1, {.exit_status = 0}, [](auto&) { return Result<void>(); });
  if (finished) {
    const auto reader = capture::Reader::Open(finished->path);
    Require(reader.has_value());
    // Whatever the account was, what is made of it is a whole capture.
    const auto& damage = reader->capture().damage;
    Require(damage.chunks_damaged == 0 && damage.chunks_malformed == 0 && !damage.cut);
  }
  for (const char* suffix :
       {session::kSuffixPart, session::kSuffixLaunches, session::kSuffixCapture}) {
    unlink(session::SessionPath(kFolder, 1, suffix).c_str());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Bytes rest(data + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      ReadLog(rest);
      break;
    case 1:
      ReceiveMessages(rest);
      break;
    case 2:
      Finish(rest);
      break;
    default:
      FollowRing(rest);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  // An account alone, behind an empty launch log, is a capture.
  constexpr size_t kBefore = 3;
  if (size > kBefore && data[0] % 4 == 2 && data[1] == 0 && data[2] == 0 && seed % 8 != 0) {
    return kBefore +
           iket::fuzz::MutateCapture(data + kBefore, size - kBefore, max_size - kBefore, seed);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
