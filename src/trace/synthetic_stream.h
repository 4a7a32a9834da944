// synthetic_stream.h: a capture of any length, as `iket profile --overflow stream` leaves it, made
// in the memory of one launch of it. For benchmarks and tests; nothing of the product uses it.
//
// One kernel, launched again and again: 132 SMs, a CTA of 16 warps on each, other ones in each
// launch, every warp with rounds of eight events (a range in a range, a mark, a scoped range with a
// mark that carries a number). How long each step takes is drawn at random, from a fixed seed.
// Rings are packed, a launch a moment.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/progress.h"

namespace iket::trace {

struct StreamLength {
  uint64_t events = 0;   // about; the result is at least one launch
  uint32_t rounds = 50;  // of a warp in each launch; fewer if there are too few events
};

struct StreamCounts {
  uint64_t launches = 0;
  uint64_t warps = 0;
  uint64_t events = 0;
};

// Errors (kSystem): the file cannot be written.
Result<StreamCounts> WriteSyntheticStream(const StreamLength& length, const std::string& path,
                                          const Progress& progress = {});

}  // namespace iket::trace
