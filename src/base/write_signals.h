// write_signals.h: keeps the signals that a failing write raises in this thread (SIGXFSZ: file size
// limit, SIGPIPE) from being delivered: they would end a program that never asked for a capture.
// What was pending before is the program's own and stays.
#pragma once

#include <csignal>

namespace iket {

class WriteSignalGuard {
 public:
  WriteSignalGuard();
  ~WriteSignalGuard();
  WriteSignalGuard(const WriteSignalGuard&) = delete;
  WriteSignalGuard& operator=(const WriteSignalGuard&) = delete;

 private:
  sigset_t signals_;
  sigset_t before_;
};

}  // namespace iket
