#include "inject/host_marks.h"

#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

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
};
Early& Get() noexcept {
  alignas(Early) static std::byte storage[sizeof(Early)];
  static auto* const kEarly = new (storage) Early;  // never destroyed, and made without memory
  return *kEarly;
}

}  // namespace

void AddHostMark(const char* text) noexcept {
  if (text == nullptr || !Guest::MayTrace()) return;
  const int64_t now = session::NowNs();
  try {
    capture::Note mark{.severity = capture::Severity::kMarker,
                       .time_ns = now,
                       .text = std::string(text, strnlen(text, kLongestText))};
    {
      const std::lock_guard lock(Get().mutex);
      // Asked under the lock: whoever makes the guest comes for the marks when it is there.
      if (Guest::Existing() == nullptr) {
        if (Get().marks.size() < kMostEarly) {
          Get().marks.push_back(std::move(mark));
        } else {
          Say("a mark of the host is lost: too many before any image with marks was loaded");
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
  try {
    const std::lock_guard lock(Get().mutex);
    marks.swap(Get().marks);
  } catch (...) {
    return;  // no lock can be had: they stay where they are
  }
  if (!marks.empty()) guest.Append(std::span<const capture::Note>(marks));
}

}  // namespace iket::inject
