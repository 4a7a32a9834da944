#include "supervisor/workers.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

namespace iket::supervisor {

size_t Workers::Count() {
  constexpr size_t kMost = 16;
  if (const char* const said = std::getenv("IKET_DRAIN_THREADS")) {
    return std::clamp<size_t>(std::strtoul(said, nullptr, 10), 1, kMost);
  }
  const size_t cores = std::thread::hardware_concurrency();
  return std::clamp<size_t>(cores, 2, kMost + 1) - 1;
}

Workers::Workers(size_t count) {
  // Signals are for the thread that waits for programs.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (size_t i = 1; i < count; ++i) threads_.emplace_back([this, i] { Work(i); });
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): fewer do it too
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::Run(size_t wanted, const std::function<void(size_t)>& job) {
  wanted = std::clamp<size_t>(wanted, 1, count());
  if (wanted > 1) {
    const std::lock_guard lock(mutex_);
    job_ = &job;
    wanted_ = wanted;
    running_ = wanted - 1;
    ++jobs_;
    begun_.notify_all();
  }
  job(0);
  if (wanted > 1) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return running_ == 0; });
  }
}

void Workers::Work(size_t number) {
  std::unique_lock lock(mutex_);
  for (size_t seen = 0;;) {
    begun_.wait(lock, [&] { return over_ || jobs_ != seen; });
    if (over_) return;
    seen = jobs_;
    if (number >= wanted_) continue;
    const auto& job = *job_;
    lock.unlock();
    job(number);
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace iket::supervisor
