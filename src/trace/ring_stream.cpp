#include "trace/ring_stream.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

namespace iket::trace {
namespace {

using ring::HasClock;
using ring::IsYounger;
using ring::KindOf;
using ring::kRecordBytes;
using ring::Record;
using ring::RecordKind;

// Positions above this are no count of bytes that a GPU could have written.
constexpr uint64_t kMaxPosition = uint64_t{1} << 62;

bool SameRecord(const Record& a, const Record& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

bool StepsBack(const Record& before, const Record& after) {
  return IsYounger(before.clock, after.clock);
}

// Number of leading events of `records` whose clocks do not fall, the first one not behind `clock`.
size_t LeadingEvents(std::span<const Record> records, uint32_t clock) {
  size_t count = 0;
  for (const Record& record : records) {
    if (KindOf(record) != RecordKind::kEvent) break;
    if (IsYounger(clock, record.clock)) break;
    clock = record.clock;
    ++count;
  }
  return count;
}

// What follows the cursor.
struct Beyond {
  size_t count = 0;  // leading candidates that a running warp wrote
  bool running = false;
};

// A warp that started at the cursor: its begin knows the end that the header has (a begin of an
// older lap knows another one), and its identity is the header's.
Beyond StartedAtCursor(std::span<const Record> candidates, const ring::RingHeader& header) {
  if (candidates.size() < 2) return {};
  const Record& begin = candidates[0];
  if (KindOf(begin) != RecordKind::kBegin || begin.high != header.end_clock) return {};
  if (KindOf(candidates[1]) != RecordKind::kIdentity) return {};
  if (!SameRecord(candidates[1], header.identity)) return {};
  return {2 + LeadingEvents(candidates.subspan(2), begin.clock), true};
}

// A warp of which some lanes have ended, at the cursor, while others go on: their events are
// younger than that end, and what follows them is older.
Beyond GoesOnAtCursor(std::span<const Record> candidates, const ring::RingHeader& header) {
  const size_t count = LeadingEvents(candidates, header.end_clock);
  if (count == 0 || count == candidates.size()) return {};
  const Record& newest = candidates[count - 1];
  size_t next = count;
  if (KindOf(candidates[next]) == RecordKind::kIdentity) ++next;
  if (next == candidates.size() || !HasClock(candidates[next])) return {};
  const Record& older = candidates[next];
  // A begin may be younger for all that is known: the end that it remembers may not.
  const uint32_t older_clock = KindOf(older) == RecordKind::kBegin ? older.high : older.clock;
  return IsYounger(newest.clock, older_clock) ? Beyond{count, true} : Beyond{};
}

// Where a ring that holds a single running warp, which has overwritten its own begin, steps back:
// the index of its oldest record. Nothing if it is no such ring.
std::optional<size_t> OldestOfLapped(std::span<const Record> circle,
                                     const ring::RingHeader& header) {
  if (!IsYounger(circle.back().clock, header.end_clock)) return std::nullopt;
  if (circle.size() > 2 && KindOf(circle[0]) == RecordKind::kEvent &&
      SameRecord(circle[1], header.identity) &&
      LeadingEvents(circle.subspan(2), circle[2].clock) == circle.size() - 2) {
    return 1;  // its begin was the last record to be overwritten
  }
  std::optional<size_t> oldest;
  for (size_t i = 0; i < circle.size(); ++i) {
    if (KindOf(circle[i]) != RecordKind::kEvent) return std::nullopt;
    if (i > 0 && StepsBack(circle[i - 1], circle[i])) {
      if (oldest) return std::nullopt;
      oldest = i;
    }
  }
  return oldest;
}

// The whole ring, turned so that circle[0] stands where the cursor points.
UnfoldedRing UnfoldWholeRing(const capture::RingRow& row, uint64_t ring_bytes, uint64_t cursor) {
  UnfoldedRing result;
  const size_t count = row.records.size();
  const size_t shift = static_cast<size_t>((cursor - row.first) % ring_bytes / kRecordBytes);
  std::span<const Record> circle = row.records;
  if (shift != 0) {
    result.rotated.assign(row.records.begin(), row.records.end());
    std::rotate(result.rotated.begin(), result.rotated.begin() + static_cast<ptrdiff_t>(shift),
                result.rotated.end());
    circle = result.rotated;
  }

  const size_t ever = static_cast<size_t>(std::min<uint64_t>(cursor / kRecordBytes, count));
  auto lapped = [&](size_t oldest) {
    std::vector<Record> turned(count);
    std::ranges::rotate_copy(circle, circle.begin() + static_cast<ptrdiff_t>(oldest),
                             turned.begin());
    result.rotated = std::move(turned);
    // The newest record stands before the oldest one, a lap behind the cursor at the least.
    result.written = cursor + (count + oldest) * kRecordBytes;
    result.running = {result.written - ring_bytes, result.rotated};
    result.is_running = result.lapped = true;
    return std::move(result);
  };

  Beyond beyond = StartedAtCursor(circle, row.header);
  if (!beyond.running) {
    if (const std::optional<size_t> oldest = OldestOfLapped(circle, row.header)) {
      return lapped(*oldest);
    }
    const bool may_be_lapped = IsYounger(circle[0].clock, row.header.end_clock) &&
                               LeadingEvents(circle, row.header.end_clock) == count;
    // Where no ended warp ever wrote, a running one has.
    if (may_be_lapped && ever < count) return lapped(0);
    result.may_be_lapped = may_be_lapped;
    if (cursor != 0) beyond = GoesOnAtCursor(circle, row.header);
  }
  const size_t kept = std::min(ever, count - beyond.count);
  result.is_running = beyond.running;
  result.running = {cursor, circle.first(beyond.count)};
  result.ended = {cursor - kept * kRecordBytes, circle.last(kept)};
  result.written = cursor + beyond.count * kRecordBytes;
  return result;
}

}  // namespace

namespace {

// Who wrote the first record of a settled row: the warp that the header knows, unless that one
// began in this row, or others may have ended in it, or begun since the header was read. The
// records were read later: what is behind the cursor may be of a warp that began in between and
// came around the ring.
Record WriterOfFirst(const capture::RingRow& row, const SettledNeighbours& others) {
  const Record& newest = row.header.identity;
  bool any_begin = false;
  for (size_t i = 0; i < row.records.size(); ++i) {
    if (KindOf(row.records[i]) != RecordKind::kBegin) continue;
    any_begin = true;
    if (i + 1 == row.records.size() || SameRecord(row.records[i + 1], newest)) return {};
  }
  // The cursor may be ahead of them: a warp has ended whose records were not all there yet.
  const int64_t behind_cursor =
      static_cast<int32_t>(static_cast<uint32_t>(row.written) - row.header.cursor);
  if (behind_cursor > 0 && others.has_next && !SameRecord(others.next_identity, newest)) return {};
  if (static_cast<int64_t>(row.written - row.first) <= behind_cursor) return newest;
  const bool no_other = !others.live || SameRecord(others.identity_before, newest);
  return !any_begin && no_other ? newest : Record{};
}

}  // namespace

UnfoldedRing UnfoldSettled(const capture::RingRow& row, const SettledNeighbours& others) {
  const uint64_t bytes = row.records.size() * kRecordBytes;
  UnfoldedRing result;
  result.suspect = (row.first | row.written) % kRecordBytes != 0 || row.written >= kMaxPosition ||
                   row.first > row.written || bytes > row.written - row.first;
  const uint64_t first = result.suspect ? 0 : row.first;
  result.ended = {first, row.records, WriterOfFirst(row, others)};
  result.written = first + bytes;
  // Of a piece this says nothing; of the last one it does.
  result.is_running = static_cast<uint32_t>(result.written) != row.header.cursor;
  return result;
}

UnfoldedRing UnfoldRing(const capture::RingRow& row, uint64_t ring_bytes) {
  const uint64_t bytes = row.records.size() * kRecordBytes;
  const uint32_t ahead = static_cast<uint32_t>(row.written) - row.header.cursor;
  const bool positions_hold = (row.first | row.written) % kRecordBytes == 0 &&
                              row.written < kMaxPosition && row.first <= row.written &&
                              bytes <= row.written - row.first;
  const bool header_fits =
      ahead % kRecordBytes == 0 && ahead <= row.written && (ring_bytes == 0 || ahead <= ring_bytes);
  if (!positions_hold || !header_fits) {
    // Take the records as they are, and say that something is wrong.
    UnfoldedRing result;
    result.ended = {positions_hold ? row.first : 0, row.records};
    result.written = positions_hold ? row.written : bytes;
    result.suspect = true;
    return result;
  }
  const bool whole = ring_bytes % kRecordBytes == 0 && bytes == ring_bytes && bytes != 0;
  const uint64_t cursor = row.written - ahead;
  if (whole) return UnfoldWholeRing(row, ring_bytes, cursor);

  UnfoldedRing result;
  const uint64_t final_bytes = cursor > row.first ? cursor - row.first : 0;
  const size_t final_count =
      static_cast<size_t>(std::min<uint64_t>(final_bytes / kRecordBytes, row.records.size()));
  result.ended = {row.first, row.records.first(final_count)};
  result.written = cursor;
  const std::span<const Record> candidates = row.records.subspan(final_count);
  if (row.first + final_count * kRecordBytes == cursor) {
    Beyond beyond = StartedAtCursor(candidates, row.header);
    if (!beyond.running && cursor != 0) beyond = GoesOnAtCursor(candidates, row.header);
    result.is_running = beyond.running;
    result.running = {cursor, candidates.first(beyond.count)};
    result.written += beyond.count * kRecordBytes;
  }
  result.stale = candidates.size() - result.running.records.size();
  return result;
}

void RingCollector::Expect(const std::map<std::pair<uint32_t, uint32_t>, uint64_t>& counts) {
  uint64_t total = 0;
  for (const auto& [ring, count] : counts) total += count;
  std::span<Record> room = memory_.Take(total);
  all_expected_ = room;
  AdviseColumnUse(room.data(), room.size_bytes(), ColumnUse::kScattered);
  for (const auto& [ring, count] : counts) {
    expected_[ring] = room.first(count);
    room = room.subspan(count);
  }
}

std::span<Record> RingCollector::RoomFor(uint32_t context, const capture::RingRow& row) {
  const auto expected = expected_.find({context, row.ring});
  if (expected == expected_.end() || expected->second.size() < row.records.size()) {
    return memory_.Take(row.records.size());
  }
  const std::span<Record> room = expected->second.first(row.records.size());
  expected->second = expected->second.subspan(row.records.size());
  return room;
}

void RingCollector::Add(const capture::RingBlock& block) {
  const bool shares = block.memory != nullptr && !ColumnsAreInFiles();
  if (shares) shared_.push_back(block.memory);
  for (const capture::RingRow& row : block.rows) {
    Reading reading{block.moment.context,
                    block.moment.number,
                    readings_.size(),
                    block.moment.settled,
                    block.moment.live,
                    block.moment.begin_ns,
                    row};
    if (!row.records.empty() && !shares) {
      const std::span<Record> room = RoomFor(block.moment.context, row);
      std::memcpy(room.data(), row.records.data(), row.records.size_bytes());
      reading.row.records = room;
    }
    readings_.push_back(reading);
  }
}

void RingCollector::SortReadings() {
  AdviseColumnUse(all_expected_.data(), all_expected_.size_bytes(), ColumnUse::kInOrder);
  auto key = [](const Reading& reading) {
    return std::tuple(reading.context, reading.row.ring, reading.moment, reading.order);
  };
  std::ranges::sort(readings_, [&](const Reading& a, const Reading& b) { return key(a) < key(b); });
}

// A ring whose running warp has just completed a lap looks like one whose warp ended. Where others
// of its context hang, it hangs with them.
void RingCollector::DecideLapped(std::span<RingStream> streams) {
  for (size_t begin = 0; begin < streams.size();) {
    size_t end = begin;
    bool any_running = false;
    while (end < streams.size() && streams[end].context == streams[begin].context) {
      any_running |= streams[end].running;
      ++end;
    }
    for (RingStream& stream : streams.subspan(begin, end - begin)) {
      if (!stream.may_be_lapped || !any_running || stream.stretches.empty()) continue;
      Stretch& last = stream.stretches.back();
      last.first = stream.written;
      stream.written += last.records.size() * kRecordBytes;
      stream.running = stream.lapped = stream.written_is_lower_bound = true;
    }
    begin = end;
  }
}

// Of a stream whose last reading is settled: whether the running warp's records are all there, from
// the cursor on.
bool RunsFromItsBegin(const RingStream& stream) {
  const uint64_t begin =
      stream.written -
      static_cast<uint32_t>(static_cast<uint32_t>(stream.written) - stream.header.cursor);
  uint64_t reached = stream.written;
  for (size_t i = stream.stretches.size(); i-- > 0 && reached > begin;) {
    if (stream.stretches[i].end() != reached) return false;
    reached = stream.stretches[i].first;
  }
  return reached <= begin;
}

RingStream RingCollector::Assemble(size_t begin, size_t end, uint64_t ring_bytes) {
  RingStream stream;
  bool last_settled = false;
  Record identity{};  // of the last header
  stream.context = readings_[begin].context;
  stream.ring = readings_[begin].row.ring;

  // Stretches by their first position; a later reading takes the place of what it covers.
  std::map<uint64_t, Stretch> placed;
  auto place = [&](const Stretch& stretch) {
    if (stretch.records.empty()) return;
    auto next = placed.lower_bound(stretch.first);
    if (next != placed.begin()) {
      Stretch& before = std::prev(next)->second;
      if (before.end() > stretch.end()) {
        const size_t offset = static_cast<size_t>((stretch.end() - before.first) / kRecordBytes);
        placed[stretch.end()] = {
            stretch.end(), before.records.subspan(offset), {}, before.read_host_ns};
      }
      if (before.end() > stretch.first) {
        before.records = before.records.first(
            static_cast<size_t>((stretch.first - before.first) / kRecordBytes));
      }
    }
    while (next != placed.end() && next->second.end() <= stretch.end()) next = placed.erase(next);
    if (next != placed.end() && next->first < stretch.end()) {
      Stretch tail = next->second;
      tail.records =
          tail.records.subspan(static_cast<size_t>((stretch.end() - tail.first) / kRecordBytes));
      tail.first = stretch.end();
      tail.writer = {};
      placed.erase(next);
      placed[tail.first] = tail;
    }
    placed[stretch.first] = stretch;
  };

  for (size_t i = begin; i < end;) {
    // The pieces of one moment are one reading.
    capture::RingRow row = readings_[i].row;
    size_t after = i + 1;
    size_t total = row.records.size();
    bool adjacent = true;  // they lie one behind the other
    while (after < end && readings_[after].moment == readings_[i].moment &&
           readings_[after].row.first == row.first + total * kRecordBytes) {
      adjacent &= readings_[after].row.records.data() == row.records.data() + total;
      total += readings_[after].row.records.size();
      ++after;
    }
    if (adjacent) {
      row.records = {row.records.data(), total};
    } else {
      Record* next = memory_.Take(total).data();
      row.records = {next, total};
      for (size_t piece = i; piece < after; ++piece) {
        next = std::ranges::copy(readings_[piece].row.records, next).out;
      }
    }
    last_settled = readings_[i].settled;
    const SettledNeighbours others{
        .identity_before = identity,
        .live = readings_[i].live,
        .has_next = after < end,
        .next_identity = after < end ? readings_[after].row.header.identity : Record{}};
    const int64_t read_host_ns = readings_[i].host_ns;
    identity = row.header.identity;
    i = after;

    UnfoldedRing unfolded = last_settled ? UnfoldSettled(row, others) : UnfoldRing(row, ring_bytes);
    if (!unfolded.rotated.empty()) {
      // The parts may refer to `rotated`: give it a home as long as ours.
      const Record* from = unfolded.rotated.data();
      Record* const to = memory_.Take(unfolded.rotated.size()).data();
      std::ranges::copy(unfolded.rotated, to);
      for (Stretch* part : {&unfolded.ended, &unfolded.running}) {
        if (part->records.empty()) continue;
        const auto offset = part->records.data() - from;
        part->records = {to + offset, part->records.size()};
      }
    }
    if (last_settled) unfolded.ended.read_host_ns = read_host_ns;
    place(unfolded.ended);
    place(unfolded.running);
    stream.settled += last_settled ? 1 : 0;
    if (row.header.end_timer() != 0) {
      const auto ahead =
          static_cast<int64_t>(row.header.end_timer() - static_cast<uint64_t>(read_host_ns));
      stream.timer_ahead_ns = std::max(stream.timer_ahead_ns.value_or(ahead), ahead);
    }
    stream.header = row.header;
    stream.written = unfolded.written;
    stream.written_is_lower_bound = unfolded.is_running && unfolded.lapped;
    stream.running = unfolded.is_running;
    stream.lapped = unfolded.lapped;
    stream.may_be_lapped = unfolded.may_be_lapped;
    stream.suspect |= unfolded.suspect;
    stream.stale += unfolded.stale;
  }
  for (const auto& [first, stretch] : placed) {
    if (!stretch.records.empty()) stream.stretches.push_back(stretch);
  }
  if (last_settled && stream.running && !RunsFromItsBegin(stream)) {
    stream.lapped = stream.written_is_lower_bound = true;
  }
  return stream;
}

}  // namespace iket::trace
