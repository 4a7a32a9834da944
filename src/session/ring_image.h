// ring_image.h: which bytes of ring memory belong into a capture.
//
// The bytes come from a GPU, perhaps while warps still write, and are taken as they are; `trace`
// judges them. Who can reach the memory, the guest or its supervisor, hands in how to copy it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "capture/content.h"
#include "ring/layout.h"

namespace iket::session {

// True if the ring's header says that some warp used it.
bool IsUsed(const ring::RingHeader& header);

// The part of a ring that is worth keeping: what ended warps wrote (up to the header's cursor), or,
// where a warp seems to be running or to have died, the whole ring from the cursor on: then
// `written` is the cursor plus the ring's size and the reader finds the end by the clocks.
capture::RingContents ContentsOf(uint32_t ring, const ring::RingHeader& header,
                                 std::span<const ring::Record> untrusted_records);

// How to copy bytes of a window to the host, from an offset into its table or its rings.
struct WindowCopy {
  std::function<Result<void>(void* to, size_t bytes)> table;
  std::function<Result<void>(void* to, uint64_t offset, size_t bytes)> rings;
};

// The used rings of one SM; `rings` point into `records`, which moves along.
struct SmRings {
  std::vector<ring::Record> records;
  std::vector<capture::RingContents> rings;
};

// One used ring as it lay in memory.
struct UsedRing {
  uint32_t ring = 0;
  ring::RingHeader header{};
  std::span<const ring::Record> untrusted_records{};
};

// Of `count` rings from `first` on, those that were used; their records are not known yet. `table`
// is the table of their window, as it was copied.
std::vector<UsedRing> FindUsedRings(std::span<const std::byte> untrusted_table, uint32_t first,
                                    uint32_t count);

// Reads the table, then the rings of each SM that was used, one SM (some MiB) at a time, and hands
// them to `visit` with the memory that they lie in, which it may take. Ends with the first error of
// a copy.
using VisitSm =
    std::function<void(std::span<const UsedRing> rings, std::vector<ring::Record>& records)>;
Result<void> CopyUsedRings(const ring::Layout& layout, const WindowCopy& copy,
                           const VisitSm& visit);

// The same, of each ring what is worth keeping.
Result<void> ReadRings(const ring::Layout& layout, const WindowCopy& copy,
                       const std::function<void(SmRings)>& visit);

}  // namespace iket::session
