#include "serve/server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/retry.h"
#include "base/write_signals.h"
#include "serve/peer.h"

namespace iket::serve {
namespace {

std::string Why() { return std::strerror(errno); }

// 128 bits that nobody can guess.
Result<std::string> RandomWord() {
  std::array<unsigned char, 16> bytes{};
  const ssize_t got = Retry([&] { return getrandom(bytes.data(), bytes.size(), 0); });
  if (got != static_cast<ssize_t>(bytes.size())) {
    return Fail(ErrorKind::kSystem, "no random numbers: {}", Why());
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

// In a time that says nothing of where they differ.
bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

}  // namespace

Result<Server> Server::Listen(uint16_t port) {
  auto token = RandomWord();
  if (!token) return tl::unexpected(token.error());
  auto entry = RandomWord();
  if (!entry) return tl::unexpected(entry.error());
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Fail(ErrorKind::kSystem, "no socket: {}", Why());
  Server server(fd, port, std::move(*token), std::move(*entry));
  // A port of ours that ended a moment ago may be had again.
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd, any, size) != 0 || listen(fd, static_cast<int>(kMostConnections)) != 0) {
    const bool taken = errno == EADDRINUSE || errno == EACCES;
    return Fail(taken ? ErrorKind::kUsage : ErrorKind::kSystem,
                "port {} of 127.0.0.1: {}; leave --port out to have one that is free", port, Why());
  }
  if (getsockname(fd, any, &size) != 0) {
    return Fail(ErrorKind::kSystem, "port {} of 127.0.0.1: {}", port, Why());
  }
  server.port_ = ntohs(address.sin_port);
  return server;
}

Server::Server(int socket, uint16_t port, std::string token, std::string entry)
    : socket_(socket), port_(port), token_(std::move(token)), entry_(std::move(entry)) {}

Server::Server(Server&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      port_(other.port_),
      token_(std::move(other.token_)),
      entry_(std::move(other.entry_)),
      resources_(std::move(other.resources_)),
      connections_(std::move(other.connections_)) {}

Server::~Server() {
  if (socket_ >= 0) close(socket_);
}

std::string Server::Address() const {
  return fmt::format("http://127.0.0.1:{}/{}/", port_, token_);
}

std::string Server::Entry() const { return fmt::format("http://127.0.0.1:{}/{}", port_, entry_); }

Result<void> Server::Run() {
  // sendfile to a browser that is gone raises SIGPIPE.
  const WriteSignalGuard guard;
  const Connection::Respond respond = [this](std::string_view untrusted_head, Connection& to) {
    Respond(untrusted_head, to);
  };
  std::vector<pollfd> waiting;
  for (;;) {
    waiting.assign(1, {.fd = socket_, .events = POLLIN, .revents = 0});
    auto next = Clock::time_point::max();
    for (const Connection& connection : connections_) {
      waiting.push_back({.fd = connection.socket(), .events = connection.events(), .revents = 0});
      next = std::min(next, connection.deadline());
    }
    // A millisecond more: not just before the deadline.
    const auto time = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count() + 1;
    const int timeout =
        connections_.empty() ? -1 : static_cast<int>(std::clamp<int64_t>(time, 0, 60'000));
    if (poll(waiting.data(), waiting.size(), timeout) < 0 && errno != EINTR) {
      return Fail(ErrorKind::kSystem, "waiting for the browser: {}", Why());
    }
    const auto now = Clock::now();
    size_t i = 1;
    for (Connection& connection : connections_) {
      if (waiting[i++].revents != 0) connection.Advance(now, respond);
      // One who goes on sending has no more time than others.
      if (!connection.done() && connection.deadline() <= now) connection.Expire(now);
    }
    if (waiting[0].revents != 0) {
      if (auto accepted = Accept(now); !accepted) return accepted;
    }
    connections_.remove_if([](const Connection& connection) { return connection.done(); });
  }
}

// All that wait: most have sent their request by now, and are answered at once.
Result<void> Server::Accept(Clock::time_point now) {
  for (size_t i = 0; i < kMostConnections; ++i) {
    const int fd = accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
    if (fd < 0) return Fail(ErrorKind::kSystem, "port {} of 127.0.0.1: {}", port_, Why());
    if (connections_.size() >= kMostConnections) DropOne();
    Connection& connection = connections_.emplace_back(fd, now);
    connection.Advance(now, [this](std::string_view head, Connection& to) { Respond(head, to); });
  }
  return {};
}

void Server::DropOne() {
  const auto stranger = std::ranges::find(connections_, false, &Connection::is_known);
  connections_.erase(stranger != connections_.end() ? stranger : connections_.begin());
}

bool Server::MayEnter(const Connection& connection) const {
  return UserAtOtherEnd(connection.socket()) == getuid();
}

void Server::Respond(std::string_view untrusted_head, Connection& connection) {
  const auto request = ParseRequest(untrusted_head);
  if (!request) return connection.Refuse(request.error());
  const std::string_view path = request->path.substr(1);
  if (!entry_.empty() && SameSecret(path, entry_) && MayEnter(connection)) {
    entry_.clear();
    connection.SetKnown();
    return connection.Redirect(fmt::format("/{}/", token_));
  }
  const std::string_view token = path.substr(0, token_.size());
  if (!SameSecret(token, token_) || !path.substr(token.size()).starts_with('/')) {
    return connection.Refuse(Status::kNotFound, request->head_only);
  }
  connection.SetKnown();
  const std::string_view name = path.substr(token.size() + 1);
  const auto resource = std::ranges::find(resources_, name, &Resource::name);
  if (resource == resources_.end()) {
    return connection.Refuse(Status::kNotFound, request->head_only);
  }
  connection.Answer(*resource, request->head_only);
}

}  // namespace iket::serve
