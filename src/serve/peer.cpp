#include "serve/peer.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <sstream>
#include <string>

namespace iket::serve {
namespace {

// As /proc/net/tcp has it: the address as the machine's own word, the port as a number.
std::optional<std::string> WordOf(int socket, int (*name)(int, sockaddr*, socklen_t*)) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (name(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      address.sin_family != AF_INET) {
    return std::nullopt;
  }
  return fmt::format("{:08X}:{:04X}", address.sin_addr.s_addr, ntohs(address.sin_port));
}

}  // namespace

std::optional<uid_t> UserAtOtherEnd(int socket) {
  const auto here = WordOf(socket, getsockname);
  const auto there = WordOf(socket, getpeername);
  if (!here || !there) return std::nullopt;
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retries;
    uid_t user = 0;
    if (words >> number >> local >> remote >> state >> queues >> timer >> retries >> user &&
        local == *there && remote == *here) {
      return user;
    }
  }
  return std::nullopt;
}

}  // namespace iket::serve
