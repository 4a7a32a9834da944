// lifetime.h: how launches end early: by a time limit, or because the process ends.
//
// IKET_SIM_MAX_SECONDS (a number, fractions allowed) is how long one launch may run; without it,
// for ever. A process may return from main while streams run: the running launches are told to stop
// then, and nothing more is started.
#pragma once

#include <memory>
#include <stop_token>

namespace iket::simdriver {

// True once the process's exit handlers run.
bool ProcessEnds() noexcept;

// Must be called before the first launch; registers the exit handler once.
void WatchForExit();

// One running launch. While it lives, its token may be stopped.
class RunningLaunch {
 public:
  RunningLaunch();
  RunningLaunch(const RunningLaunch&) = delete;
  RunningLaunch& operator=(const RunningLaunch&) = delete;
  ~RunningLaunch();

  std::stop_token token() const;
  // True if it was stopped because its time was over.
  bool timed_out() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  friend class Watchdog;
};

}  // namespace iket::simdriver
