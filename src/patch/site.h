// site.h: where the placeholders of marks are in compiled code.
//
// A placeholder (docs/placeholder.md) is one or two stores to the reserved window of shared memory
// and two slots, PMTRIG words that say what they become. ptxas moves other instructions between
// them, swaps the stores, and may put one before a loop's worth of arithmetic; what it keeps is
// that they stand in one basic block, stores before slots. So a site is found from its slots by
// address and guard, not by order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sass/instruction.h"

namespace iket::patch {

// Masks of PMTRIG: the high byte says which slot it is, the low byte of the first how far the
// cursor moves. Outside 1..4095, so that they are never taken for event ids of NVIDIA's
// placeholders.
inline constexpr uint32_t kFirstSlot = 0xe1;
inline constexpr uint32_t kSecondSlot = 0xe2;

// Offsets, from the top of the reserved window, at which the placeholder stores.
inline constexpr int32_t kTimeOffset = -8;
inline constexpr int32_t kPayloadOffset = -16;

struct Site {
  static constexpr uint32_t kNone = ~0u;
  // Indices of instructions, not bytes.
  uint32_t time = kNone;     // STS.64 {clock, id}
  uint32_t payload = kNone;  // STS of the payload, kNone without one
  uint32_t first_slot = kNone;
  uint32_t second_slot = kNone;
  uint32_t bytes = 0;  // by which the cursor advances
};

struct SiteProblem {
  uint32_t instruction = 0;
  std::string reason;
};

struct Sites {
  std::vector<Site> all;  // in order of their slots
  std::vector<SiteProblem> problems;
};

// Finds the sites of one code section. `entries` are byte offsets at which functions begin. A
// function with any problem must not be patched: a slot that is left over would store without
// advancing.
Sites FindSites(std::span<const sass::Instruction> code, std::span<const uint64_t> entries);

// True where a basic block begins, by instruction.
std::vector<bool> BlockStarts(std::span<const sass::Instruction> code,
                              std::span<const uint64_t> entries);

}  // namespace iket::patch
