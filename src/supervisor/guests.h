// guests.h: the processes that hand over their ring memory, and the descriptors that they sent.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "session/message.h"

namespace iket::supervisor {

// Owns the listening socket, the connections and every descriptor that came.
class Guests {
 public:
  // Listens at `path`. Error: kSystem.
  static Result<Guests> Listen(const std::string& path);
  Guests(Guests&& other) noexcept;
  Guests& operator=(Guests&&) = delete;
  ~Guests();

  // What to poll for reading.
  std::vector<int> Descriptors() const;
  // Reads what has come on one of Descriptors(). False if that was nothing, or could not be taken.
  bool Receive(int descriptor);

  // Ring memory in the order in which it came; of one process, or of all.
  const std::vector<session::RingMemory>& contexts() const { return contexts_; }
  std::vector<session::RingMemory> ContextsOf(uint32_t pid) const;

  // Processes that have handed something over and ended since the last call.
  std::vector<uint32_t> TakeEnded() { return std::exchange(ended_, {}); }
  // What processes have said since the last call that are about to end.
  std::vector<session::Farewell> TakeFarewells() { return std::exchange(farewells_, {}); }
  // Closes what such a process left: its descriptors keep device memory.
  void Forget(uint32_t pid);

  // Connections and messages that could not be taken, for want of descriptors as a rule.
  uint64_t refused() const { return refused_; }

 private:
  struct Connection {
    int socket = -1;
    int process = -1;            // a pidfd, readable when it has ended; -1 none
    std::vector<uint32_t> pids;  // that came in its messages
  };
  explicit Guests(int listener) : listener_(listener) {}
  bool Accept();
  void Close(Connection& connection);
  void Take(const session::Message& message, Connection& from);

  int listener_ = -1;
  std::vector<Connection> connections_;
  std::vector<session::RingMemory> contexts_;
  std::vector<uint32_t> ended_;
  std::vector<session::Farewell> farewells_;
  uint64_t refused_ = 0;
};

}  // namespace iket::supervisor
