#include "trace/drop_events.h"

#include <algorithm>

namespace iket::trace {
namespace {

// Keeps what is not dropped; a column that is not filled yet stays so.
template <typename T>
void Compact(const std::vector<bool>& dropped, Column<T>& column) {
  if (column.empty()) return;
  size_t to = 0;
  for (size_t from = 0; from < dropped.size(); ++from) {
    if (!dropped[from]) column[to++] = column[from];
  }
  column.resize(to);
}

}  // namespace

void DropEvents(const std::vector<bool>& dropped, Model& model) {
  // By event, and one more: how many of those before it are kept, which is its new row.
  Column<uint32_t> row(dropped.size() + 1);
  row[0] = 0;
  for (size_t i = 0; i < dropped.size(); ++i) row[i + 1] = row[i] + (dropped[i] ? 0 : 1);
  model.counters.events_left_out += dropped.size() - row.back();

  Compact(dropped, model.events.warp);
  Compact(dropped, model.events.declaration);
  Compact(dropped, model.events.cycles);
  Compact(dropped, model.events.payload);

  Values values;
  for (size_t i = 0; i < model.values.size(); ++i) {
    const uint32_t event = model.values.event[i];
    if (dropped[event]) continue;
    values.event.push_back(row[event]);
    values.index.push_back(model.values.index[i]);
    values.value.push_back(model.values.value[i]);
  }
  model.values = std::move(values);

  Column<uint32_t> holes;
  for (size_t warp = 0; warp < model.warps.size(); ++warp) {
    const uint32_t first = model.warps.first_event[warp];
    const uint32_t last = first + model.warps.event_count[warp];
    const uint32_t kept = row[last] - row[first];
    const uint32_t launch = model.warps.launch[warp];
    if (launch < model.launches.size()) {
      model.launches[launch].events_kept -= model.warps.event_count[warp] - kept;
    }
    // A hole is before an event of its warp: without one there is nothing left for it to part.
    for (auto hole = std::ranges::lower_bound(model.holes, first);
         hole != model.holes.end() && *hole < last; ++hole) {
      if (row[*hole] < row[last]) holes.push_back(row[*hole]);
    }
    model.warps.first_event[warp] = row[first];
    model.warps.event_count[warp] = kept;
  }
  std::ranges::sort(holes);
  const auto repeated = std::ranges::unique(holes);
  holes.erase(repeated.begin(), repeated.end());
  model.holes = std::move(holes);

  const auto renumber = [&row](Column<uint32_t>& events) {
    for (uint32_t& event : events) {
      if (event != kNoRow) event = row[event];
    }
  };
  renumber(model.marks.event);
  renumber(model.ranges.begin_event);
  renumber(model.ranges.end_event);
  renumber(model.unmatched_ends);
}

}  // namespace iket::trace
