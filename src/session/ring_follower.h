// ring_follower.h: follows a ring through readings while warps write into it, and gives out each
// record once, in order, at its position in the ring's stream.
//
// Whether a slot of the ring holds a new record is told by one comparison: its bytes differ from
// what the last reading found there. (The clock is one of the words; a record that repeats another
// one of the same slot bit by bit, 2^32 cycles later, would be taken for it.) Records that are not
// yet visible, in whatever order a GPU's stores become so, end a reading's run and are found by the
// next. Where warps have come around faster than they were read, the step back of the clock says
// where the oldest record is; the loss is known exactly as soon as a warp of the ring has ended,
// since headers count what was ever written.
//
// Guarantees: no record twice, none of an older lap as a new one; positions grow, and agree with
// the headers' cursors modulo 4 GiB as long as fewer than 2 GiB a ring are written between two
// readings. Memory: a copy of the ring. Cost of a reading without news: one comparison of 16 bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "capture/content.h"
#include "ring/layout.h"
#include "session/ring_image.h"

namespace iket::session {

class RingFollower {
 public:
  explicit RingFollower(size_t records = 0) : known_(records) {}

  // Takes a reading: the header, and the memory as it was copied after that. `quiet`: nobody writes
  // to the ring any more, nor did while it was copied; only then is the newest record surely given.
  // Returns the row to append to a capture, of a moment that is `settled`; nothing if there is no
  // news. The row refers to `untrusted_records`.
  std::optional<capture::RingContents> Follow(uint32_t ring, const ring::RingHeader& header,
                                              std::span<const ring::Record> untrusted_records,
                                              bool quiet);

  // The same of a ring that was used, whose size is learnt from its first reading: so rings that
  // are never used cost nothing.
  std::optional<capture::RingContents> Follow(const UsedRing& ring, bool quiet) {
    if (known_.empty()) known_.resize(ring.untrusted_records.size());
    return Follow(ring.ring, ring.header, ring.untrusted_records, quiet);
  }

  size_t size() const { return known_.size(); }  // records of the ring
  uint64_t given() const { return given_; }      // records given out so far
  // Records that were overwritten before they were read: exact when no warp of the ring is running,
  // else at least as many.
  uint64_t lost() const { return position_ - given_; }

 private:
  size_t NewRecords(std::span<const ring::Record> records) const;
  void BeSure(std::span<const ring::Record> records, size_t run);

  std::vector<ring::Record> known_;  // by slot: when it was given out, or the ring had come around
  uint64_t position_ = 0;            // records: behind the last one that was given out or lost
  uint64_t given_ = 0;
  // The last reading found a ring that had come around: what stands behind position_ may be new
  // without having changed since.
  bool unsure_ = false;
  ring::RingHeader header_{};  // of the last row
};

}  // namespace iket::session
