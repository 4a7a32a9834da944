#include "session/message.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/retry.h"

namespace iket::session {
namespace {

constexpr uint32_t kMagic = 0x32676d69;  // "img2"

struct Packet {
  uint32_t magic;
  uint32_t pid;
  uint32_t context;
  uint32_t ring_bytes;
  uint32_t sm_count;
  uint32_t in_host;
  uint8_t uuid[16];
};

struct FarewellPacket {
  uint32_t magic;
  uint32_t pid;
  uint32_t rings_read;
  uint32_t reserved;
  uint64_t launches;
};
constexpr uint32_t kFarewell = 0x32646e65;  // "end2"
static_assert(sizeof(FarewellPacket) < sizeof(Packet));

constexpr size_t kDescriptors = 2;

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Fail(ErrorKind::kSystem, "{}: too long for a socket", path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<int> Socket() {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return Fail(ErrorKind::kSystem, "socket: {}", std::strerror(errno));
  return fd;
}

}  // namespace

Result<void> Send(int socket, const RingMemory& message) {
  Packet packet{kMagic,
                message.pid,
                message.context,
                message.ring_bytes,
                message.sm_count,
                message.in_host ? 1u : 0u,
                {}};
  std::memcpy(packet.uuid, message.device_uuid.data(), sizeof packet.uuid);
  iovec part{&packet, sizeof packet};
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptors * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(kDescriptors * sizeof(int));
  const int descriptors[kDescriptors] = {message.table, message.rings};
  std::memcpy(CMSG_DATA(rights), descriptors, sizeof descriptors);
  const auto sent = Retry([&] { return sendmsg(socket, &header, MSG_NOSIGNAL); });
  if (sent != static_cast<ssize_t>(sizeof packet)) {
    return Fail(ErrorKind::kSystem, "the supervisor does not answer: {}", std::strerror(errno));
  }
  return {};
}

Result<void> Send(int socket, const Farewell& message) {
  const FarewellPacket packet{.magic = kFarewell,
                              .pid = message.pid,
                              .rings_read = message.rings_read ? 1u : 0u,
                              .reserved = 0,
                              .launches = message.launches};
  if (Retry([&] { return send(socket, &packet, sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT); }) ==
      sizeof packet) {
    return {};
  }
  return Fail(ErrorKind::kSystem, "the supervisor does not answer: {}", std::strerror(errno));
}

Result<Message> ReceiveUntrusted(int socket) {
  Packet packet{};
  iovec part{&packet, sizeof packet};
  // Room for more than we expect, so that a hostile packet cannot leave descriptors unseen.
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const auto received = Retry([&] { return recvmsg(socket, &header, MSG_CMSG_CLOEXEC); });
  if (received < 0) return Fail(ErrorKind::kSystem, "connection lost: {}", std::strerror(errno));

  int descriptors[8];
  size_t count = 0;
  for (cmsghdr* rights = CMSG_FIRSTHDR(&header); rights != nullptr;
       rights = CMSG_NXTHDR(&header, rights)) {
    if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
    const size_t bytes = rights->cmsg_len - CMSG_LEN(0);
    for (size_t i = 0; i + sizeof(int) <= bytes && count < 8; i += sizeof(int)) {
      std::memcpy(&descriptors[count++], CMSG_DATA(rights) + i, sizeof(int));
    }
  }
  // Also a packet that was longer, of which only the beginning was received.
  const bool cut = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  if (received == sizeof(FarewellPacket) && packet.magic == kFarewell && !cut && count == 0) {
    FarewellPacket farewell{};
    std::memcpy(&farewell, &packet, sizeof farewell);
    return Farewell{
        .pid = farewell.pid, .rings_read = farewell.rings_read != 0, .launches = farewell.launches};
  }
  if (received != static_cast<ssize_t>(sizeof packet) || packet.magic != kMagic || cut ||
      count != kDescriptors) {
    for (size_t i = 0; i < count; ++i) close(descriptors[i]);
    if (received == 0) return Fail(ErrorKind::kSystem, "connection closed");
    return Fail(ErrorKind::kBadInput, "a packet that is no message of this version");
  }
  RingMemory message{.pid = packet.pid,
                     .context = packet.context,
                     .ring_bytes = packet.ring_bytes,
                     .sm_count = packet.sm_count,
                     .in_host = packet.in_host != 0,
                     .device_uuid = {},
                     .table = descriptors[0],
                     .rings = descriptors[1]};
  std::memcpy(message.device_uuid.data(), packet.uuid, sizeof packet.uuid);
  return message;
}

Result<int> Connect(const std::string& path) {
  const auto address = AddressOf(path);
  if (!address) return tl::unexpected(address.error());
  auto fd = Socket();
  if (!fd) return fd;
  if (Retry([&] {
        return connect(*fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
      }) != 0) {
    const int error = errno;
    close(*fd);
    return Fail(ErrorKind::kSystem, "{}: {}", path, std::strerror(error));
  }
  return fd;
}

Result<int> Listen(const std::string& path) {
  const auto address = AddressOf(path);
  if (!address) return tl::unexpected(address.error());
  auto fd = Socket();
  if (!fd) return fd;
  if (bind(*fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      listen(*fd, 128) != 0) {
    const int error = errno;
    close(*fd);
    return Fail(ErrorKind::kSystem, "{}: {}", path, std::strerror(error));
  }
  return fd;
}

pid_t PeerOf(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : 0;
}

std::string SessionPath(const std::string& folder, uint32_t number, const char* suffix) {
  return fmt::format("{}/iket_pid_{:#x}{}", folder, number, suffix);
}

}  // namespace iket::session
