#include "session/control.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/retry.h"
#include "session/message.h"

namespace iket::session {
namespace {

constexpr size_t kLongest = 64 << 10;
constexpr char kGood = '+';
constexpr char kBad = '-';
constexpr int kAskedWithin = 1;      // seconds
constexpr int kAnsweredWithin = 60;  // a snapshot copies all rings and packs them

void WaitAtMost(int socket, int seconds) {
  const timeval time{.tv_sec = seconds, .tv_usec = 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

bool SendText(int socket, std::string_view text) {
  const ssize_t sent = Retry([&] { return send(socket, text.data(), text.size(), MSG_NOSIGNAL); });
  return sent == static_cast<ssize_t>(text.size());
}

// Empty if nothing came.
std::string ReceiveText(int socket) {
  std::vector<char> text(kLongest);
  const ssize_t got = Retry([&] { return recv(socket, text.data(), text.size(), 0); });
  return got <= 0 ? std::string() : std::string(text.data(), static_cast<size_t>(got));
}

}  // namespace

std::string ControlPath(const std::string& guests) {
  return guests.substr(0, guests.find_last_of('/') + 1) + "c";
}

Result<std::string> Ask(const std::string& path, std::string_view request) {
  auto connected = Connect(path);
  if (!connected) return tl::unexpected(connected.error());
  const Descriptor socket(*connected);
  WaitAtMost(socket.get(), kAnsweredWithin);
  if (!SendText(socket.get(), request)) {
    return Fail(ErrorKind::kSystem, "{}: cannot ask: {}", path, std::strerror(errno));
  }
  std::string answer = ReceiveText(socket.get());
  if (answer.empty()) {
    return Fail(ErrorKind::kSystem, "{}: no answer within {} seconds", path, kAnsweredWithin);
  }
  const char kind = answer.front();
  answer.erase(0, 1);
  if (kind != kGood) return Fail(ErrorKind::kBadInput, "{}", answer);
  return answer;
}

Result<ControlSocket> ControlSocket::Listen(const std::string& path) {
  auto listener = session::Listen(path);
  if (!listener) return tl::unexpected(listener.error());
  return ControlSocket(Descriptor(*listener));
}

void ControlSocket::Serve(const Handler& handler) const {
  const Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.get() < 0) return;
  WaitAtMost(socket.get(), kAskedWithin);
  const std::string request = ReceiveText(socket.get());
  if (request.empty()) return;
  const Result<std::string> answer = handler(request);
  const std::string text = answer ? kGood + *answer : kBad + answer.error().message;
  SendText(socket.get(), std::string_view(text).substr(0, kLongest));
}

}  // namespace iket::session
