#include "inject/host_marks.h"

#include <sched.h>

#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "inject/never_destroyed.h"
#include "inject/say.h"
#include "session/finish.h"

namespace iket::inject {
namespace {

constexpr size_t kLongestText = 4096;
// So many wait for a guest.
constexpr size_t kMostEarly = 4096;

struct Early {
  std::mutex mutex;
  std::vector<capture::Note> marks;
  uint64_t lost = 0;
};

// Nobody holds it for long; but a child of a fork may have inherited it held, for ever.
bool LockSoon(std::unique_lock<std::mutex>& lock) {
  constexpr int kTries = 10'000;
  for (int i = 0; i < kTries && !lock.owns_lock(); ++i) {
    if (!lock.try_lock()) sched_yield();
  }
  return lock.owns_lock();
}

Early& Get() noexcept { return NeverDestroyed<Early>(); }

}  // namespace

void AddHostMark(const char* text) noexcept {
  if (text == nullptr || !Guest::MayTrace()) return;
  const int64_t now = session::NowNs();
  try {
    capture::Note mark{.severity = capture::Severity::kMarker,
                       .time_ns = now,
                       .text = std::string(text, strnlen(text, kLongestText))};
    {
      std::unique_lock lock(Get().mutex, std::defer_lock);
      if (!LockSoon(lock)) return;
      // Asked under the lock: whoever makes the guest comes for the marks when it is there.
      if (Guest::Existing() == nullptr) {
        if (Get().marks.size() < kMostEarly) {
          Get().marks.push_back(std::move(mark));
        } else {
          ++Get().lost;
          Say("marks of the host are lost: too many before any image with marks was loaded");
        }
        return;
      }
    }
    Guest::Existing()->Append(mark);
  } catch (...) {
    Say("out of memory; a mark of the host is lost");
  }
}

void KeepEarlyHostMarks(Guest& guest) noexcept {
  std::vector<capture::Note> marks;
  uint64_t lost = 0;
  try {
    std::unique_lock lock(Get().mutex, std::defer_lock);
    if (!LockSoon(lock)) return;
    marks.swap(Get().marks);
    lost = std::exchange(Get().lost, 0);
  } catch (...) {
    return;  // no lock can be had: they stay where they are
  }
  if (!marks.empty()) guest.Append(std::span<const capture::Note>(marks));
  if (lost != 0) {
    guest.Append(capture::Counter{"marks of the host before the first image that were lost", lost});
  }
}

}  // namespace iket::inject
