#include "trace/warp_scan.h"

#include <algorithm>
#include <array>

namespace iket::trace {
namespace {

using ring::KindOf;
using ring::Record;
using ring::RecordKind;

// The record after `at`, if it is of `kind`.
const Record* Next(std::span<const Record> records, size_t at, RecordKind kind) {
  if (at + 1 >= records.size() || KindOf(records[at + 1]) != kind) return nullptr;
  return &records[at + 1];
}

}  // namespace

WarpScanner::WarpScanner(const capture::Capture& facts, const Declarations& declarations,
                         Model& model, std::vector<WarpSpan>& spans)
    : facts_(facts),
      declarations_(declarations),
      events_(model.events),
      values_(model.values),
      holes_(model.holes),
      spans_(spans),
      counters_(model.counters) {}

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
    pending_holes_.push_back(pending_);
    after_loss_ = false;
  } else if (open_) {
    Close();
  }
}

void WarpScanner::ScanStretch(std::span<const Record> records) {
  if (ids_.size() < pending_ + records.size()) {
    const size_t size = pending_ + records.size();
    ids_.resize(size);
    offsets_.resize(size);
    payloads_.resize(size);
  }
  for (size_t i = 0; i < records.size();) {
    const Record& record = records[i];
    if (static_cast<int32_t>(record.tag) > 0) {
      if (!open_) [[unlikely]] {
        if (!after_loss_) suspect_ = true;  // an event of nobody
        Open(record.clock);
        if (after_loss_ && KindOf(writer_) == RecordKind::kIdentity) {
          span_.identity = ring::IdentityOf(writer_);
          span_.has_identity = true;
        }
      }
      Advance(record.clock);
      ids_[pending_] = record.tag;
      offsets_[pending_] = static_cast<uint64_t>(offset_);
      payloads_[pending_] = static_cast<uint64_t>(record.high) << 32 | record.low;
      ++pending_;
      ++i;
    } else if (KindOf(record) == RecordKind::kMore) {
      // Behind a loss its event is lost; what follows it is still the first.
      OnMore(record);
      ++i;
      continue;
    } else {
      i = OnRecord(records, i);
    }
    after_loss_ = false;
  }
}

void WarpScanner::Advance(uint32_t clock) {
  const int32_t step = static_cast<int32_t>(clock - clock_);
  span_.back_steps += step < 0 ? 1 : 0;
  offset_ += step;
  clock_ = clock;
}

