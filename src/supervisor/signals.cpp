#include "supervisor/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace iket::supervisor {
namespace {

volatile pid_t g_child = 0;

void PassOn(int signal, siginfo_t* info, void*) {
  const bool from_terminal = info->si_code == SI_KERNEL;
  if (!from_terminal && g_child > 0) kill(g_child, signal);
}

sigset_t UserSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  return set;
}

}  // namespace

SignalGuard::SignalGuard() {
  sigset_t wait = UserSignal();
  for (const int signal : kPassedOn) sigaddset(&wait, signal);
  sigprocmask(SIG_BLOCK, &wait, &mask_);
  struct sigaction pass{};
  pass.sa_sigaction = PassOn;
  pass.sa_flags = SA_RESTART | SA_SIGINFO;
  for (size_t i = 0; i < kPassedOn.size(); ++i) sigaction(kPassedOn[i], &pass, &before_[i]);
  const sigset_t user = UserSignal();
  user_signal_ = signalfd(-1, &user, SFD_CLOEXEC | SFD_NONBLOCK);
}

SignalGuard::~SignalGuard() {
  TakeUserSignal();  // one that nobody looked at must not end us now
  Restore();
  if (user_signal_ >= 0) close(user_signal_);
}

void SignalGuard::Restore() const {
  for (size_t i = 0; i < kPassedOn.size(); ++i) sigaction(kPassedOn[i], &before_[i], nullptr);
  sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

void SignalGuard::SetChild(pid_t child) const {
  g_child = child;
  sigset_t mask = mask_;
  sigaddset(&mask, SIGUSR2);  // comes by user_signal()
  sigprocmask(SIG_SETMASK, &mask, nullptr);
}

void SignalGuard::ForgetChild() const {
  g_child = 0;
  // What is left to do is to save; who wants that to end may say so. A second Ctrl-C is no such
  // wish.
  for (size_t i = 0; i < kPassedOn.size(); ++i) {
    if (kPassedOn[i] == SIGINT) continue;
    sigaction(kPassedOn[i], &before_[i], nullptr);
  }
}

void SignalGuard::TakeUserSignal() const {
  signalfd_siginfo info;
  while (read(user_signal_, &info, sizeof info) > 0) {
  }
}

}  // namespace iket::supervisor
