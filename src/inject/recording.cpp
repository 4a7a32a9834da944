#include "inject/recording.h"

#include <atomic>
#include <cstddef>
#include <new>

#include "inject/contexts.h"
#include "inject/say.h"
#include "inject/selection.h"

namespace iket::inject {
namespace {

// The windows. Guarded by the mutex, but for `exist` and `open`.
struct Windows {
  std::mutex mutex;
  uint64_t launches = 0;  // counted before now
  uint64_t ranges = 0;    // open
  bool by_program = !Wanted().by_program;
  std::atomic<bool> exist{Wanted().windowed()};
  std::atomic<bool> open{IsOpen()};

  bool IsOpen() const {
    const session::Selection& wanted = Wanted();
    return by_program && (wanted.nvtx.empty() || ranges > 0) && launches >= wanted.first_launch &&
           launches < wanted.end_launch;
  }
  // With the mutex held.
  void Update() {
    const bool now = IsOpen();
    if (now == open.load()) return;
    open.store(now);
    PointImages();
  }
};
Windows& Get() noexcept {
  alignas(Windows) static std::byte storage[sizeof(Windows)];
  static auto* const kWindows = new (storage) Windows;  // never destroyed, and made without memory
  return *kWindows;
}

template <typename Change>
void Apply(const Change& change) noexcept {
  try {
    Windows& windows = Get();
    const std::lock_guard lock(windows.mutex);
    windows.exist.store(true);
    change(windows);
    windows.Update();
  } catch (...) {
    Say("out of memory; a window of the recording is not as it should be");
  }
}

}  // namespace

Turn CountLaunch(bool captured) noexcept {
  Windows& windows = Get();
  if (!windows.exist.load(std::memory_order_relaxed)) return {};
  try {
    Turn turn{.held = std::unique_lock(windows.mutex)};
    // Nothing runs, and nobody may wait while a stream is captured.
    if (captured) return turn;
    windows.Update();
    turn.recorded = windows.open.load();
    ++windows.launches;
    return turn;
  } catch (...) {
    Say("out of memory; a launch is in no window");
    return {};
  }
}

void OpenByProgram() noexcept {
  Apply([](Windows& windows) { windows.by_program = true; });
}
void CloseByProgram() noexcept {
  Apply([](Windows& windows) { windows.by_program = false; });
}
void OpenByRange() noexcept {
  Apply([](Windows& windows) { ++windows.ranges; });
}
void CloseByRange() noexcept {
  Apply([](Windows& windows) { windows.ranges -= windows.ranges > 0 ? 1 : 0; });
}

bool IsRecording() noexcept { return Get().open.load(); }

}  // namespace iket::inject
