#include "trace/timer_offset.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "trace/timer_widening.h"

namespace iket::trace {
namespace {

// A ring that was read so often was read soon after some end.
constexpr uint32_t kOften = 8;
// An exchange that took longer says nothing, and the two clocks go apart by less in a run.
constexpr int64_t kWidestNs = 1'000'000'000, kPaceNs = 1'000'000'000;

struct Bounds {
  std::optional<int64_t> least, most;
  bool most_by_last = false;
  uint32_t settled = 0;  // readings of one ring, at most

  void AtMost(int64_t offset) { most = std::min(most.value_or(offset), offset); }
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
    of_context.settled = std::max(of_context.settled, stream.settled);
  }
  // By context the newest begin that is known in full.
  std::map<uint32_t, std::pair<uint64_t, uint32_t>> newest;  // when, and the kernel
  for (const WarpSpan& span : spans) {
    if (!span.has_begin || !span.has_end_timer) continue;
    const uint32_t context = context_of_ring[span.ring];
    const auto first = launched.First(context, span.kernel_number);
    const auto found = bounds.find(context);
    if (!first || found == bounds.end()) continue;
    const uint64_t begin_ns = WidenBackwards(span.end_timer_ns, span.begin_timer_low, 0);
    found->second.AtMost(Difference(begin_ns, *first));
    newest[context] = std::max(newest[context], std::pair(begin_ns, span.kernel_number));
  }
  for (const auto& [context, begin] : newest) {
    const auto last = launched.LastOfContext(context, begin.second);
    if (!last) continue;
    bounds[context].AtMost(Difference(begin.first, *last));
    bounds[context].most_by_last = true;
  }

  std::map<uint32_t, int64_t> offsets;
  for (const auto& [context, of_context] : bounds) {
    const int64_t least = *of_context.least;
    const int64_t most = of_context.most.value_or(std::numeric_limits<int64_t>::max());
    if (most < least) continue;
    if (of_context.settled >= kOften) {
      offsets[context] = least;
    } else if (has_session && facts.sessions.front().start_realtime_ns != 0) {
      const capture::Session& session = facts.sessions.front();
      offsets[context] =
          std::clamp(Difference(static_cast<uint64_t>(session.start_realtime_ns), session.start_ns),
                     least, most);
    } else {
      offsets[context] = of_context.most_by_last ? most : least;
    }
  }
  // Better than all that: the two clocks were exchanged. By the last time, which is the nearest to
  // the reading, if it is possible.
  for (const capture::ClockExchange& exchange : facts.exchanges) {
    const auto found = bounds.find(exchange.context);
    const int64_t width = exchange.after_ns - exchange.before_ns;
    if (found == bounds.end() || exchange.before_ns < 0 || width < 0 || width > kWidestNs) continue;
    const int64_t offset = Difference(exchange.timer_ns, exchange.before_ns + width / 2);
    const Bounds& of_context = found->second;
    if (offset >= *of_context.least - kPaceNs &&
        (!of_context.most || offset <= *of_context.most + kPaceNs)) {
      offsets[exchange.context] = offset;
    }
  }
  return offsets;
}

}  // namespace iket::trace
