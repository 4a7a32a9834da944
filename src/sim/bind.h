// bind.h: from an instruction word to the operation that executes it.
//
// BindInstruction never fails: a word that the machine does not know, or one with a modifier that
// it does not know, becomes an operation that ends the launch with kUnsupported and the word's
// disassembly. One Bind* function a class of instructions; each takes the words that are its own.
//
// The bind_*.cpp are compiled once for any x86-64 and once for those with AVX2 and FMA, into the
// namespace that the build calls IKET_SIM_ISA; which one binds is decided when the program starts.
// Both compute the same bits.
#pragma once

#include <string_view>

#include "sim/op.h"

namespace iket::sim {

// `index`: of the instruction in its image; relative branches are resolved with it.
Op BindInstruction(const sass::Instruction& word, uint32_t index);

// Operands of ALU instructions, by their form (bits 9..11): fills d, a, b and c. False for a form
// that does not exist.
bool BindAlu(Op& op);
// The same for uniform ALU instructions.
bool BindUniformAlu(Op& op);

namespace baseline {
bool BindAny(Op& op, uint32_t index);
}
namespace haswell {
bool BindAny(Op& op, uint32_t index);
}

#if defined(IKET_SIM_ISA)
namespace IKET_SIM_ISA {

// The classes. Each returns false for a word that is not one of its own, and else sets op.run (to
// null if it knows the opcode but not this variant of it) and the operands.
bool BindMove(Op& op);
bool BindInteger(Op& op);
bool BindLogic(Op& op);
bool BindFloat(Op& op);
bool BindDouble(Op& op);
bool BindHalf(Op& op);
bool BindConvert(Op& op);
bool BindUniform(Op& op);
bool BindMemory(Op& op);
bool BindAtomic(Op& op);
bool BindControl(Op& op, uint32_t index);
bool BindWarpwide(Op& op);
bool BindBarrier(Op& op);
bool BindMatrix(Op& op);

// Of FADD, FMUL and FFMA the common variants; for BindFloat.
bool BindNearest(Op& op);

}  // namespace IKET_SIM_ISA
#endif

}  // namespace iket::sim
