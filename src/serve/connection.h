// connection.h: one browser, or one who pretends to be one: a request, an answer, the end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "serve/response.h"

namespace iket::serve {

using Clock = std::chrono::steady_clock;

// What can be fetched: bytes in memory, or a file that may be of any size.
struct Resource {
  std::string name = {};       // "" the page itself
  std::string type = {};       // Content-Type
  std::string policy = {};     // Content-Security-Policy, printable ASCII
  std::string file_name = {};  // how it is called if it is kept; "" not said
  std::string_view bytes = {};
  int file = -1;  // >= 0: the file in place of `bytes`
  uint64_t size = 0;
};

class Connection {
 public:
  // A request must be whole, the next bytes be taken, or the other side be gone within these.
  static constexpr auto kRequestTime = std::chrono::seconds(10);
  static constexpr auto kAnswerTime = std::chrono::seconds(60);
  static constexpr auto kGoodbyeTime = std::chrono::seconds(2);

  Connection(int socket, Clock::time_point now) : socket_(socket), deadline_(now + kRequestTime) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  int socket() const { return socket_; }
  Clock::time_point deadline() const { return deadline_; }
  bool done() const { return state_ == State::kDone; }
  // What poll shall wait for.
  short events() const;
  // It has shown the token.
  bool is_known() const { return known_; }
  void SetKnown() { known_ = true; }

  // Goes as far as it can without waiting. `respond` is called once, with the whole head.
  using Respond = std::function<void(std::string_view untrusted_head, Connection&)>;
  void Advance(Clock::time_point now, const Respond& respond);
  // At the deadline.
  void Expire(Clock::time_point now);

  // For `respond`.
  void Answer(const Resource& resource, bool head_only);
  void Refuse(Status status, bool head_only = false);
  void Redirect(std::string_view location);

 private:
  enum class State { kRequest, kAnswer, kGoodbye, kDone };

  void Read(Clock::time_point now, const Respond& respond);
  void Write(Clock::time_point now);
  void SayGoodbye(Clock::time_point now);

  int socket_;
  State state_ = State::kRequest;
  bool known_ = false;
  Clock::time_point deadline_;
  std::string request_;
  std::string head_;       // of the answer, and its text where it is no resource's
  std::string_view rest_;  // of what follows the head, in memory
  int file_ = -1;          // what follows that
  off_t file_at_ = 0;
  uint64_t file_left_ = 0;
  size_t head_at_ = 0;
};

}  // namespace iket::serve
