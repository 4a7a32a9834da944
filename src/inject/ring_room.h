// ring_room.h: how large the rings of this process are, by what it was told and the GPUs it has.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "ring/layout.h"

namespace iket::inject {

struct RingRoom {
  ring::Layout layout;
  uint64_t wanted_ring_bytes = 0;  // the layout may have less
  uint64_t memory_bytes = 0;       // for all rings on one GPU
  bool in_flight = false;          // they lie in the host's memory
};

// One layout a process, the same each time: enough SMs for every GPU, rings that fit into the
// smallest. Errors: kUsage, a setting that is no number; kSystem, no GPU, or one that does not
// answer; kNothing, no room.
Result<RingRoom> ChooseRingRoom();

}  // namespace iket::inject
