// message.h: what a guest tells its supervisor, over a Unix socket (SOCK_SEQPACKET, one packet
// each).
//
// There are two messages: "this context has rings, here is their memory", and "this process is
// about to end", so that who reads the rings can make ready meanwhile, or need not: where nothing
// runs any more the guest has read them itself, which saves the supervisor a CUDA context of its
// own. Everything else the guest
// writes into its own capture file. The two file descriptors are shareable handles of device memory
// (cuMemExportToShareableHandle): the supervisor holds them, so that the rings outlive the guest.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <variant>

#include "base/error.h"

namespace iket::session {

// Environment of a guest. Set by `iket profile`; a library preloaded by hand works without them.
inline constexpr char kEnvSocket[] = "IKET_SOCKET";  // path of the supervisor's socket
inline constexpr char kEnvOutput[] = "IKET_OUTPUT";  // folder of the capture files
inline constexpr char kEnvRingBytes[] = "IKET_RING_BYTES";
inline constexpr char kEnvFlight[] = "IKET_FLIGHT";       // "1": rings in the host's memory
inline constexpr char kEnvStream[] = "IKET_STREAM";       // "1": rings are read while kernels run
inline constexpr char kEnvMapEarly[] = "IKET_MAP_EARLY";  // "1": before there is code to record
inline constexpr char kEnvMemoryBytes[] = "IKET_MEMORY_BYTES";  // the most that rings may take

struct RingMemory {
  uint32_t pid = 0;         // NumberOf()
  uint32_t context = 0;     // index, as in the capture
  uint32_t ring_bytes = 0;  // ring::Layout
  uint32_t sm_count = 0;
  bool in_host = false;  // the descriptors are memory files, else handles of device memory
  std::array<uint8_t, 16> device_uuid{};
  // Descriptors; owned by whoever holds the message.
  int table = -1;
  int rings = -1;
};

// A process is about to end.
struct Farewell {
  uint32_t pid = 0;  // NumberOf()
  // Its rings are in its account, all of them, as they were when its launch log had so many entries
  // and nothing of that ran any more.
  bool rings_read = false;
  uint64_t launches = 0;

  bool operator==(const Farewell&) const = default;
};

using Message = std::variant<RingMemory, Farewell>;

// A closed connection or a packet that is no message is an error (kSystem, kBadInput).
Result<void> Send(int socket, const RingMemory& message);
Result<void> Send(int socket, const Farewell& message);
Result<Message> ReceiveUntrusted(int socket);

// Connects to a supervisor / listens as one. The descriptor is close-on-exec.
Result<int> Connect(const std::string& path);
Result<int> Listen(const std::string& path);

// The process at the other end of a connection; 0 if that cannot be told.
pid_t PeerOf(int socket);

// The number of a session, in messages and in names of files: the pid, and above it which of the
// programs that the process executes with our library in it: exec keeps the pid. Pids have 22 bits.
inline constexpr uint32_t kMostPrograms = 256;
constexpr uint32_t NumberOf(uint32_t pid, uint32_t program) { return pid | program << 24; }
constexpr uint32_t PidOf(uint32_t number) { return number & 0xffffffu; }

// `<folder>/iket_pid_0x<number>` + suffix.
std::string SessionPath(const std::string& folder, uint32_t number, const char* suffix);
inline constexpr char kSuffixPart[] = ".iketcap.part";  // the guest's own account, being written
inline constexpr char kSuffixLaunches[] = ".launches";  // launch_log.h
inline constexpr char kSuffixCapture[] = ".iketcap";
inline constexpr char kSuffixStreamed[] = "_streamed.iketcap";  // by a supervisor that was killed

}  // namespace iket::session
