// distance.h: how many cycles lie between two instructions of a kernel, as its stalls say. Private
// to the room.
#pragma once

#include <cstdint>
#include <span>

#include "sass/instruction.h"

namespace iket::patch {

// A branch takes at least this long until its target issues.
inline constexpr uint8_t kBranchCycles = 5;

// Cycles that pass from instruction `first` until one that `reads` may issue, as far as `enough`; a
// branch may lead to one. Both functions are asked by index; `stall_of` gives cycles.
template <typename StallOf, typename Reads>
uint32_t CyclesUntil(std::span<const sass::Instruction> code, uint32_t first, uint32_t enough,
                     const StallOf& stall_of, const Reads& reads) {
  uint32_t cycles = 0;
  for (uint32_t i = first; i < code.size() && cycles < enough; ++i) {
    if (reads(i)) return cycles;
    if (sass::EndsBasicBlock(code[i])) return cycles + kBranchCycles;
    cycles += stall_of(i);
  }
  return cycles;
}

}  // namespace iket::patch
