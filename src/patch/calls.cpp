#include "patch/calls.h"

namespace iket::patch {
namespace {

using sass::Instruction;

constexpr uint32_t kBaseCallAbsolute = 0x143;
constexpr uint32_t kBaseCallRelative = 0x144;
constexpr uint32_t kBaseJump = 0x14a;
constexpr uint32_t kBaseJumpIndexed = 0x14c;

}  // namespace

bool IsCall(const Instruction& instruction) {
  const uint32_t base = instruction.base_opcode();
  return base == kBaseCallAbsolute || base == kBaseCallRelative;
}

bool CallsPointer(const Instruction& instruction) {
  switch (instruction.base_opcode()) {
    case kBaseCallAbsolute:
    case kBaseJump:
      return (instruction.opcode() & 0xe00) != 0x800;
    case kBaseCallRelative:
      return !sass::HasRelativeTarget(instruction);
    case kBaseJumpIndexed:
      return true;
    default:
      return false;
  }
}

bool NeedsRelocation(const Instruction& instruction, size_t index, size_t count,
                     sass::Generation generation) {
  const uint32_t base = instruction.base_opcode();
  if (base == kBaseCallAbsolute || base == kBaseJump) return !CallsPointer(instruction);
  if (base != kBaseCallRelative) return false;
  if (!sass::HasRelativeTarget(instruction)) return true;  // a register adds to it
  const int64_t target =
      sass::RelativeTarget(instruction, index * sass::kInstructionBytes, generation);
  return target < 0 || target >= static_cast<int64_t>(count * sass::kInstructionBytes);
}

bool MayLeaveSection(const Instruction& instruction, size_t index, size_t count,
                     sass::Generation generation) {
  return CallsPointer(instruction) || NeedsRelocation(instruction, index, count, generation);
}

}  // namespace iket::patch
