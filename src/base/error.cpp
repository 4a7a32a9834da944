#include "base/error.h"

namespace iket {

int ExitCode(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return 2;
    case ErrorKind::kBadInput:
    case ErrorKind::kSystem:
      return 3;
    case ErrorKind::kNothing:
      return 4;
  }
  return 3;
}

tl::unexpected<Error> FailIn(std::string prefix, Error error) {
  error.message = std::move(prefix) + ": " + error.message;
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace iket
