// ring_image.h: which bytes of ring memory belong into a capture.
//
// Pure functions over a copy of the table and of one ring. The bytes come from a GPU, perhaps while
// warps still write, and are taken as they are; `trace` judges them.
#pragma once

#include <cstdint>
#include <span>

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

}  // namespace iket::session
