#include "simdriver/lifetime.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "simdriver/say.h"

namespace iket::simdriver {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> g_process_ends{false};

// Nothing if there is no limit.
std::optional<Clock::duration> TimeLimit() {
  static const std::optional<Clock::duration> kLimit = []() -> std::optional<Clock::duration> {
    const char* text = std::getenv("IKET_SIM_MAX_SECONDS");
    if (text == nullptr || *text == 0) return std::nullopt;
    char* end = nullptr;
    const double seconds = std::strtod(text, &end);
    // Above this the sum with a point of time would overflow; it is 31 years.
    if (*end != 0 || !(seconds > 0) || seconds > 1e9) {
      Say(std::string("IKET_SIM_MAX_SECONDS is '") + text +
          "', which is no positive number of seconds; launches have no limit");
      return std::nullopt;
    }
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }();
  return kLimit;
}

}  // namespace

struct RunningLaunch::State {
  std::stop_source stop;
  Clock::time_point deadline = Clock::time_point::max();
  std::atomic<bool> timed_out{false};
};

// Knows the running launches. Its thread is started by the first launch that has a limit.
class Watchdog {
 public:
  static Watchdog& Get() {
    static auto* watchdog = new Watchdog;
    return *watchdog;
  }

  void Add(const std::shared_ptr<RunningLaunch::State>& launch) {
    const std::lock_guard lock(mutex_);
    if (launch->deadline != Clock::time_point::max() && !started_) {
      std::thread([this] { Watch(); }).detach();
      started_ = true;
    }
    launches_.insert(launch);
    if (g_process_ends) launch->stop.request_stop();
    changed_.notify_one();
  }

  void Remove(const std::shared_ptr<RunningLaunch::State>& launch) {
    const std::lock_guard lock(mutex_);
    launches_.erase(launch);
  }

  void StopAll() {
    const std::lock_guard lock(mutex_);
    for (const auto& launch : launches_) launch->stop.request_stop();
  }

 private:
  void Watch() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Clock::time_point next = Clock::time_point::max();
      const Clock::time_point now = Clock::now();
      for (const auto& launch : launches_) {
        if (launch->stop.stop_requested()) continue;
        if (launch->deadline <= now) {
          launch->timed_out = true;
          launch->stop.request_stop();
        } else if (launch->deadline < next) {
          next = launch->deadline;
        }
      }
      if (next == Clock::time_point::max()) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, next);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::shared_ptr<RunningLaunch::State>> launches_;
  bool started_ = false;
};

bool ProcessEnds() noexcept { return g_process_ends.load(std::memory_order_relaxed); }

void WatchForExit() {
  static const pid_t kSelf = getpid();
  static const bool kRegistered = std::atexit([] {
                                    g_process_ends = true;
                                    // A forked child runs nothing, and may not wait for a lock that
                                    // a thread of its parent held.
                                    if (getpid() == kSelf) Watchdog::Get().StopAll();
                                  }) == 0;
  if (!kRegistered) Say("cannot register an exit handler; running kernels end with the process");
}

RunningLaunch::RunningLaunch() : state_(std::make_shared<State>()) {
  if (const auto limit = TimeLimit()) state_->deadline = Clock::now() + *limit;
  Watchdog::Get().Add(state_);
}

RunningLaunch::~RunningLaunch() { Watchdog::Get().Remove(state_); }

std::stop_token RunningLaunch::token() const { return state_->stop.get_token(); }

bool RunningLaunch::timed_out() const { return state_->timed_out; }

}  // namespace iket::simdriver
