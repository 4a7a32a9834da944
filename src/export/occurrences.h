// occurrences.h: what happened in a warp, one after the other: its ranges, its marks, and the ends
// of ranges that nobody opened. For writers of one row or object for each.
//
// In the order in which the warp recorded them, a range where it begins. Cost: a step for each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/model.h"

namespace iket::exporter {

struct Occurrence {
  uint32_t event = 0;  // of a range, the one that opened it
  uint32_t range = trace::kNoRow;
  bool unmatched_end = false;
  uint32_t declaration = 0;
  uint64_t begin_cycles = 0, end_cycles = 0;  // the same, if it is no range

  bool is_range() const { return range != trace::kNoRow; }
};

class Occurrences {
 public:
  explicit Occurrences(const trace::Model& model)
      : model_(model), unmatched_ends_(model.unmatched_ends) {
    std::ranges::sort(unmatched_ends_);
  }

  // Calls visit(const Occurrence&) for each of this warp.
  template <typename Visit>
  void ForEach(uint32_t warp, Visit visit) const;

 private:
  const trace::Model& model_;
  Column<uint32_t> unmatched_ends_;  // ascending
};

// Trace time in whole ns since Model::origin_ns, as all formats cut it.
int64_t TraceNs(const trace::Model& model, double trace_ns);

// "range", "mark", "flow_out", "flow_in", "sync", "unknown" or "unmatched_end".
std::string_view KindWord(const trace::Model& model, const Occurrence& occurrence);

// What viewers call it: its name, "unknown event", "unmatched end of load", "unmatched pop".
std::string LabelOf(const trace::Model& model, const Occurrence& occurrence);

// "unclosed", "cut", "crossed", "token", as many of them as hold for a range, with commas; "".
std::string RangeState(uint8_t flags);

// The same of a warp: "begin overwritten, suspect".
std::string WarpState(uint8_t flags);

// A name as it may stand in each of millions of rows: UTF-8, without zeros, and of one longer than
// 1 KiB its beginning, its length and `number`, which tells it from others.
std::string RowLabel(std::string_view untrusted, uint64_t number);

template <typename Visit>
void Occurrences::ForEach(uint32_t warp, Visit visit) const {
  constexpr uint32_t kNone = trace::kNoRow;
  const trace::Warps& warps = model_.warps;
  uint32_t range = warps.first_range[warp];
  const uint32_t range_end = range + warps.range_count[warp];
  uint32_t mark = warps.first_mark[warp];
  const uint32_t mark_end = mark + warps.mark_count[warp];
  const uint32_t event_end = warps.first_event[warp] + warps.event_count[warp];
  auto end = std::ranges::lower_bound(unmatched_ends_, warps.first_event[warp]);
  for (;;) {
    const uint32_t next_range = range < range_end ? model_.ranges.begin_event[range] : kNone;
    const uint32_t next_mark = mark < mark_end ? model_.marks.event[mark] : kNone;
    const bool has_end = end != unmatched_ends_.end() && *end < event_end;
    const uint32_t next_end = has_end ? *end : kNone;
    const uint32_t event = std::min({next_range, next_mark, next_end});
    if (event == kNone) return;
    Occurrence it{.event = event,
                  .declaration = model_.events.declaration[event],
                  .begin_cycles = model_.events.cycles[event],
                  .end_cycles = model_.events.cycles[event]};
    if (event == next_range) {
      it.range = range++;
      it.declaration = model_.ranges.declaration[it.range];
      it.begin_cycles = model_.ranges.begin_cycles[it.range];
      it.end_cycles = model_.ranges.end_cycles[it.range];
    } else if (event == next_mark) {
      ++mark;
    } else {
      it.unmatched_end = true;
      ++end;
    }
    visit(it);
  }
}

}  // namespace iket::exporter
