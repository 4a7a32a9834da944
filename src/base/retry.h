// retry.h: system calls that a signal may interrupt.
#pragma once

#include <cerrno>

namespace iket {

// What `call` returns, called again as long as a signal interrupted it.
template <typename Call>
auto Retry(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace iket
