#include "trace/row_order.h"

#include <algorithm>
#include <utility>

namespace iket::trace {

RowOrder::RowOrder(std::span<const WarpSpan> spans, std::span<const uint32_t> span_of_warp,
                   Model& model)
    : spans_(spans),
      span_of_warp_(span_of_warp),
      model_(model),
      from_(std::exchange(model.events, {})) {
  const size_t events = from_.cycles.size();
  model_.events.warp.resize(events);
  model_.events.declaration.resize(events);
  model_.events.cycles.resize(events);
  model_.events.payload.resize(events);
  uint32_t next = 0;
  for (size_t warp = 0; warp < span_of_warp_.size(); ++warp) {
    model_.warps.first_event[warp] = next;
    next += spans_[span_of_warp_[warp]].event_count;
  }
  if (model_.values.size() != 0) MoveValues(std::exchange(model_.values, {}));
  if (!model_.holes.empty()) MoveHoles(std::exchange(model_.holes, {}));
}

void RowOrder::Take(uint32_t warp) {
  const WarpSpan& span = spans_[span_of_warp_[warp]];
  const uint32_t from = span.first_event, count = span.event_count;
  const uint32_t to = model_.warps.first_event[warp];
  Events& events = model_.events;
  std::fill_n(events.warp.begin() + to, count, warp);
  std::copy_n(from_.declaration.begin() + from, count, events.declaration.begin() + to);
  std::copy_n(from_.payload.begin() + from, count, events.payload.begin() + to);
  // Where its clock stepped back, AlignClocks() has put them there.
  const auto base = span.back_steps == 0 ? static_cast<uint64_t>(span.base_cycles) : 0;
  std::transform(from_.cycles.begin() + from, from_.cycles.begin() + from + count,
                 events.cycles.begin() + to, [base](uint64_t cycles) { return cycles + base; });
}

void RowOrder::TakeAll() {
  Column<uint32_t> warp_of_span(spans_.size());
  for (uint32_t warp = 0; warp < span_of_warp_.size(); ++warp) {
    warp_of_span[span_of_warp_[warp]] = warp;
  }
  AdviseUse(ColumnUse::kScattered);
  for (const uint32_t warp : warp_of_span) Take(warp);
  AdviseUse(ColumnUse::kInOrder);
  from_ = {};
}

void RowOrder::AdviseUse(ColumnUse use) {
  AdviseColumnUse(model_.events.warp, use);
  AdviseColumnUse(model_.events.declaration, use);
  AdviseColumnUse(model_.events.cycles, use);
  AdviseColumnUse(model_.events.payload, use);
}

void RowOrder::MoveValues(const Values& from) {
  for (size_t warp = 0; warp < span_of_warp_.size(); ++warp) {
    const WarpSpan& span = spans_[span_of_warp_[warp]];
    const auto first = std::ranges::lower_bound(from.event, span.first_event);
    for (size_t row = static_cast<size_t>(first - from.event.begin());
         row < from.size() && from.event[row] < span.first_event + span.event_count; ++row) {
      model_.values.event.push_back(from.event[row] - span.first_event +
                                    model_.warps.first_event[warp]);
      model_.values.index.push_back(from.index[row]);
      model_.values.value.push_back(from.value[row]);
    }
  }
}

void RowOrder::MoveHoles(std::span<const uint32_t> from) {
  for (size_t warp = 0; warp < span_of_warp_.size(); ++warp) {
    const WarpSpan& span = spans_[span_of_warp_[warp]];
    for (auto hole = std::ranges::lower_bound(from, span.first_event);
         hole != from.end() && *hole < span.first_event + span.event_count; ++hole) {
      model_.holes.push_back(*hole - span.first_event + model_.warps.first_event[warp]);
    }
  }
}

}  // namespace iket::trace
