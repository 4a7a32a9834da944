// tally.h: counts what a capture holds without decoding it: for the summary of a stream that is
// larger, decoded, than this machine's memory.
//
// Cost: one pass over the file, 16 ns a record (of packed ones, on a core of an H200's host), in
// the memory of one chunk and of 24 bytes a ring.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/progress.h"
#include "capture/reader.h"

namespace iket::cli {

struct Tally {
  uint64_t written = 0;  // records; a lower bound if `is_lower_bound`: a warp had not ended
  uint64_t kept = 0;
  uint64_t events = 0;  // of the kept, without those of names left out; with pops that close such
  uint64_t warps = 0;   // that began, of the kept
  bool is_lower_bound = false;

  uint64_t lost() const { return written - kept; }
};

Tally TallyOf(const capture::Reader& reader, const Progress& progress = {});

// Bytes that the decoded capture takes, about; and those that the machine has for it, UINT64_MAX
// if it does not say. $IKET_DECODE_BYTES says something else, for tests and for whoever knows
// better. Error (kUsage): that is no number.
uint64_t DecodingBytes(const capture::Reader& reader);
Result<uint64_t> MemoryForDecoding();

}  // namespace iket::cli
