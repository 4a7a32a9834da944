#include "session/ring_follower.h"

#include <algorithm>
#include <cstring>

namespace iket::session {
namespace {

using ring::HasClock;
using ring::KindOf;
using ring::Record;
using ring::RecordKind;

// Stores that are under way at one time, at the most: what may lack from a run of new records.
constexpr size_t kUnderWay = 64;

template <typename T>
bool SameBytes(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// Memory is asked for so many records before it is compared: what is known of all rings is larger
// than caches are, and the processor does not look past a page.
constexpr size_t kAhead = 128;
constexpr size_t kRecordsPerLine = 64 / sizeof(Record);

// How many records at the beginning differ from what stands in the same place of `known`. Not
// inlined: where a ring came around, its caller would be slower by a tenth.
[[gnu::noinline]] size_t Changed(std::span<const Record> records, std::span<const Record> known) {
  size_t count = 0;
  for (; count < records.size(); ++count) {
    if (count % kRecordsPerLine == 0 && count + kAhead < records.size()) {
      __builtin_prefetch(&records[count + kAhead]);
      __builtin_prefetch(&known[count + kAhead]);
    }
    if (SameBytes(records[count], known[count])) break;
  }
  return count;
}

bool IsOlder(const Record& record, const Record& than) {
  return ring::IsYounger(than.clock, record.clock);
}

// The records of a ring from some slot on, around its end: indices below twice its size.
class Circle {
 public:
  Circle(std::span<const Record> records, uint64_t start)
      : records_(records), start_(start % records.size()) {}
  const Record& operator[](size_t i) const {
    size_t slot = start_ + i;  // a division would take longer than all that is done with a record
    while (slot >= records_.size()) slot -= records_.size();
    return records_[slot];
  }

 private:
  std::span<const Record> records_;
  size_t start_;
};

// Of `count` records, how many at the beginning are in the order of their clocks; `before` is the
// one in front of them. An identity has no clock; without its begin it is of the lap before, like
// what follows it.
size_t InOrder(const Circle& circle, size_t count, const Record* before) {
  for (size_t i = 0; i < count; ++i) {
    const Record& record = circle[i];
    if (!HasClock(record)) continue;
    if (before != nullptr && HasClock(*before) && IsOlder(record, *before)) {
      const bool ends_with_identity = i > 0 && KindOf(circle[i - 1]) == RecordKind::kIdentity;
      const bool is_of_begin = i > 1 && KindOf(circle[i - 2]) == RecordKind::kBegin;
      return ends_with_identity && !is_of_begin ? i - 1 : i;
    }
    before = &record;
  }
  return count;
}

// Of `count` new records from the oldest unread slot on, how many at the beginning are of a lap
// that came around and overwrote it. 0: none, as far as clocks tell.
size_t OfNextLap(const Circle& circle, size_t count) {
  const size_t next_lap = InOrder(circle, count, nullptr);
  if (next_lap == count) return 0;
  // What comes first must then go on where the rest ends.
  size_t first = 0, last = count - 1;
  while (first < next_lap && !HasClock(circle[first])) ++first;
  while (last > next_lap && !HasClock(circle[last])) --last;
  return IsOlder(circle[first], circle[last]) ? 0 : next_lap;
}

// The first record from which on all are in order.
size_t LastDisorder(const Circle& circle, size_t count) {
  size_t start = 0;
  const Record* before = nullptr;
  for (size_t i = 0; i < count; ++i) {
    if (!HasClock(circle[i])) {
      // An identity without its begin may be of the next lap.
      const bool is_of_begin = i > 0 && KindOf(circle[i - 1]) == RecordKind::kBegin;
      if (!is_of_begin) start = i + 1;
      continue;
    }
    if (before != nullptr && IsOlder(circle[i], *before)) start = i;
    before = &circle[i];
  }
  return start;
}

// The cursor in records, as a position near `position`.
uint64_t CursorNear(uint32_t cursor, uint64_t position) {
  const uint32_t near = static_cast<uint32_t>(position * ring::kRecordBytes);
  const int64_t ahead = static_cast<int32_t>(cursor - near) / int64_t{ring::kRecordBytes};
  return ahead < 0 && static_cast<uint64_t>(-ahead) > position
             ? 0
             : position + static_cast<uint64_t>(ahead);
}

}  // namespace

// How many records from position_ on are new.
size_t RingFollower::NewRecords(std::span<const Record> records) const {
  const size_t size = records.size();
  const Circle circle(records, position_), known(known_, position_);
  const auto changed = [&](size_t i) { return !SameBytes(circle[i], known[i]); };
  size_t run = 0;
  if (!unsure_) {
    const size_t start = position_ % size;
    run = Changed(records.subspan(start), std::span(known_).subspan(start));
    if (run == size - start) run += Changed(records.first(start), known_);
    return run;
  }
  // What was new then has arrived; if it is overwritten, so is all the rest.
  if (changed(0)) return size;
  const Record* before = &known[size - 1];
  const Record* clocked = before;
  for (; run < size; ++run) {
    const Record& record = circle[run];
    if (HasClock(record)) {
      if (HasClock(*clocked) && IsOlder(record, *clocked)) break;
      clocked = &record;
    } else if (KindOf(*before) != RecordKind::kBegin) {
      break;
    } else if (run > kUnderWay && changed(run - 1) && !changed(run)) {
      --run;  // a begin has arrived since, and its identity has not
      break;
    }
    before = &record;
  }
  return run;
}

// After the first reading behind one that left us unsure, `run` of whose records were new: what was
// under way then has arrived, so what is older than these is of the lap before, and news only when
// it changes; what is younger is news as soon as all before it is there.
void RingFollower::BeSure(std::span<const Record> records, size_t run) {
  unsure_ = false;
  const size_t size = records.size();
  const Circle circle(records, position_);
  size_t last = run + size - 1;
  while (last > run && !HasClock(circle[last])) --last;
  const Record& newest = circle[last];
  const auto is_older = [&](size_t i) {
    const Record& record = circle[i];
    if (HasClock(record)) return IsOlder(record, newest);
    // An identity stands behind its begin. Behind an older event it is of this lap, its begin under
    // way; behind a younger one it is the rest of a lap before.
    const Record& before = circle[i + size - 1];
    const bool is_after_begin = KindOf(before) == RecordKind::kBegin;
    return IsOlder(before, newest) ? is_after_begin : !is_after_begin;
  };
  for (size_t i = run; i < size; ++i) {
    known_[(position_ + i) % size] = is_older(i) ? circle[i] : Record{};
  }
}

std::optional<capture::RingContents> RingFollower::Follow(uint32_t ring,
                                                          const ring::RingHeader& header,
                                                          std::span<const Record> untrusted_records,
                                                          bool quiet) {
  const size_t size = known_.size();
  if (untrusted_records.size() != size || size == 0) return std::nullopt;
  const size_t under_way = quiet ? 0 : kUnderWay;
  size_t run = NewRecords(untrusted_records);

  // When the ring is about to come around, its oldest new records may go while they are copied:
  // they stand out of order then, and the next reading sees a ring that has.
  const Circle circle(untrusted_records, position_);
  const bool overtaken =
      unsure_ ? run < kUnderWay
              : run < size && run + kUnderWay >= size && InOrder(circle, run, nullptr) != run;
  if (overtaken && !quiet) return std::nullopt;
  const size_t next_lap = run == size ? OfNextLap(circle, size) : 0;
  uint64_t end = position_ + run + next_lap;
  const uint64_t cursor = CursorNear(header.cursor, position_);
  // Whole laps that went by unseen. A header may be visible before the records of its warp are.
  if (cursor > end + under_way) end += (cursor - under_way - end + size - 1) / size * size;
  const bool came_around = run == size;
  if (came_around) {
    // Only clocks tell what these slots hold. What another lap left in a slot that was copied too
    // early stands out of order; identities have no clock, and stores may be under way, so the
    // newest records wait for the next reading, which sees what moves from here on.
    std::ranges::copy(untrusted_records, known_.begin());
    unsure_ = !quiet;
    // How many laps went by is not known yet, and that none did cannot be: the oldest record is
    // left out, so that nobody takes what follows it for the continuation of what was given before.
    const size_t disorder = LastDisorder(Circle(untrusted_records, end), size);
    const size_t left_out = std::max<size_t>(disorder, 1) + under_way;
    run -= std::min(run, left_out);
    end -= under_way;
  } else if (unsure_) {
    BeSure(untrusted_records, run);
  }
  if (run == 0 && end == position_ && SameBytes(header, header_)) return std::nullopt;

  const uint64_t first = end - run;
  const size_t slot = first % size;
  const size_t until_wrap = std::min(run, size - slot);
  const capture::RingContents row{.ring = ring,
                                  .written = end * ring::kRecordBytes,
                                  .older = untrusted_records.subspan(slot, until_wrap),
                                  .newer = untrusted_records.first(run - until_wrap),
                                  .header = header};
  if (!came_around) {
    std::ranges::copy(row.older, known_.begin() + static_cast<ptrdiff_t>(slot));
    std::ranges::copy(row.newer, known_.begin());
  }
  position_ = end;
  given_ += run;
  header_ = header;
  return row;
}

}  // namespace iket::session
