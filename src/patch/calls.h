// calls.h: which instructions call or jump to where, as far as they say it themselves.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sass/instruction.h"

namespace iket::patch {

// False of nearly all instructions, and at once: then none of the questions below needs asking.
inline bool MayCallOrJump(const sass::Instruction& instruction) {
  const uint32_t base = instruction.base_opcode();
  return base >= 0x143 && base <= 0x14c;  // CALL.ABS, CALL.REL, ..., JMP, JMX
}

// CALL in any form.
bool IsCall(const sass::Instruction& instruction);

// Calls and jumps that take their target from a register. Branches by a register (BRX) stay in
// their function.
bool CallsPointer(const sass::Instruction& instruction);

// True of a call or jump whose target only a relocation can tell, if anything can. `index` is the
// instruction's place in its section of `count`.
bool NeedsRelocation(const sass::Instruction& instruction, size_t index, size_t count,
                     sass::Generation generation);

// True of either: what it calls may lie outside of its section.
bool MayLeaveSection(const sass::Instruction& instruction, size_t index, size_t count,
                     sass::Generation generation);

}  // namespace iket::patch
