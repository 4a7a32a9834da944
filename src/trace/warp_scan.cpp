#include "trace/warp_scan.h"

#include <algorithm>
#include <array>

namespace iket::trace {
namespace {

using ring::KindOf;
using ring::Record;
using ring::RecordKind;

bool IsEvent(const Record& record) { return static_cast<int32_t>(record.tag) > 0; }

// The record after `at`, if it is of `kind`.
const Record* Next(std::span<const Record> records, size_t at, RecordKind kind) {
  if (at + 1 >= records.size() || KindOf(records[at + 1]) != kind) return nullptr;
  return &records[at + 1];
}

}  // namespace

WarpScanner::WarpScanner(const capture::Capture& facts, const Declarations& declarations,
                         Model& model, Column<WarpSpan>& spans)
    : facts_(facts),
      declarations_(declarations),
      events_(model.events),
      values_(model.values),
      holes_(model.holes),
      spans_(spans),
      counters_(model.counters),
      view_(declarations.OfImage(kNoRow)) {}

bool WarpScanner::Scan(const RingStream& stream, uint32_t ring_row) {
  ring_row_ = ring_row;
  suspect_ = stream.suspect;
  uint64_t position = 0;
  for (const Stretch& stretch : stream.stretches) {
    after_loss_ = stretch.first != position;
    if (after_loss_) PassLoss(stretch);
    position = stretch.end();
    read_host_ns_ = stretch.read_host_ns;
    ScanStretch(stretch.records);
  }
  Finish(stream);
  return suspect_;
}

// What follows a loss is the open warp's where the writer is known to be the same, and nobody's
// otherwise.
void WarpScanner::PassLoss(const Stretch& behind) {
  writer_ = behind.writer;
  const bool known = KindOf(writer_) == RecordKind::kIdentity;
  if (open_ && known && span_.has_identity && span_.identity == ring::IdentityOf(writer_)) {
    span_.flags |= kWarpHoled;
    pending_holes_.push_back(events_.cycles.size());
    after_loss_ = false;
  } else if (open_) {
    Close(events_.cycles.size());
  }
}

void WarpScanner::ScanStretch(std::span<const Record> records) {
  // Where they go, if all of them are events.
  const size_t count = events_.cycles.size();
  ResizeEvents(count + records.size());
  uint32_t* declaration = events_.declaration.data() + count;
  uint64_t* cycles = events_.cycles.data() + count;
  uint64_t* payload = events_.payload.data() + count;
  const bool has_more = declarations_.any_more();
  size_t made = 0;
  for (size_t i = 0; i < records.size();) {
    const Record& record = records[i];
    if (IsEvent(record)) {
      if (!open_) [[unlikely]] {
        if (!after_loss_) suspect_ = true;  // an event of nobody
        Open(record.clock, count + made);
        if (after_loss_ && KindOf(writer_) == RecordKind::kIdentity) {
          span_.identity = ring::IdentityOf(writer_);
          span_.has_identity = true;
        }
      }
      // Events follow each other for long: what changes with each stays in registers.
      const Declarations::View view = view_;
      uint32_t clock = clock_, back_steps = 0;
      int64_t offset = offset_;
      for (; i < records.size() && IsEvent(records[i]); ++i, ++made) {
        const Record& event = records[i];
        const auto step = static_cast<int32_t>(event.clock - clock);
        back_steps += step < 0 ? 1 : 0;
        offset += step;
        clock = event.clock;
        const uint32_t row = view.Find(event.tag);
        const uint64_t words = static_cast<uint64_t>(event.high) << 32 | event.low;
        declaration[made] = row;
        cycles[made] = static_cast<uint64_t>(offset);
        if (row == IdTable::kMissing) [[unlikely]] {
          ++counters_.unknown_ids;
          payload[made] = event.tag;
        } else {
          payload[made] = has_more ? words : declarations_.Rule(row).Apply(words);
        }
      }
      clock_ = clock;
      offset_ = offset;
      span_.back_steps += back_steps;
    } else if (KindOf(record) == RecordKind::kMore) {
      // Behind a loss its event is lost; what follows it is still the first.
      OnMore(record, count + made);
      ++i;
      continue;
    } else {
      i = OnRecord(records, i, count + made);
    }
    after_loss_ = false;
  }
  ResizeEvents(count + made);
}

void WarpScanner::ResizeEvents(size_t count) {
  events_.declaration.resize(count);
  events_.cycles.resize(count);
  events_.payload.resize(count);
}

// Returns the index of the next record to look at. `events`: how many there are, of all warps.
size_t WarpScanner::OnRecord(std::span<const Record> records, size_t at, size_t events) {
  switch (KindOf(records[at])) {
    case RecordKind::kBegin:
      return OnBegin(records, at, events);
    case RecordKind::kIdentity:
      if (identity_due_ && !after_loss_ && span_.first_event == events) {
        identity_due_ = false;
        span_.identity = ring::IdentityOf(records[at]);
        span_.has_identity = true;
        return at + 1;
      }
      if (after_loss_ && at + 1 < records.size() && KindOf(records[at + 1]) == RecordKind::kEvent) {
        // Its begin was the newest record that was overwritten.
        Open(records[at + 1].clock, events);
        span_.identity = ring::IdentityOf(records[at]);
        span_.has_identity = true;
      } else {
        // The only rest of a warp that recorded nothing else, if the loss ends here.
        counters_.orphan_identities += after_loss_ ? 0 : 1;
      }
      return at + 1;
    case RecordKind::kEvent:
    case RecordKind::kMore:
    case RecordKind::kUnknown:
      break;
  }
  ++counters_.unknown_records;
  return at + 1;
}

// Its event is the one with its clock, and in front of it: the last, unless lane groups write in
// turns.
void WarpScanner::OnMore(const Record& record, size_t events) {
  constexpr size_t kLookedBack = 32;  // as many as a warp has lanes
  const size_t own = open_ ? events - span_.first_event : 0;
  for (size_t back = 1; back <= std::min(own, kLookedBack); ++back) {
    const size_t event = events - back;
    const auto clock =
        clock_ - static_cast<uint32_t>(static_cast<uint64_t>(offset_) - events_.cycles[event]);
    if (clock != record.clock) continue;
    parts_.push_back(
        {event, static_cast<uint8_t>(record.tag - ring::kTagMore), record.low, record.high});
    return;
  }
  ++counters_.values_orphan;
}

size_t WarpScanner::OnBegin(std::span<const Record> records, size_t at, size_t events) {
  const Record& begin = records[at];
  if (open_) {
    SetEnd(begin.high);
    Close(events);
  }
  Open(begin.clock, events);
  span_.flags = 0;
  span_.has_begin = true;
  span_.kernel_number = ring::KernelOf(begin.tag);
  ViewAsKernel();
  span_.begin_timer_low = begin.low;
  span_.previous_end = begin.high;
  const Record* identity = Next(records, at, RecordKind::kIdentity);
  if (identity == nullptr) {
    identity_due_ = at + 1 == records.size();
    counters_.missing_identities += identity_due_ ? 0 : 1;
    return at + 1;
  }
  span_.identity = ring::IdentityOf(*identity);
  span_.has_identity = true;
  return at + 2;
}

void WarpScanner::SetEnd(uint32_t clock) {
  // A warp that never ended leaves the end of the one before it.
  if (span_.has_begin && clock == span_.previous_end) return;
  span_.has_end = true;
  span_.end_clock = clock;
}

void WarpScanner::Open(uint32_t clock, size_t events) {
  span_ = WarpSpan{.ring = ring_row_,
                   .flags = kWarpBeginMissing,
                   .first_clock = clock,
                   .read_host_ns = read_host_ns_,
                   .first_event = static_cast<uint32_t>(events)};
  ViewAsKernel();
  open_ = true;
  clock_ = clock;
  offset_ = 0;
}

// Ids mean what the image of the warp's kernel says.
void WarpScanner::ViewAsKernel() {
  if (viewed_kernel_ == span_.kernel_number) return;
  viewed_kernel_ = span_.kernel_number;
  const capture::Kernel* const kernel =
      viewed_kernel_ == kNoRow ? nullptr : facts_.FindKernel(viewed_kernel_);
  view_ = declarations_.OfImage(kernel == nullptr ? kNoRow : kernel->image);
}

// The newest warp of the ring is the one that the header knows.
void WarpScanner::Finish(const RingStream& stream) {
  if (!open_) return;
  const ring::RingHeader& header = stream.header;
  if (!span_.has_identity && KindOf(header.identity) == RecordKind::kIdentity) {
    span_.identity = ring::IdentityOf(header.identity);
    span_.has_identity = true;
  }
  if (!stream.running) {
    SetEnd(header.end_clock);
    span_.has_end_timer = span_.has_end;
    span_.end_timer_ns = header.end_timer();
  } else {
    span_.flags |= kWarpRunning;
    // Without its begin at the cursor, the header's end is one of some of its own lanes.
    const bool own_end =
        !stream.lapped && !(span_.has_begin && span_.previous_end == header.end_clock);
    if (own_end) span_.flags |= kWarpPartialExit;
    if (stream.header.cursor != 0 || stream.header.end_timer() != 0) {
      span_.header_end_known = true;
      span_.end_clock = header.end_clock;
      span_.end_timer_ns = header.end_timer();
    }
  }
  Close(events_.cycles.size());
}

void WarpScanner::Close(size_t events) {
  counters_.missing_identities += identity_due_ ? 1 : 0;
  identity_due_ = false;
  span_.last_offset = offset_;
  if (span_.has_end) {
    span_.end_offset = offset_ + static_cast<int64_t>(span_.end_clock - clock_);
  } else {
    span_.flags |= kWarpEndMissing;
  }
  span_.event_count = static_cast<uint32_t>(events) - span_.first_event;
  TakeValues();
  TakeHoles();
  if (!span_.has_identity) {
    span_.flags |= kWarpOrphan;
    counters_.orphan_records += span_.event_count;
  }
  spans_.push_back(span_);
  open_ = false;
}

void WarpScanner::TakeValues() {
  if (!declarations_.any_more() && parts_.empty()) return;
  std::ranges::stable_sort(parts_, {}, [](const Part& part) { return part.event; });
  std::span<const Part> parts = parts_;
  for (size_t event = span_.first_event; event < span_.first_event + span_.event_count; ++event) {
    const uint32_t row = events_.declaration[event];
    parts = AppendValues(event, parts);
    // The words of the record were needed until here.
    if (row != IdTable::kMissing && declarations_.any_more()) {
      events_.payload[event] = declarations_.Rule(row).Apply(events_.payload[event]);
    }
  }
  parts_.clear();
}

void WarpScanner::TakeHoles() {
  counters_.warps_holed += pending_holes_.empty() ? 0 : 1;
  for (const size_t hole : pending_holes_) {
    // Behind the last event nothing is open any more for the hole to end.
    if (hole < span_.first_event + span_.event_count) {
      holes_.push_back(static_cast<uint32_t>(hole));
    }
  }
  pending_holes_.clear();
}

// Takes its parts from the front of `parts` and returns the rest. The event's payload is still the
// words of its record.
std::span<const WarpScanner::Part> WarpScanner::AppendValues(size_t event,
                                                             std::span<const Part> parts) {
  size_t count = 0;
  while (count < parts.size() && parts[count].event == event) ++count;
  const std::span<const ValueRule> rules = declarations_.MoreOf(events_.declaration[event]);
  if (rules.empty()) {
    counters_.values_orphan += count;
    return parts.subspan(count);
  }
  constexpr size_t kWords = 2 + 2 * ring::kMostMore;
  std::array<uint32_t, kWords> words{static_cast<uint32_t>(events_.payload[event]),
                                     static_cast<uint32_t>(events_.payload[event] >> 32)};
  std::array<bool, kWords> known{true, true};
  for (const Part& part : parts.first(count)) {
    const size_t at = 2 * size_t{part.index};
    words[at] = part.low;
    words[at + 1] = part.high;
    known[at] = known[at + 1] = true;
  }
  for (const ValueRule& rule : rules) {
    if (!known[rule.low] || !known[rule.high]) {
      ++counters_.values_missing;
      continue;
    }
    const uint64_t high = rule.is_wide ? words[rule.high] : 0;
    values_.event.push_back(static_cast<uint32_t>(event));
    values_.index.push_back(rule.index);
    values_.value.push_back(rule.rule.Apply(high << 32 | words[rule.low]));
  }
  return parts.subspan(count);
}

}  // namespace iket::trace
