// signals.h: what happens to the supervisor's signals while a program runs.
//
// SIGINT, SIGTERM, SIGHUP and SIGQUIT reach the program while the supervisor goes on to save what
// was recorded. What a terminal sends goes to its whole process group, the program too; what
// somebody sends to us alone is passed on. SIGUSR2 asks for a snapshot and can be polled for.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>

namespace iket::supervisor {

// One at a time in a process.
class SignalGuard {
 public:
  // Until the program runs, the signals wait: none may be lost between fork and exec.
  SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  ~SignalGuard();

  // Everything as it was; also for the child, between fork and exec.
  void Restore() const;
  // The program has been started: what waited goes to it.
  void SetChild(pid_t child) const;
  // It has ended, or never began: nothing is passed on any more.
  void ForgetChild() const;

  // Readable when SIGUSR2 has come; TakeUserSignal() then makes it unreadable again.
  int user_signal() const { return user_signal_; }
  void TakeUserSignal() const;

 private:
  static constexpr std::array kPassedOn = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kPassedOn.size()> before_{};
  sigset_t mask_;
  int user_signal_ = -1;
};

}  // namespace iket::supervisor
