// roomy_copy.h: a second copy of a code section behind the first, with room for more instructions.
//
// Placeholders of other tools have one slot too few: recording takes an instruction more than they
// leave. Branching to it and back would cost more than the event itself. So the whole section is
// copied behind itself with instructions replaced by any number of others, relative branches go from
// copy to copy, and the old code leads there: every old instruction that a branch, a call, a return,
// a table of addresses or the driver may reach becomes a branch to its copy. Nothing has to be
// known of who that is.
//
// What may not move stays where it is, and the copy branches there: calls and returns (their targets
// count from where they stand, their return addresses are the old code's), indirect branches,
// collective regions of a warp, and what a relocation will change. Behind each of these the old code
// leads back.
//
// Cost: no branch more in any loop without such instructions. The section becomes about twice as
// long; of a kernel that runs, the old code is not touched but for the first instruction.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "sass/instruction.h"

namespace iket::patch {

// What an instruction of the old code becomes in the copy, by its index. None of them is itself a
// branch.
using Replacements = std::map<uint32_t, std::vector<sass::Instruction>>;

struct RoomyCopy {
  static constexpr uint32_t kNowhere = ~0u;

  std::vector<sass::Instruction> code;  // old code and copy
  // Where each old instruction, or what replaced it, begins in the copy; kNowhere: not copied.
  std::vector<uint32_t> moved;
  // Indices of the old code that are what they were: stayed, or never reached.
  std::vector<bool> kept;
};

// `entries` are byte offsets at which functions begin; `fixed` indices of instructions that must not
// move beside those that show it themselves (relocated ones, and the first of a kernel, which the
// trampoline executes). No replaced instruction may be among the fixed ones: see MayMove.
RoomyCopy CopyWithRoom(std::span<const sass::Instruction> code, std::span<const uint64_t> entries,
                       const std::set<uint32_t>& fixed, const Replacements& replacements,
                       sass::Generation generation);

// By index: may the instruction stand elsewhere? Without `fixed`.
std::vector<bool> Movable(std::span<const sass::Instruction> code);

}  // namespace iket::patch
