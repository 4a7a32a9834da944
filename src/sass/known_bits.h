// known_bits.h: whether every bit of an instruction word has a meaning that its row in
// decode_table.h states.
//
// A word is known in full if each bit that is set is the opcode's, the guard's, the control
// field's, an operand's (where, the operand letters say) or one of a modifier that the row names,
// and each field that must hold a value holds it. What executes words relies on it: it looks at the
// modifiers of the row and at nothing else. Cost: some 100 ns, no allocation.
#pragma once

#include <cstdint>
#include <vector>

#include "sass/instruction.h"

namespace iket::sass {

// The bits that keep a word from being known in full: none, or all if there is no row for it.
Instruction UnknownBits(const Instruction& word);

// A field of modifiers that the word's row names.
struct BitField {
  uint32_t position = 0;
  uint32_t width = 0;
  bool has_effect = true;  // false: in parentheses
};
// Those that the word has, for tests; without signs of operands and fields of one value.
std::vector<BitField> ModifierFields(const Instruction& word);

}  // namespace iket::sass
