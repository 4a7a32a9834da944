// control.h: how another process of the same user asks a running supervisor for something.
//
// A Unix socket (SOCK_SEQPACKET) beside the one that guests connect to. A connection carries one
// request and one answer, both text. Whoever may enter the socket's folder may ask.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/error.h"

namespace iket::session {

// "snapshot 4711" asks for a snapshot of that process, or of each if it has no rings ("snapshot
// 0"); the answer is the paths of the files, a line each.
inline constexpr std::string_view kSnapshotRequest = "snapshot ";
// The same of one session alone, by its number (NumberOf); so asks a guest for itself.
inline constexpr std::string_view kOwnSnapshotRequest = "own-snapshot ";
// "flush NUMBER": everything that is in the rings of that session goes into its capture now; what
// is written over afterwards is kept. The answer is empty.
inline constexpr std::string_view kFlushRequest = "flush ";

// The control socket of the supervisor whose guests connect to `guests`.
std::string ControlPath(const std::string& guests);

// Asks, and waits up to a minute for the answer. Errors: kSystem (nobody answers), or what the
// other side says (kBadInput).
Result<std::string> Ask(const std::string& path, std::string_view request);

// The answering side.
class ControlSocket {
 public:
  static Result<ControlSocket> Listen(const std::string& path);

  int descriptor() const { return listener_.get(); }  // readable when somebody asks

  // Takes one request and answers it. Never waits longer than a second for somebody who connects
  // and does not ask.
  using Handler = std::function<Result<std::string>(std::string_view untrusted_request)>;
  void Serve(const Handler& handler) const;

 private:
  explicit ControlSocket(Descriptor listener) : listener_(std::move(listener)) {}
  Descriptor listener_;
};

}  // namespace iket::session
