#include "export/edges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace iket::exporter {
namespace {

constexpr uint64_t kEndOfTime = std::numeric_limits<uint64_t>::max();
// In range_of_end_: a close that is in Model::unmatched_ends.
constexpr uint32_t kUnmatched = trace::kNoRow - 1;

}  // namespace

uint64_t GlobalNs(const trace::Model& model, double trace_ns) {
  // 2^62 on either side of the origin fits both the conversion and the sum.
  constexpr double kLimit = 4.6e18;
  const double clamped = trace_ns > -kLimit ? std::min(trace_ns, kLimit) : -kLimit;  // NaN: below
  const auto offset = static_cast<int64_t>(clamped);
  const uint64_t origin = std::min(model.origin_ns, uint64_t{1} << 62);
  if (offset < 0 && origin < static_cast<uint64_t>(-offset)) return 0;
  return origin + static_cast<uint64_t>(offset);
}

EdgeStream::EdgeStream(const trace::Model& model, size_t edges_per_window, const TrackTree* tracks)
    : model_(model),
      tracks_(tracks),
      range_of_end_(model.events.size(), trace::kNoRow),
      by_begin_(model.warps.size()) {
  const trace::Ranges& ranges = model.ranges;
  for (uint32_t row = 0; row < ranges.size(); ++row) {
    if (ranges.end_event[row] != trace::kNoRow) range_of_end_[ranges.end_event[row]] = row;
  }
  for (uint32_t event : model.unmatched_ends) range_of_end_[event] = kUnmatched;
  std::iota(by_begin_.begin(), by_begin_.end(), 0u);
  std::stable_sort(by_begin_.begin(), by_begin_.end(), [&](uint32_t a, uint32_t b) {
    return model.warps.begin_ns[a] < model.warps.begin_ns[b];
  });
  total_edges_ =
      2 * model.warps.size() + 2 * ranges.size() + model.marks.size() + model.unmatched_ends.size();
  ChooseWindows(std::max<size_t>(edges_per_window, 1));
}

// Cuts time where equal shares of a sample of all edges lie.
void EdgeStream::ChooseWindows(size_t edges_per_window) {
  const size_t stride = std::max<size_t>(edges_per_window / 256, 1);
  const size_t samples_per_window = std::max<size_t>(edges_per_window / stride, 1);
  std::vector<uint64_t> sample;
  for (size_t event = 0; event < model_.events.size(); event += stride) {
    sample.push_back(
        GlobalNs(model_, model_.NsOfWarp(model_.events.warp[event], model_.events.cycles[event])));
  }
  for (size_t warp = 0; warp < model_.warps.size(); warp += stride) {
    sample.push_back(GlobalNs(model_, model_.warps.begin_ns[warp]));
    sample.push_back(GlobalNs(model_, model_.warps.end_ns[warp]));
  }
  std::sort(sample.begin(), sample.end());
  for (size_t i = samples_per_window; i < sample.size(); i += samples_per_window) {
    if (window_ends_.empty() || sample[i] > window_ends_.back()) window_ends_.push_back(sample[i]);
  }
  window_ends_.push_back(kEndOfTime);
}

uint64_t EdgeStream::TrackOf(const Edge& edge) const {
  switch (edge.kind) {
    case EdgeKind::kWarpBegin:
    case EdgeKind::kWarpEnd:
      break;
    case EdgeKind::kRangeBegin:
    case EdgeKind::kRangeEnd:
      return tracks_->OfRange(edge.warp, edge.range);
    case EdgeKind::kMark:
    case EdgeKind::kUnmatchedEnd:
      return tracks_->OfMark(edge.warp, edge.declaration);
  }
  return tracks_->LifeTime(edge.warp);
}

