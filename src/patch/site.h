// site.h: where the placeholders of marks are in compiled code.
//
// A placeholder (docs/placeholder.md) is a guarded store that never happens, the comparison that
// guards it, and one or two PMTRIG words, slots, that say what they become; an event with several
// values has more stores, each with two slots of its own. ptxas moves other
// instructions between them, and what makes up the stored words under the store's guard; what it
// keeps is that all stand in one basic block in the order of the source. So a site is found from
// its last slot, by addresses, registers and guards.
//
// Which event a site stores shows where its id is a constant that is moved into its register in the
// same block: of every site that ptxas was seen to make (748 of 748, sm_90). Nothing but the choice
// of events relies on it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sass/instruction.h"

namespace iket::patch {

// Masks of PMTRIG: the high byte says which slot it is, the low byte of the last how far the cursor
// moves. Outside 1..4095, so that they are never taken for event ids of NVIDIA's placeholders.
inline constexpr uint32_t kAdvanceSlot = 0xe1;  // behind the store
inline constexpr uint32_t kAddressSlot = 0xe2;  // before the clock is read; only with a payload
inline constexpr uint32_t kNextSlot = 0xe3;     // before a store that is not the last: advances too
inline constexpr uint32_t kMoreSlot = 0xe4;     // before each store but the first: the address

// Offsets, from the top of the reserved window, at which the placeholder would store.
inline constexpr int32_t kPlainOffset = -8;     // STS.64 {clock, id}
inline constexpr int32_t kPayloadOffset = -16;  // STS.128 {clock, id, payload low, payload high}

// A store behind the first.
struct MoreOfSite {
  uint32_t next = 0;     // slot, before the store that precedes this one
  uint32_t address = 0;  // slot
  uint32_t store = 0;
};

struct Site {
  static constexpr uint32_t kNone = ~0u;
  // Indices of instructions, not bytes.
  uint32_t address = kNone;  // slot, kNone without payload
  uint32_t compare = kNone;  // ISETP of the clock: makes the store's guard
  uint32_t store = kNone;
  uint32_t advance = kNone;  // slot
  uint32_t bytes = 0;        // by which the cursor advances, for each record
  std::vector<MoreOfSite> more;
  uint32_t event = 0;     // the id that it stores; 0: the code does not show which
  bool left_out = false;  // nobody wants its event: it stays as it is

  bool has_payload() const { return address != kNone; }
  uint32_t last_store() const { return more.empty() ? store : more.back().store; }
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
Sites FindSites(std::span<const sass::Instruction> code, std::span<const uint64_t> entries,
                sass::Generation generation);

// True where a basic block begins, by instruction.
std::vector<bool> BlockStarts(std::span<const sass::Instruction> code,
                              std::span<const uint64_t> entries, sass::Generation generation);

}  // namespace iket::patch