// Returns the index of the next record to look at.
size_t WarpScanner::OnRecord(std::span<const Record> records, size_t at) {
  switch (KindOf(records[at])) {
    case RecordKind::kBegin:
      return OnBegin(records, at);
    case RecordKind::kIdentity:
      if (identity_due_ && !after_loss_ && pending_ == 0) {
        identity_due_ = false;
        span_.identity = ring::IdentityOf(records[at]);
        span_.has_identity = true;
        return at + 1;
      }
      if (after_loss_ && at + 1 < records.size() && KindOf(records[at + 1]) == RecordKind::kEvent) {
        // Its begin was the newest record that was overwritten.
        Open(records[at + 1].clock);
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
void WarpScanner::OnMore(const Record& record) {
  constexpr size_t kLookedBack = 32;  // as many as a warp has lanes
  for (size_t back = 1; back <= std::min(pending_, kLookedBack); ++back) {
    const size_t event = pending_ - back;
    const auto clock =
        clock_ - static_cast<uint32_t>(static_cast<uint64_t>(offset_) - offsets_[event]);
    if (clock != record.clock) continue;
    parts_.push_back(
        {event, static_cast<uint8_t>(record.tag - ring::kTagMore), record.low, record.high});
    return;
  }
  ++counters_.values_orphan;
}

size_t WarpScanner::OnBegin(std::span<const Record> records, size_t at) {
  const Record& begin = records[at];
  if (open_) {
    SetEnd(begin.high);
    Close();
  }
  Open(begin.clock);
  span_.flags = 0;
  span_.has_begin = true;
  span_.kernel_number = ring::KernelOf(begin.tag);
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

void WarpScanner::Open(uint32_t clock) {
  span_ = WarpSpan{.ring = ring_row_,
                   .flags = kWarpBeginMissing,
                   .first_clock = clock,
                   .read_host_ns = read_host_ns_};
  open_ = true;
  clock_ = clock;
  offset_ = 0;
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
  Close();
}

void WarpScanner::Close() {
  counters_.missing_identities += identity_due_ ? 1 : 0;
  identity_due_ = false;
  span_.last_offset = offset_;
  if (span_.has_end) {
    span_.end_offset = offset_ + static_cast<int64_t>(span_.end_clock - clock_);
  } else {
    span_.flags |= kWarpEndMissing;
  }
  AppendEvents();
  if (!span_.has_identity) {
    span_.flags |= kWarpOrphan;
    counters_.orphan_records += span_.event_count;
  }
  spans_.push_back(span_);
  open_ = false;
}

void WarpScanner::AppendEvents() {
  span_.first_event = static_cast<uint32_t>(events_.cycles.size());
  span_.event_count = static_cast<uint32_t>(pending_);
  const capture::Kernel* kernel =
      span_.kernel_number == kNoRow ? nullptr : facts_.FindKernel(span_.kernel_number);
  const Declarations::View view = declarations_.OfImage(kernel == nullptr ? kNoRow : kernel->image);
  uint64_t unknown = 0;
  const bool has_values = declarations_.any_more() || !parts_.empty();
  std::span<const Part> parts = parts_;
  std::ranges::stable_sort(parts_, {}, [](const Part& part) { return part.event; });
  for (size_t i = 0; i < pending_; ++i) {
    const uint32_t id = ids_[i];
    const uint32_t row = view.Find(id);
    const bool known = row != IdTable::kMissing;
    unknown += known ? 0 : 1;
    ids_[i] = row;
    if (has_values) parts = AppendValues(i, parts);
    payloads_[i] = known ? declarations_.Rule(row).Apply(payloads_[i]) : id;
  }
  parts_.clear();
  counters_.unknown_ids += unknown;
  counters_.warps_holed += pending_holes_.empty() ? 0 : 1;
  for (const size_t hole : pending_holes_) {
    // Behind the last event nothing is open any more for the hole to end.
    if (hole < pending_) holes_.push_back(span_.first_event + static_cast<uint32_t>(hole));
  }
  pending_holes_.clear();
  const auto count = static_cast<ptrdiff_t>(pending_);
  events_.declaration.insert(events_.declaration.end(), ids_.begin(), ids_.begin() + count);
  events_.cycles.insert(events_.cycles.end(), offsets_.begin(), offsets_.begin() + count);
  events_.payload.insert(events_.payload.end(), payloads_.begin(), payloads_.begin() + count);
  pending_ = 0;
}

// Takes its parts from the front of `parts` and returns the rest. The row of its declaration is in
// ids_, the words of its record still as they were in payloads_.
std::span<const WarpScanner::Part> WarpScanner::AppendValues(size_t event,
                                                             std::span<const Part> parts) {
  size_t count = 0;
  while (count < parts.size() && parts[count].event == event) ++count;
  const std::span<const ValueRule> rules = declarations_.MoreOf(ids_[event]);
  if (rules.empty()) {
    counters_.values_orphan += count;
    return parts.subspan(count);
  }
  constexpr size_t kWords = 2 + 2 * ring::kMostMore;
  std::array<uint32_t, kWords> words{static_cast<uint32_t>(payloads_[event]),
                                     static_cast<uint32_t>(payloads_[event] >> 32)};
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
    values_.event.push_back(span_.first_event + static_cast<uint32_t>(event));
    values_.index.push_back(rule.index);
    values_.value.push_back(rule.rule.Apply(high << 32 | words[rule.low]));
  }
  return parts.subspan(count);
}

}  // namespace iket::trace
