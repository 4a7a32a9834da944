#include "trace/timer_offset.h"

#include <algorithm>
#include <optional>

#include "trace/timer_widening.h"

namespace iket::trace {
namespace {

struct Bounds {
  std::optional<int64_t> least, most;
  bool followed = false;
};

int64_t Difference(uint64_t timer_ns, int64_t host_ns) {
  return static_cast<int64_t>(timer_ns - static_cast<uint64_t>(host_ns));
}

}  // namespace

std::map<uint32_t, int64_t> TimerOffsets(const capture::Capture& facts,
                                         std::span<const RingStream> streams,
                                         std::span<const WarpSpan> spans,
                                         std::span<const uint32_t> context_of_ring,
                                         const LaunchTimes& launched) {
  const bool has_session = !facts.sessions.empty();
  if (has_session && facts.sessions.front().software_device) return {};
  std::map<uint32_t, Bounds> bounds;
  for (const RingStream& stream : streams) {
    if (!stream.timer_ahead_ns) continue;
    Bounds& of_context = bounds[stream.context];
    of_context.least =
        std::max(of_context.least.value_or(*stream.timer_ahead_ns), *stream.timer_ahead_ns);
    of_context.followed |= stream.followed;
  }
  for (const WarpSpan& span : spans) {
    if (!span.has_begin || !span.has_end_timer) continue;
    const uint32_t context = context_of_ring[span.ring];
    const auto first = launched.First(context, span.kernel_number);
    const auto found = bounds.find(context);
    if (!first || found == bounds.end()) continue;
    const uint64_t begin_ns = WidenBackwards(span.end_timer_ns, span.begin_timer_low, 0);
    const int64_t most = Difference(begin_ns, *first);
    found->second.most = std::min(found->second.most.value_or(most), most);
  }

  std::map<uint32_t, int64_t> offsets;
  for (const auto& [context, of_context] : bounds) {
    const int64_t least = *of_context.least;
    if (of_context.most && *of_context.most < least) continue;
    int64_t offset = least;
    if (!of_context.followed && has_session) {
      const capture::Session& session = facts.sessions.front();
      const int64_t of_day =
          Difference(static_cast<uint64_t>(session.start_realtime_ns), session.start_ns);
      offset = std::clamp(of_day, least, of_context.most.value_or(of_day < least ? least : of_day));
    }
    offsets[context] = offset;
  }
  return offsets;
}

}  // namespace iket::trace
