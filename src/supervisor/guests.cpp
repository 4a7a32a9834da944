#include "supervisor/guests.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace iket::supervisor {
namespace {

void CloseMemory(const session::RingMemory& memory) {
  close(memory.table);
  close(memory.rings);
}

// A pidfd of who is at the other end; -1 where there is none.
int ProcessBehind(int socket) {
  const pid_t peer = session::PeerOf(socket);
  return peer > 0 ? static_cast<int>(syscall(SYS_pidfd_open, peer, 0)) : -1;
}

}  // namespace

Result<Guests> Guests::Listen(const std::string& path) {
  const auto listener = session::Listen(path);
  if (!listener) return tl::unexpected(listener.error());
  return Guests(*listener);
}

Guests::Guests(Guests&& other) noexcept
    : listener_(std::exchange(other.listener_, -1)),
      connections_(std::exchange(other.connections_, {})),
      contexts_(std::exchange(other.contexts_, {})) {}

Guests::~Guests() {
  if (listener_ >= 0) close(listener_);
  for (Connection& connection : connections_) Close(connection);
  std::ranges::for_each(contexts_, CloseMemory);
}

void Guests::Close(Connection& connection) {
  if (connection.socket >= 0) close(std::exchange(connection.socket, -1));
  if (connection.process >= 0) close(std::exchange(connection.process, -1));
}

std::vector<int> Guests::Descriptors() const {
  std::vector<int> all = {listener_};
  for (const Connection& connection : connections_) {
    // A process's last words are read before its end is looked at.
    all.push_back(connection.socket >= 0 ? connection.socket : connection.process);
  }
  return all;
}

bool Guests::Accept() {
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) {
    ++refused_;
    return false;
  }
  connections_.push_back({.socket = socket, .process = ProcessBehind(socket), .pids = {}});
  return true;
}

bool Guests::Receive(int descriptor) {
  if (descriptor == listener_) return Accept();
  const auto found = std::ranges::find_if(connections_, [&](const Connection& connection) {
    return connection.socket == descriptor || connection.process == descriptor;
  });
  if (found == connections_.end()) return false;
  if (descriptor == found->socket) {
    auto message = session::ReceiveUntrusted(descriptor);
    if (message) {
      Take(*message, *found);
      return true;
    }
    if (message.error().kind != ErrorKind::kSystem) {
      ++refused_;  // its descriptors found no room
      return true;
    }
    close(std::exchange(found->socket, -1));
    // A program may close what it does not know, and goes on.
    if (found->process >= 0) return true;
  } else {
    std::ranges::copy(found->pids, std::back_inserter(ended_));
  }
  Close(*found);
  connections_.erase(found);
  return true;
}

void Guests::Take(const session::Message& message, Connection& from) {
  if (const auto* const farewell = std::get_if<session::Farewell>(&message)) {
    // Nobody speaks for others.
    if (std::ranges::find(from.pids, farewell->pid) != from.pids.end()) {
      farewells_.push_back(*farewell);
    }
    return;
  }
  const auto& memory = std::get<session::RingMemory>(message);
  contexts_.push_back(memory);
  if (std::ranges::find(from.pids, memory.pid) == from.pids.end()) {
    from.pids.push_back(memory.pid);
  }
}

std::vector<session::RingMemory> Guests::ContextsOf(uint32_t pid) const {
  std::vector<session::RingMemory> contexts;
  std::ranges::copy_if(contexts_, std::back_inserter(contexts),
                       [pid](const session::RingMemory& memory) { return memory.pid == pid; });
  return contexts;
}

void Guests::Forget(uint32_t pid) {
  std::erase_if(contexts_, [pid](const session::RingMemory& memory) {
    if (memory.pid == pid) CloseMemory(memory);
    return memory.pid == pid;
  });
}

}  // namespace iket::supervisor
