// ring_memory.h: reads the rings of a guest's context from outside.
//
// Works while the guest runs, after it ended, and after it was killed or its context died of a
// fault: the handles keep the memory. Cost: a context of our own on the first use (about 0.2 s),
// then one copy of the rings that were used.
#pragma once

#include <cstdint>

#include "capture/writer.h"
#include "session/message.h"
#include "supervisor/driver.h"

namespace iket::supervisor {

// Reads all used rings of a context and appends them as one moment. `live`: the guest still runs.
// Does not close the descriptors of `memory`. Errors: kSystem (driver), kBadInput (sizes that make
// no sense), and those of the writer.
Result<void> AppendRingMemory(const Driver& driver, const session::RingMemory& untrusted_memory,
                              bool live, uint64_t moment, capture::Writer& writer);

}  // namespace iket::supervisor
