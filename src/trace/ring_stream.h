// ring_stream.h: from the rows of a capture to each ring's stream of records, oldest first.
//
// A ring is a circle that warps wrote into, perhaps while it was read, perhaps several times. Here
// it becomes a stream with positions (docs/design/recording.md, section 5): what ended warps wrote
// is final; behind the header's cursor follows what a still running warp wrote, told from an older
// lap by its clock. Where two readings hold the same position, the later one counts.
//
// What a row may look like. `written` equals the header's cursor (mod 2^32): the records end there,
// and all are final. If they are the whole ring, the oldest of them may have been overwritten by a
// running warp: this is seen. `written` is past the cursor: the records behind the cursor are
// candidates, of a running warp or of an older lap. A whole ring may start anywhere.
//
// Cost: one copy of the records; a few comparisons a ring.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/column.h"
#include "capture/content.h"
#include "ring/layout.h"
#include "ring/record.h"

namespace iket::trace {

// Records at positions [first, first + 16 * records.size()) of a ring's stream.
struct Stretch {
  uint64_t first = 0;
  std::span<const ring::Record> records;
  // The identity of the warp that wrote the first of them, where a loss precedes them and the
  // header told; of another kind if that is not known.
  ring::Record writer = {};
  // A moment of the host's clock when they had been written, of settled readings: these follow a
  // ring while it is in use. 0: unknown.
  int64_t read_host_ns = 0;

  uint64_t end() const { return first + records.size() * ring::kRecordBytes; }
};

// One ring, put together.
struct RingStream {
  uint32_t context = 0;
  uint32_t ring = 0;  // SM * slots per SM + slot
  ring::RingHeader header = {};
  uint64_t written = 0;  // bytes; at least as many if `written_is_lower_bound`
  bool written_is_lower_bound = false;
  bool running = false;        // the last warp had not ended
  bool lapped = false;         // and it has overwritten its own begin
  bool may_be_lapped = false;  // until it is known whether warps of its context are running
  bool suspect = false;        // the header and the records contradict each other
  uint64_t stale = 0;          // records beyond the cursor that are of an older lap, or of nobody
  uint32_t settled = 0;        // readings of it that are
  // %globaltimer is ahead of the host's clock by at least this, say its headers: no end was read
  // before it was.
  std::optional<int64_t> timer_ahead_ns;
  std::vector<Stretch> stretches;  // ascending, disjoint
};

// Records that stay where they are.
class RecordMemory {
 public:
  // Room for so many, not filled.
  std::span<ring::Record> Take(size_t count) {
    if (left_.size() < count) {
      left_ = blocks_.emplace_back(std::max(count, kBlock));
    }
    const std::span<ring::Record> taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }

 private:
  static constexpr size_t kBlock = size_t{1} << 20;  // what is not used of it costs nothing

  std::vector<Column<ring::Record>> blocks_;
  std::span<ring::Record> left_;  // of the last one
};

// What one reading of a ring says, before readings are put together.
struct UnfoldedRing {
  Stretch ended;                      // of warps up to the cursor
  Stretch running;                    // behind the cursor
  std::vector<ring::Record> rotated;  // keeps `running` alive where it wraps around
  uint64_t written = 0;
  bool is_running = false;
  bool lapped = false;
  // All records are younger than the end in the header, and none is out of order: either that warp
  // was silent for a second before its end, or a running one has just completed a lap.
  bool may_be_lapped = false;
  bool suspect = false;
  uint64_t stale = 0;
};

// Takes one reading apart. `row` is untrusted; `ring_bytes` is 0 if not known.
// Of a settled moment: nothing is to be told but whether the last warp is running.
struct SettledNeighbours {
  // In the header of the reading before; of another kind if there was none.
  ring::Record identity_before = {};
  bool live = false;  // of this moment
  // In the header of the next reading, which is there if the header changed at all.
  bool has_next = false;
  ring::Record next_identity = {};
};
UnfoldedRing UnfoldSettled(const capture::RingRow& row, const SettledNeighbours& others);
UnfoldedRing UnfoldRing(const capture::RingRow& row, uint64_t ring_bytes);

// Collects rows and puts them together.
class RingCollector {
 public:
  // What is going to be added, by context and ring: at most. Records of a ring then lie one behind
  // the other, whatever the order in which they come.
  void Expect(const std::map<std::pair<uint32_t, uint32_t>, uint64_t>& counts);

  // Rows of a ring come in the order of their positions within a moment. Records are copied where
  // the block does not share their memory, and where columns are in files.
  void Add(const capture::RingBlock& block);

  // The rings in the order of (context, ring). `ring_bytes(context)` is 0 if not known. Streams
  // refer to memory of this object.
  template <typename RingBytes>
  std::vector<RingStream> Streams(RingBytes&& ring_bytes) {
    std::vector<RingStream> streams;
    SortReadings();
    for (size_t begin = 0; begin < readings_.size();) {
      size_t end = begin;
      while (end < readings_.size() && SameRing(readings_[begin], readings_[end])) ++end;
      streams.push_back(Assemble(begin, end, ring_bytes(readings_[begin].context)));
      begin = end;
    }
    DecideLapped(streams);
    return streams;
  }

 private:
  struct Reading {
    uint32_t context = 0;
    uint64_t moment = 0;
    uint64_t order = 0;  // of arrival
    bool settled = false, live = false;
    int64_t host_ns = 0;
    capture::RingRow row;
  };

  static bool SameRing(const Reading& a, const Reading& b) {
    return a.context == b.context && a.row.ring == b.row.ring;
  }
  // Where the records of a row go.
  std::span<ring::Record> RoomFor(uint32_t context, const capture::RingRow& row);
  void SortReadings();
  static void DecideLapped(std::span<RingStream> streams);
  RingStream Assemble(size_t begin, size_t end, uint64_t ring_bytes);

  Column<Reading> readings_;
  RecordMemory memory_;
  std::map<std::pair<uint32_t, uint32_t>, std::span<ring::Record>> expected_;  // room that is left
  std::span<const ring::Record> all_expected_;
  std::vector<std::shared_ptr<const void>> shared_;  // of blocks
};

}  // namespace iket::trace
