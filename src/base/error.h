// error.h: how a room says that something did not work.
//
// Every fallible function returns Result<T>. An Error carries one sentence for a person: what
// happened, where (file, offset, section), and, where somebody can do something, what to do. No
// exception is used for errors; nothing here allocates beyond the message.
#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace iket {

// Decides the exit code of a command (see ExitCode) and nothing else.
enum class ErrorKind {
  kUsage,     // the caller asked for something that makes no sense: exit code 2
  kBadInput,  // bytes that are not what they claim to be: exit code 3
  kSystem,    // the machine refused: a file, a process, the driver: exit code 3
  kNothing,   // the work was done and there is nothing to show: exit code 4
};

struct Error {
  ErrorKind kind = ErrorKind::kBadInput;
  std::string message;
};

template <typename T>
using Result = tl::expected<T, Error>;

// The process exit code that a command ends with for an error of this kind.
int ExitCode(ErrorKind kind);

// Makes the unexpected side of a Result. Example:
//   return Fail(ErrorKind::kBadInput, "{}: section {} ends at {}, past the file's {} bytes", ...);
template <typename... Args>
tl::unexpected<Error> Fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{kind, fmt::format(format, std::forward<Args>(args)...)});
}

// The same with `prefix: ` put before the message of an error that comes from below.
tl::unexpected<Error> FailIn(std::string prefix, Error error);

}  // namespace iket
