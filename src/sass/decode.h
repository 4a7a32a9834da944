// decode.h: the instructions of sm_90: which word is which, and where its operands are.
//
// One table (decode_table.h) with a row for each opcode: its mnemonic, its operands by kind and
// position, and which bits are modifiers (".FTZ", ".64") that whoever executes the word knows. The
// software device asks it what a word is called when it does not execute it, and whether a word has
// a bit that no row speaks of (known_bits.h); the coverage page is printed from it. Referee:
// nvdisasm (decode_test.cpp, and sensitivity_test.cpp for modifiers).
//
// Modifiers are fields, separated by blanks:
//
//   72  73-75     bits that whoever executes the word looks at
//   (77-80)       known, and without effect here: caches, scopes, hints
//   84-86=4       must hold this value
//   -a  |B|       the sign of an operand, by its letter: 72 and 73 for a, 63 and 62 for what stands
//   at
//                 bit 32 (no immediate has them), 75 and 74 for what stands at bit 64
//   X:60-61       only if what stands at bit 32 is no immediate
//   91:76         only if bit 91 is set: a uniform register takes part
//
// All other bits must be zero.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sass/instruction.h"

namespace iket::sass {

struct OpcodeRow {
  uint16_t opcode = 0;    // all twelve bits, or with `any_form` the low nine
  bool any_form = false;  // operand form (bits 9..11) is free: an ALU instruction
  const char* mnemonic = "";
  const char* operands = "";   // one letter each, see decode.cpp
  const char* modifiers = "";  // see above
};

std::span<const OpcodeRow> OpcodeTable();
// Null for a word that is not in the table. Cost: a look-up by opcode.
const OpcodeRow* FindOpcode(const Instruction& instruction);

// "@!P0 IADD3 R2, R3, 0x10, RZ": guard, mnemonic, operands; no modifiers. For an unknown word its
// bits. `pc` is the byte address that relative targets are counted from.
std::string Disassemble(const Instruction& instruction, uint64_t pc = 0);

}  // namespace iket::sass
