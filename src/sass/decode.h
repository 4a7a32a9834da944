// decode.h: the instructions of sm_90: which word is which, and where its operands are.
//
// One table (decode_table.h) with a row for each opcode: its mnemonic and its operands by kind and
// position. The software device asks it what a word is called when it does not execute it; the
// coverage page is printed from it. Modifiers (".FTZ", ".64") are not part of it: whoever executes
// a word reads them itself. Referee: nvdisasm (decode_test.cpp).
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
  const char* operands = "";  // one letter each, see decode.cpp
};

std::span<const OpcodeRow> OpcodeTable();
// Null for a word that is not in the table. Cost: a look-up by opcode.
const OpcodeRow* FindOpcode(const Instruction& instruction);

// "@!P0 IADD3 R2, R3, 0x10, RZ": guard, mnemonic, operands; no modifiers. For an unknown word its
// bits. `pc` is the byte address that relative targets are counted from.
std::string Disassemble(const Instruction& instruction, uint64_t pc = 0);

}  // namespace iket::sass