void EdgeStream::Gather(Cursor& cursor, uint64_t end_ns) {
  const trace::Warps& warps = model_.warps;
  const trace::Events& events = model_.events;
  const trace::Ranges& ranges = model_.ranges;
  const uint32_t warp = cursor.warp;

  // Puts the edge into the window if it belongs there.
  const auto take = [&](double trace_ns, EdgeKind kind, uint32_t event, uint32_t range,
                        uint32_t declaration = trace::kNoRow) {
    const uint64_t ns = std::max(cursor.ns, GlobalNs(model_, trace_ns));
    if (ns >= end_ns) return false;
    cursor.ns = ns;
    Edge& edge = gathered_.emplace_back();
    edge = {.ns = ns,
            .payload = event == trace::kNoRow ? 0 : events.payload[event],
            .warp = warp,
            .event = event,
            .range = range,
            .declaration = declaration,
            .kind = kind};
    if (tracks_ != nullptr) edge.track = static_cast<uint32_t>(TrackOf(edge));
    return true;
  };

  if (cursor.stage == Cursor::kBegin) {
    if (!take(warps.begin_ns[warp], EdgeKind::kWarpBegin, trace::kNoRow, trace::kNoRow)) return;
    cursor.stage = Cursor::kEvents;
  }
  if (cursor.stage == Cursor::kEvents) {
    const trace::Launch& launch = model_.launches[warps.launch[warp]];
    const trace::SmClock& clock =
        model_.clocks[model_.devices[launch.device].first_clock + warps.sm[warp]];
    for (; cursor.event < cursor.event_end; ++cursor.event) {
      const uint32_t event = cursor.event;
      const uint32_t declaration = events.declaration[event];
      const trace::EventKind kind = model_.declarations[declaration].kind;
      const double ns = clock.NsOf(events.cycles[event]);
      // What an event does is what ranges say of it: a token of another tool has one kind for both.
      if (const uint32_t range = range_of_end_[event]; range != trace::kNoRow) {
        const bool taken =
            range == kUnmatched
                ? take(ns, EdgeKind::kUnmatchedEnd, event, trace::kNoRow, declaration)
                : take(ns, EdgeKind::kRangeEnd, event, range, declaration);
        if (!taken) return;
      } else if (trace::IsPoint(kind)) {
        if (!take(ns, EdgeKind::kMark, event, trace::kNoRow, declaration)) return;
      } else if (cursor.range < cursor.range_end && ranges.begin_event[cursor.range] == event) {
        if (!take(ns, EdgeKind::kRangeBegin, event, cursor.range, declaration)) return;
        ++cursor.range;
      }  // else deeper than the model's stack, counted there, or an end that other lanes made again
    }
    cursor.stage = Cursor::kUnclosed;
  }
  if (cursor.stage == Cursor::kUnclosed) {
    // Backwards: what was opened last is innermost.
    for (const uint32_t first = warps.first_range[warp]; cursor.range > first; --cursor.range) {
      const uint32_t range = cursor.range - 1;
      if (ranges.end_event[range] != trace::kNoRow) continue;
      const double ns = model_.NsOfWarp(warp, ranges.end_cycles[range]);
      if (!take(ns, EdgeKind::kRangeEnd, trace::kNoRow, range)) return;
    }
    cursor.stage = Cursor::kEnd;
  }
  if (!take(warps.end_ns[warp], EdgeKind::kWarpEnd, trace::kNoRow, trace::kNoRow)) return;
  cursor.stage = Cursor::kDone;
}

// A stable radix sort by time, 11 bits a pass. A window spans few bits, so there are two or three
// passes over data that stays in the L2 cache.
void EdgeStream::SortInto(std::vector<Edge>& window) {
  constexpr unsigned kDigitBits = 11;
  constexpr uint64_t kDigitMask = (1u << kDigitBits) - 1;

  uint64_t first = kEndOfTime, last = 0;
  for (const Edge& edge : gathered_) {
    first = std::min(first, edge.ns);
    last = std::max(last, edge.ns);
  }
  items_.resize(gathered_.size());
  scratch_.resize(gathered_.size());
  for (uint32_t i = 0; i < gathered_.size(); ++i) items_[i] = {gathered_[i].ns - first, i};

  const auto bits = static_cast<unsigned>(std::bit_width(last - first));
  for (unsigned shift = 0; shift < bits; shift += kDigitBits) {
    std::array<uint32_t, kDigitMask + 1> place{};
    for (const SortItem& item : items_) ++place[(item.ns >> shift) & kDigitMask];
    uint32_t sum = 0;
    for (uint32_t& count : place) sum += std::exchange(count, sum);
    for (const SortItem& item : items_) {
      scratch_[place[(item.ns >> shift) & kDigitMask]++] = item;
    }
    items_.swap(scratch_);
  }
  window.resize(items_.size());
  for (size_t i = 0; i < items_.size(); ++i) window[i] = gathered_[items_[i].index];
}

bool EdgeStream::Next(std::vector<Edge>& window) {
  window.clear();
  while (next_window_ < window_ends_.size()) {
    const uint64_t end_ns = window_ends_[next_window_++];
    for (; next_warp_ < by_begin_.size(); ++next_warp_) {
      const uint32_t warp = by_begin_[next_warp_];
      if (GlobalNs(model_, model_.warps.begin_ns[warp]) >= end_ns) break;
      const uint32_t event = model_.warps.first_event[warp];
      const uint32_t range = model_.warps.first_range[warp];
      active_.push_back({.warp = warp,
                         .event = event,
                         .event_end = event + model_.warps.event_count[warp],
                         .range = range,
                         .range_end = range + model_.warps.range_count[warp]});
    }
    gathered_.clear();
    for (Cursor& cursor : active_) Gather(cursor, end_ns);
    std::erase_if(active_, [](const Cursor& cursor) { return cursor.stage == Cursor::kDone; });
    if (gathered_.empty()) continue;
    SortInto(window);
    return true;
  }
  return false;
}

}  // namespace iket::exporter
