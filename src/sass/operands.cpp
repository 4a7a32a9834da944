#include "sass/operands.h"

#include <string_view>

#include "sass/decode.h"

namespace iket::sass {
namespace {

constexpr uint32_t kReservedUniforms = 4;  // UR0..UR3

// Instructions outside the uniform ALU that write a uniform register at bit 16.
bool WritesUniformFromElsewhere(uint32_t opcode) {
  switch (opcode) {
    case 0x2ca:     // R2UR
    case 0x3c2:     // the same
    case 0x3c4:     // REDUX
    case 0x2cc:     // CREDUX
    case 0x886:     // VOTEU
    case 0x9c3:     // S2UR
    case 0xab9:     // ULDC
    case 0xabb:     // the same, at an offset from a uniform register
    case 0x5b2:     // SYNCS.EXCH
    case kOpElect:  // a predicate and, optionally, the lane's number
      return true;
    default:
      return false;
  }
}

// The uniform ALU: base opcodes 0x080 to 0x0bf. UISETP and UPLOP3 write predicates only.
bool IsUniformAlu(const Instruction& instruction) {
  const uint32_t base = instruction.base_opcode();
  return base >= 0x080 && base <= 0x0bf && base != 0x08c && base != 0x09c;
}

// Memory, texture and surface instructions: base opcodes 0x160 to 0x1bf.
bool IsMemory(const Instruction& instruction) {
  const uint32_t base = instruction.base_opcode();
  return base >= 0x160 && base <= 0x1bf;
}

// Registers that the data operand of a store takes, by the width field of bits 73..75.
uint32_t DataRegisters(const Instruction& instruction) {
  switch (instruction.Bits(73, 3)) {
    case 4:
      return 1;
    case 5:
      return 2;
    default:
      return 4;  // 128 bits, or a width (8, 16 bits, other encodings) that takes less
  }
}

void Add(RegisterSet& set, uint32_t first, uint32_t count) {
  if (first == kRegisterZero) return;
  for (uint32_t i = first; i < first + count && i < kRegisterZero; ++i) set.set(i);
}

}  // namespace

// Only writers matter: a value that nobody writes cannot be relied on by anybody who reads it.
bool MayUseReservedUniforms(const Instruction& instruction) {
  if (!WritesUniformFromElsewhere(instruction.opcode()) && !IsUniformAlu(instruction)) return false;
  return instruction.Bits(16, 6) < kReservedUniforms;
}

bool IsMove(const Instruction& instruction) {
  const uint32_t base = instruction.base_opcode();
  return base == 0x002 || (base == 0x024 && instruction.Bits(24, 8) == kRegisterZero);
}

std::optional<uint32_t> MovedConstant(const Instruction& instruction) {
  constexpr uint32_t kMov = 0x802, kImad = 0x424;  // R, imm and R, R, R, imm
  constexpr uint32_t kAllBytes = 15;
  const bool is_mov = instruction.opcode() == kMov && instruction.Bits(72, 4) == kAllBytes;
  const bool is_imad = instruction.opcode() == kImad && IsMove(instruction) &&
                       instruction.Bits(74, 2) == 0;  // no carry, no sign
  if (!is_mov && !is_imad) return std::nullopt;
  return instruction.Bits(32, 32);
}

bool MayWriteRegister(const Instruction& instruction, uint32_t index) {
  constexpr uint32_t kMostRegisters = 8;  // of one result: DMMA, as far as rows are known
  const OpcodeRow* const row = FindOpcode(instruction);
  if (row == nullptr) return true;
  const std::string_view operands(row->operands);
  if (operands.starts_with('c')) return true;  // textures have a second result
  if (operands.find('d') == std::string_view::npos) return false;
  const uint32_t first = instruction.Bits(16, 8);
  uint32_t count = kMostRegisters;
  if (instruction.opcode() == kOpCs2r) count = instruction.Bits(80, 1) != 0 ? 2 : 1;
  return first != kRegisterZero && first <= index && index < first + count;
}

bool IsIsetp(const Instruction& instruction) { return instruction.base_opcode() == 0x00c; }

uint32_t IsetpPredicate(const Instruction& instruction) { return instruction.Bits(81, 3); }

bool IsSimpleIsetp(const Instruction& instruction) {
  const bool combined = instruction.Bits(87, 3) != kPredicateTrue || instruction.Bits(90, 1) != 0;
  const bool second = instruction.Bits(84, 3) != kPredicateTrue;
  const bool extended = instruction.Bits(72, 1) != 0;  // .EX, of 64-bit comparisons
  return !combined && !second && !extended;
}

RegisterSet UnguardedSources(const Instruction& instruction) {
  RegisterSet set;
  if (!IsMemory(instruction)) return set;
  const Control control = instruction.control();
  if (control.read_barrier != kNoBarrier || control.write_barrier != kNoBarrier) return set;
  Add(set, instruction.Bits(24, 8), 2);  // an address, 64 bits at most
  Add(set, instruction.Bits(32, 8), DataRegisters(instruction));
  if (!instruction.is_uniform_form()) Add(set, instruction.Bits(64, 8), 4);
  return set;
}

bool CanGuardSources(const Instruction& instruction) {
  const Control control = instruction.control();
  if (control.read_barrier != kNoBarrier || control.write_barrier != kNoBarrier) return false;
  switch (instruction.base_opcode()) {
    case 0x185:  // ST
    case 0x186:  // STG
    case 0x187:  // STL
    case 0x188:  // STS
    case 0x18e:  // RED
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sass
