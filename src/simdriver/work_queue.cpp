#include "simdriver/work_queue.h"

#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "simdriver/say.h"

namespace iket::simdriver {

bool Completion::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

void Completion::Wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done_; });
}

void Completion::Finish() {
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void WorkQueue::Submit(Task task) {
  const std::lock_guard lock(mutex_);
  if (!started_) {
    std::thread([self = shared_from_this()] { Work(self); }).detach();
    started_ = true;
  }
  last_ = task.done;
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

std::shared_ptr<Completion> WorkQueue::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

void WorkQueue::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_one();
}

void WorkQueue::Work(const std::shared_ptr<WorkQueue>& queue) {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(queue->mutex_);
      queue->changed_.wait(lock, [&] { return queue->closed_ || !queue->tasks_.empty(); });
      if (queue->tasks_.empty()) return;
      task = std::move(queue->tasks_.front());
      queue->tasks_.pop_front();
    }
    for (const auto& before : task.after) before->Wait();
    try {
      task.run();
    } catch (const std::exception& error) {
      Say(std::string("a task of a stream failed: ") + error.what());
    }
    // What the task holds goes before anybody hears that it is done.
    task.run = nullptr;
    task.done->Finish();
  }
}

}  // namespace iket::simdriver
