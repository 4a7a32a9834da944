// foreign_site.h: where the placeholders of other tools are in compiled code.
//
// What NVIDIA's IKET and those who follow it put where an event is (docs/design/compat.md), as
// ptxas leaves it:
//
//     ELECT P0, URZ, PT                    with a payload; not TileLang's
//     CS2R.32 Rt, SR_GLOBALTIMERLO         or S2UR, and a move to Rt behind it
//     LOP3.LUT Rt, Rt, ID, RZ, 0xfc        NativeDump
//     @P0 STS [UR+0x3f4], Rp               the payload, before or behind the time stamp
//     @P0 STS [UR+0x3f0], Rt               STS.64 {timer, ID} of ExtendedNativeDump
//     PMTRIG ID
//
// Other instructions stand between them, the address is made elsewhere, all of it may be under one
// more guard, and the two stores may be one of 64 or 128 bits. So a site is found from its PMTRIG,
// by registers: the stored word is the timer, or that and the id, and everything is in one basic
// block. The front ends say which event it is in the mask, the metadata says what it stores.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "patch/foreign.h"
#include "patch/site.h"
#include "sass/instruction.h"

namespace iket::patch {

struct Guard {
  uint8_t predicate = sass::kPredicateTrue;
  bool negated = false;

  bool always() const { return predicate == sass::kPredicateTrue && !negated; }
  friend bool operator==(const Guard&, const Guard&) = default;
};
inline Guard GuardOf(const sass::Instruction& instruction) {
  return {instruction.guard(), instruction.guard_negated()};
}

struct ForeignSite {
  static constexpr uint32_t kNone = ~0u;
  // Indices of instructions, not bytes. Of a bare PMTRIG only the trigger is there.
  uint32_t clock = kNone;    // reads the timer
  uint32_t move = kNone;     // from a uniform register, if it was read to one
  uint32_t join = kNone;     // ORs the id to it; NativeDump
  uint32_t store = kNone;    // of the time stamp
  uint32_t payload = kNone;  // store of the payload; may be `store` itself
  uint32_t trigger = kNone;
  uint32_t id = 0;             // of the metadata
  uint32_t payload_bytes = 0;  // 0, 4 or 8
  uint8_t payload_register = sass::kRegisterZero;
  // Who stores. Where it is not always, or an elected lane, it may be nobody (rewriting must ask).
  Guard guard;
  bool somebody_stores = true;

  uint32_t event = 0;     // the id that it will record
  bool left_out = false;  // nobody wants it: it stays as it is
  // How it records (foreign_code.h): a pair of spare registers, spare predicates of both files, the
  // scoreboard of stores that read the pair.
  std::optional<uint8_t> pair{};
  std::optional<uint8_t> predicate{};
  std::optional<uint8_t> uniform_predicate{};
  uint8_t barrier = 0;
  bool keeps_stamp = false;  // somebody else may read the time stamp, too

  uint32_t first() const { return clock == kNone ? trigger : clock; }
};

struct ForeignSites {
  std::vector<ForeignSite> all;  // in order of their triggers
  std::vector<SiteProblem> problems;
};

// Finds the sites of one code section. As for our own (site.h), a section with problems must not be
// patched. Without declared events there are none.
ForeignSites FindForeignSites(std::span<const sass::Instruction> code,
                              std::span<const uint64_t> entries, sass::Generation generation,
                              const ForeignMarks& marks);

}  // namespace iket::patch
