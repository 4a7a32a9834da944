// work_queue.h: tasks in order on a thread of their own, and what others wait for.
//
// A stream is one WorkQueue: its tasks run one after another on its worker, at the same time as
// those of other queues. A task waits for completions of tasks that were submitted before it, on
// any queue, so there is no cycle to hang in.
//
// Workers are detached and all they touch lives for ever or is shared with them: a process may end
// at any moment.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace iket::simdriver {

// Becomes done once, and stays so.
class Completion {
 public:
  bool done() const;
  void Wait() const;
  void Finish();

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool done_ = false;
};
using Completions = std::vector<std::shared_ptr<Completion>>;

class WorkQueue : public std::enable_shared_from_this<WorkQueue> {
 public:
  struct Task {
    std::function<void()> run;  // may throw; what it throws is said and dropped
    Completions after;
    std::shared_ptr<Completion> done;
  };

  // Starts the worker with the first task. Throws what std::thread throws.
  void Submit(Task task);
  // Completes with the last task submitted so far; null if there was none.
  std::shared_ptr<Completion> last() const;
  // The worker ends after what has been submitted.
  void Close();

 private:
  static void Work(const std::shared_ptr<WorkQueue>& queue);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::shared_ptr<Completion> last_;
  bool started_ = false;
  bool closed_ = false;
};

}  // namespace iket::simdriver
