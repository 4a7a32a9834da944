// operands.h: which registers an instruction names.
//
// Both questions are asked of whole functions, to decide whether they may be patched, and err on
// the safe side: an unknown instruction is taken to name more than it does.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>

#include "sass/instruction.h"

namespace iket::sass {

// True if the instruction may name one of UR0..UR3. Positions of uniform operands by opcode: see
// docs/design/recording.md and the table in operands.cpp. For an opcode that the table does not
// know, true if any place where a uniform operand can stand holds 0..3.
bool MayUseReservedUniforms(const Instruction& instruction, Generation generation);

// MOV in any form, or IMAD used as one (its multiplicand is RZ).
bool IsMove(const Instruction& instruction);
// The uniform register that is moved, whole, to the general one at bit 16; nothing for all else.
std::optional<uint8_t> MovedUniform(const Instruction& instruction, Generation generation);
// The constant that a move of one writes, whole, to the register at bit 16: MOV, or IMAD.MOV.
// Nothing for all else, among it constants that are made in other ways.
std::optional<uint32_t> MovedConstant(const Instruction& instruction);
// False if the instruction is known not to write general register `index`.
bool MayWriteRegister(const Instruction& instruction, uint32_t index);
// True if it writes that register whenever its guard holds, whole; false of what is not known.
bool WritesRegister(const Instruction& instruction, uint32_t index);
// False if the instruction is known not to read general register `index`. Matrix instructions,
// which are no arithmetic in this sense, read up to eight registers an operand.
bool MayReadRegister(const Instruction& instruction, uint32_t index);
// False if the instruction is known not to write predicate `index`, P0..P6.
bool MayWritePredicate(const Instruction& instruction, uint32_t index);
// False if the instruction is known not to read uniform register `index`. Descriptors take up to
// eight in a row.
bool MayReadUniform(const Instruction& instruction, uint32_t index, Generation generation);
// False if the instruction is known not to write uniform register `index`.
bool MayWriteUniform(const Instruction& instruction, uint32_t index, Generation generation);
// True if it always writes that register, whole; false of what is not known.
bool WritesUniform(const Instruction& instruction, uint32_t index, Generation generation);
// ISETP in any form, and the first predicate that it writes.
bool IsIsetp(const Instruction& instruction);
uint32_t IsetpPredicate(const Instruction& instruction);
// True if that predicate is the comparison and nothing else, and is all that it writes. Before
// sm_90 it may be joined to another: a mark's is.
bool IsSimpleIsetp(const Instruction& instruction, Generation generation);

using RegisterSet = std::bitset<256>;

// Every general register that the instruction may read or write, at any time: no other is touched.
// All of them where it is not known.
RegisterSet NamedRegisters(const Instruction& instruction);
// A bit for each of P0..P6, and each of UP0..UP6, that the instruction may name anywhere: as guard,
// source or result. Errs by what other fields hold by chance.
struct PredicateSet {
  uint8_t vector = 0, uniform = 0;
};
PredicateSet NamedPredicates(const Instruction& instruction);

// The general registers that the instruction may still be reading after the next ones have issued,
// with no scoreboard to tell when it is done: sources of memory instructions without a read
// barrier. ptxas leaves the barrier out where nothing later writes those registers; whoever adds
// code that does (an exit stub) must keep off them. Empty for every other instruction.
RegisterSet UnguardedSources(const Instruction& instruction, Generation generation);
// True of stores and reductions, which take a read barrier if they have none.
bool CanGuardSources(const Instruction& instruction);

}  // namespace iket::sass
