#include "sass/instruction.h"

namespace iket::sass {
namespace {

constexpr uint64_t kControlMask = uint64_t{0x1fffff} << kControlShift;
// Operand reuse hints: only meaningful where the compiler put them.
constexpr uint64_t kReuseMask = uint64_t{0xf} << (122 - 64);

}  // namespace

Instruction Instruction::WithControl(const Control& control) const {
  return Instruction{low, (high & ~kControlMask & ~kReuseMask) | ControlField(control)};
}

Instruction Instruction::WithGuardOf(const Instruction& other) const {
  constexpr uint64_t kGuardMask = 0xf000;
  return Instruction{(low & ~kGuardMask) | (other.low & kGuardMask), high};
}

int64_t RelativeTarget(const Instruction& instruction, uint64_t pc, Generation generation) {
  const auto next = static_cast<int64_t>(pc) + kInstructionBytes;
  if (instruction.base_opcode() == 0x145) {  // BSSY: a distance in bytes at 32
    return next + static_cast<int32_t>(instruction.low >> 32);
  }
  if (generation == Generation::kAmpere) {  // 50 bits of bytes: 32 at 32, the rest at 64
    const uint64_t bytes = instruction.Bits(32, 32) | (instruction.high & 0x3ffff) << 32;
    return next + (static_cast<int64_t>(bytes << 14) >> 14);
  }
  // Distance in units of four bytes: bits 0..7 at 16, bits 8..37 at 34, the rest at 64.
  const uint64_t quarter = instruction.Bits(16, 8) | uint64_t{instruction.Bits(34, 30)} << 8 |
                           (instruction.high & 0x3ffff) << 38;
  const int64_t distance = static_cast<int64_t>(quarter << 8) >> 8;  // 56 bits, signed
  return next + distance * 4;
}

Instruction WithRelativeTarget(const Instruction& instruction, uint64_t pc, int64_t target,
                               Generation generation) {
  const int64_t distance = target - static_cast<int64_t>(pc) - int64_t{kInstructionBytes};
  const auto bytes = static_cast<uint64_t>(distance);
  if (instruction.base_opcode() == 0x145) {
    return Instruction{(instruction.low & 0xffffffff) | bytes << 32, instruction.high};
  }
  constexpr uint64_t kHighPart = 0x3ffff;
  if (generation == Generation::kAmpere) {
    return Instruction{(instruction.low & 0xffffffff) | bytes << 32,
                       (instruction.high & ~kHighPart) | ((bytes >> 32) & kHighPart)};
  }
  constexpr uint64_t kLowPart = uint64_t{0xff} << 16 | uint64_t{0x3fffffff} << 34;
  const auto quarter = static_cast<uint64_t>(distance >> 2);
  return Instruction{
      (instruction.low & ~kLowPart) | (quarter & 0xff) << 16 | ((quarter >> 8) & 0x3fffffff) << 34,
      (instruction.high & ~kHighPart) | ((quarter >> 38) & kHighPart)};
}

}  // namespace iket::sass
