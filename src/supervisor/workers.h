// workers.h: a few threads that do one job together, again and again.
//
// Cost: waking them up, some ten microseconds a job; idle ones cost nothing.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace iket::supervisor {

class Workers {
 public:
  // As many as this machine has cores, less one for the program, at least one and at most 16; or as
  // IKET_DRAIN_THREADS says, for tests and measurements.
  static size_t Count();

  // `count` workers, at least one: the caller of Run() is the first of them, so one needs no
  // thread. Where threads cannot be had (a limit) there are fewer. They take no signals.
  explicit Workers(size_t count);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  size_t count() const { return threads_.size() + 1; }

  // Calls `job` with the numbers from 0 to `count` - 1, at most count() of them, each in the thread
  // of that number; returns when all have returned. What they wrote is visible then.
  void Run(size_t count, const std::function<void(size_t)>& job);

 private:
  void Work(size_t number);

  std::vector<std::thread> threads_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable begun_, done_;
  const std::function<void(size_t)>* job_ = nullptr;
  size_t wanted_ = 0;   // workers of the job
  size_t running_ = 0;  // of them, threads that have not returned
  size_t jobs_ = 0;     // begun so far
  bool over_ = false;
};

}  // namespace iket::supervisor
