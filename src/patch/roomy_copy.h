// roomy_copy.h: a second copy of a code section behind the first, with room for more instructions.
//
// Placeholders of other tools have one slot too few: recording takes an instruction more than they
// leave. Branching to it and back would cost more than the event itself. So the whole section is
// copied behind itself with instructions replaced by any number of others, relative branches go
// from copy to copy, and each old instruction becomes a branch to its copy. So whoever reaches the
// old code, by a return, a table of addresses or a pointer, goes on in the copy, and nothing has to
// be known of them.
//
// What may not move stays where it is, and the copy branches there: calls and returns (their
// targets count from where they stand, their return addresses are the old code's), indirect
// branches, collective regions of a warp, and what a relocation will change. Behind each of these
// the old code leads back.
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
};

// `fixed`: indices of instructions that must not move beside those that show it themselves
// (relocated ones, and the first of a kernel, which the trampoline executes). What is replaced must
// be movable.
RoomyCopy CopyWithRoom(std::span<const sass::Instruction> code, const std::set<uint32_t>& fixed,
                       const Replacements& replacements, sass::Generation generation);

// By index: may the instruction stand elsewhere? Without `fixed`.
std::vector<bool> Movable(std::span<const sass::Instruction> code);

}  // namespace iket::patch
