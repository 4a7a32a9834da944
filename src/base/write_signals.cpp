#include "base/write_signals.h"

#include <cerrno>
#include <ctime>
#include <initializer_list>

namespace iket {

WriteSignalGuard::WriteSignalGuard() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGXFSZ);
  sigaddset(&signals_, SIGPIPE);
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  for (int signal : {SIGXFSZ, SIGPIPE}) {
    if (sigismember(&pending, signal) == 1) sigdelset(&signals_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

WriteSignalGuard::~WriteSignalGuard() {
  const timespec now{};
  while (sigtimedwait(&signals_, nullptr, &now) > 0 || errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace iket
