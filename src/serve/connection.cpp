#include "serve/connection.h"

#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/retry.h"

namespace iket::serve {
namespace {

// One connection does not keep the others waiting for longer than this takes.
constexpr size_t kMostAtOnce = size_t{1} << 20;

bool WouldWait() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Connection::~Connection() { close(socket_); }

short Connection::events() const { return state_ == State::kAnswer ? POLLOUT : POLLIN; }

void Connection::Advance(Clock::time_point now, const Respond& respond) {
  if (state_ == State::kRequest) Read(now, respond);
  if (state_ == State::kAnswer) Write(now);
  if (state_ == State::kGoodbye) {
    std::array<char, 4096> discarded;
    const ssize_t got = Retry([&] { return recv(socket_, discarded.data(), discarded.size(), 0); });
    if (got == 0 || (got < 0 && !WouldWait())) state_ = State::kDone;
  }
}

void Connection::Expire(Clock::time_point now) {
  // Browsers open connections for later, which need no answer.
  if (state_ != State::kRequest || request_.empty()) {
    state_ = State::kDone;
    return;
  }
  Refuse(Status::kTimeout);
  state_ = State::kAnswer;
  Write(now);
  if (state_ == State::kAnswer) state_ = State::kDone;
}

void Connection::Read(Clock::time_point now, const Respond& respond) {
  std::array<char, kMostHeadBytes> block;
  const size_t room = kMostHeadBytes - request_.size();
  const ssize_t got = Retry([&] { return recv(socket_, block.data(), room, 0); });
  if (got < 0 && WouldWait()) return;
  if (got <= 0) {
    state_ = State::kDone;
    return;
  }
  const size_t seen = request_.size() - std::min(request_.size(), kEndOfHead.size() - 1);
  request_.append(block.data(), static_cast<size_t>(got));
  const size_t end = request_.find(kEndOfHead, seen);
  if (end != request_.npos) {
    // What a body would be is not looked at: ParseRequest refuses those who announce one.
    respond(std::string_view(request_).substr(0, end + kEndOfHead.size()), *this);
  } else if (request_.size() == kMostHeadBytes) {
    Refuse(Status::kHeadTooLarge);
  } else {
    return;
  }
  state_ = State::kAnswer;
  deadline_ = now + kAnswerTime;
}

void Connection::Write(Clock::time_point now) {
  size_t budget = kMostAtOnce;
  const auto sent = [&](ssize_t bytes) {
    if (bytes > 0) {
      budget -= std::min(budget, static_cast<size_t>(bytes));
      deadline_ = now + kAnswerTime;
      return true;
    }
    // A file that shrank meanwhile gives 0: the answer ends before the length that it stated.
    if (bytes == 0 || !WouldWait()) state_ = State::kDone;
    return false;
  };
  for (std::string_view left = std::string_view(head_).substr(head_at_); !left.empty();) {
    const ssize_t bytes =
        Retry([&] { return send(socket_, left.data(), left.size(), MSG_NOSIGNAL); });
    if (!sent(bytes)) return;
    head_at_ += static_cast<size_t>(bytes);
    left.remove_prefix(static_cast<size_t>(bytes));
  }
  while (!rest_.empty()) {
    if (budget == 0) return;
    const ssize_t bytes = Retry(
        [&] { return send(socket_, rest_.data(), std::min(rest_.size(), budget), MSG_NOSIGNAL); });
    if (!sent(bytes)) return;
    rest_.remove_prefix(static_cast<size_t>(bytes));
  }
  while (file_left_ != 0) {
    if (budget == 0) return;
    const ssize_t bytes = Retry([&] {
      return sendfile(socket_, file_, &file_at_, std::min<uint64_t>(file_left_, budget));
    });
    if (!sent(bytes)) return;
    file_left_ -= static_cast<uint64_t>(bytes);
  }
  SayGoodbye(now);
}

// Closed at once, with bytes of the request unread, the answer would be lost on the way.
void Connection::SayGoodbye(Clock::time_point now) {
  shutdown(socket_, SHUT_WR);
  state_ = State::kGoodbye;
  deadline_ = now + kGoodbyeTime;
}

void Connection::Answer(const Resource& resource, bool head_only) {
  head_ = HeadOf({.type = resource.type,
                  .policy = resource.policy,
                  .file_name = resource.file_name,
                  .size = resource.file >= 0 ? resource.size : resource.bytes.size()});
  if (head_only) return;
  if (resource.file < 0) {
    rest_ = resource.bytes;
    return;
  }
  file_ = resource.file;
  file_left_ = resource.size;
}

void Connection::Refuse(Status status, bool head_only) {
  const std::string_view text = TextOf(status);
  head_ = HeadOf({.status = status, .size = text.size()});
  if (!head_only) head_ += text;
}

void Connection::Redirect(std::string_view location) {
  head_ = HeadOf({.status = Status::kSeeOther, .location = location});
}

}  // namespace iket::serve
