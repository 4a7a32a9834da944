// late_start.h: up to where a warp may run before the cursor of its ring has to be there.
//
// The entry code of a kernel loads the cursor, which takes a microsecond where the caches hold
// other things. Nothing needs it before the first event. So the load is begun when the warp
// starts, the kernel goes on, and the rest of the entry code stands further down: as far as the
// straight way leads that every warp goes, before whatever could keep the warp from ever coming
// there (a barrier, a loop, a load or store of memory that may not be mapped), records or ends it.
//
// What is kept until then is in registers that no instruction on the way names: nothing is alive
// when a kernel begins, so these hold nothing.
//
// Cost: a search over the first blocks of the kernel, bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sass/instruction.h"

namespace iket::patch {

struct LateStart {
  uint32_t at = 0;        // the instruction before which the rest of the entry code runs
  uint32_t passed = 0;    // instructions before it, on all ways
  uint8_t begin = 0;      // first of four registers, a multiple of four, for the record begin
  uint8_t identity = 0;   // likewise
  uint8_t cursor = 0;     // likewise: cursor, previous end, offset of the header, a constant
  uint8_t predicate = 0;  // that nobody names on the way
};

// The lowest registers that may be taken: the entry code makes what it keeps out of those below.
inline constexpr uint8_t kFirstKeptRegister = 8;
// Ways that are shorter are not worth it: they hide less than the five instructions more cost where
// many short warps share an SM, whose loads hide each other.
inline constexpr uint32_t kLeastPassed = 16;

struct LateStartInput {
  std::span<const sass::Instruction> code;  // sites rewritten, ends not yet
  std::span<const uint64_t> entries;        // byte offsets at which functions begin
  std::span<const uint32_t> fixed;          // sorted: instructions that must stay where they are
  uint32_t second = 1;                      // where the kernel goes on behind its first instruction
  uint32_t registers = 0;                   // of a thread
  sass::Generation generation = sass::Generation::kHopper;
};
// Nothing where there is no such place, or none that is far enough.
std::optional<LateStart> FindLateStart(const LateStartInput& input);

}  // namespace iket::patch
