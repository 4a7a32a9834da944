// cta_selection.h: code that finds out whether a warp's CTA passes a filter.
//
// It stands before a kernel's entry code, and only where there is a filter: kernels that are
// recorded whole pay nothing. Cost: 4 instructions, 12 for a cluster, 9 for a sample and 2 a range
// of SMs, and their latencies: some 100 to 250 cycles a warp.
#pragma once

#include <cstdint>
#include <vector>

#include "ring/cta_filter.h"
#include "sass/instruction.h"

namespace iket::patch {

// The uniform register with the result: the high word of ring::kSinkBit for a warp that is left
// out, 0 for one that passes.
inline constexpr uint8_t kSelectionResult = 4;

// No code for a filter that all pass. Clobbers R0..R3, P1, P2 and UR4. Before sm_90, which has no
// clusters, each CTA counts as one.
std::vector<sass::Instruction> SelectionCode(const ring::CtaFilter& filter,
                                             sass::Generation generation);

// What divides by a constant without a division: `n` is a multiple of the number iff n * inverse,
// rotated to the right by `shift`, is not above `most` (Granlund and Montgomery, 1994, section 9).
struct Divisor {
  uint32_t inverse = 1;
  uint32_t shift = 0;
  uint32_t most = ~0u;
};
Divisor DivisorOf(uint32_t number);

}  // namespace iket::patch
