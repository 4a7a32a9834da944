#include "inject/recording.h"

#include <atomic>

#include "inject/contexts.h"
#include "inject/never_destroyed.h"
#include "inject/say.h"
#include "inject/selection.h"

namespace iket::inject {
namespace {

struct Windows {
  // Held while one opens or closes, and by each launch meanwhile. Guards `launches`.
  std::mutex mutex;
  uint64_t launches = 0;            // counted before now
  std::atomic<uint64_t> ranges{0};  // open
  std::atomic<bool> by_program{!Wanted().by_program};
  std::atomic<bool> exist{Wanted().windowed()};
  std::atomic<bool> open{IsOpen()};

  bool IsOpen() const {
    const session::Selection& wanted = Wanted();
    return by_program.load() && (wanted.nvtx.empty() || ranges.load() > 0) &&
           launches >= wanted.first_launch && launches < wanted.end_launch;
  }
  // With the mutex held.
  void Update() {
    const bool now = IsOpen();
    if (now == open.load()) return;
    open.store(now);
    PointImages();
  }
};
Windows& Get() noexcept { return NeverDestroyed<Windows>(); }

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

void OpenByProgram() noexcept { Get().by_program.store(true); }
void CloseByProgram() noexcept {
  Windows& windows = Get();
  windows.by_program.store(false);
  windows.exist.store(true);
}
void SettleWindows() noexcept {
  Windows& windows = Get();
  if (!windows.exist.load(std::memory_order_relaxed)) return;
  try {
    const std::lock_guard lock(windows.mutex);
    windows.Update();
  } catch (...) {
    Say("out of memory; a window opens or closes at the next launch");
  }
}
void OpenByRange() noexcept { Get().ranges.fetch_add(1); }
void CloseByRange() noexcept {
  std::atomic<uint64_t>& ranges = Get().ranges;
  uint64_t open = ranges.load();
  while (open > 0 && !ranges.compare_exchange_weak(open, open - 1)) {
  }
}

bool IsRecording() noexcept { return Get().open.load(); }

}  // namespace iket::inject
