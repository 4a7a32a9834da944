#include "patch/roomy_copy.h"

#include <algorithm>

#include "patch/distance.h"
#include "sass/encode.h"

namespace iket::patch {
namespace {

using sass::Instruction;
using sass::kInstructionBytes;

// Control flow that means the same wherever it stands, its target counted anew.
bool MovesWithItsTarget(const Instruction& instruction) {
  return instruction.opcode() == sass::kOpBra || instruction.opcode() == sass::kOpBraUniform ||
         instruction.opcode() == sass::kOpBssy;
}
bool MovesAsItIs(const Instruction& instruction) {
  switch (instruction.base_opcode()) {
    case 0x141:  // BSYNC
    case 0x142:  // BREAK
    case 0x146:  // YIELD
    case 0x14d:  // EXIT
    case 0x155:  // BMOV
    case 0x156:  // the same
    case 0x15c:  // BPT
    case 0x15d:  // NANOSLEEP
      return true;
    case 0x148:  // WARPSYNC
      return !sass::BeginsCollective(instruction);
    default:
      return false;
  }
}

bool IsControlFlow(const Instruction& instruction) {
  const uint32_t base = instruction.base_opcode();
  return base >= 0x140 && base <= 0x15f;
}

// Padding behind the last instruction is not copied.
uint32_t End(std::span<const Instruction> code) {
  size_t end = code.size();
  while (end > 0 && code[end - 1].opcode() == sass::kOpNop) --end;
  return static_cast<uint32_t>(end);
}

}  // namespace

std::vector<bool> Movable(std::span<const Instruction> code) {
  std::vector<bool> movable(code.size(), true);
  bool collective = false;
  for (size_t i = 0; i < code.size(); ++i) {
    collective |= sass::BeginsCollective(code[i]);
    movable[i] = !collective &&
                 (!IsControlFlow(code[i]) || MovesWithItsTarget(code[i]) || MovesAsItIs(code[i]));
    collective &= code[i].opcode() != sass::kOpEndCollective;
  }
  return movable;
}

RoomyCopy CopyWithRoom(std::span<const Instruction> code, const std::set<uint32_t>& fixed,
                       const Replacements& replacements, sass::Generation generation) {
  const uint32_t end = End(code);
  std::vector<bool> moves = Movable(code);
  for (uint32_t i : fixed) moves[i] = false;

  RoomyCopy copy;
  copy.code.assign(code.begin(), code.end());
  copy.moved.assign(code.size(), RoomyCopy::kNowhere);
  auto next = static_cast<uint32_t>(code.size());
  for (uint32_t i = 0; i < end; ++i) {
    copy.moved[i] = next;
    const auto replaced = replacements.find(i);
    next += moves[i] && replaced != replacements.end()
                ? static_cast<uint32_t>(replaced->second.size())
                : 1;
  }
  const auto branch = [&](uint64_t from, uint64_t to) {
    return sass::Bra(generation, from * kInstructionBytes, to * kInstructionBytes,
                     {.stall = kBranchCycles});
  };

  for (uint32_t i = 0; i < end; ++i) {
    const uint64_t at = copy.code.size();
    if (!moves[i]) {
      copy.code.push_back(branch(at, i));
      continue;
    }
    if (const auto replaced = replacements.find(i); replaced != replacements.end()) {
      // Without a hint that the next one reads the same operand: it is another now.
      if (i > 0) copy.code.back() = copy.code.back().WithControl(copy.code.back().control());
      copy.code.insert(copy.code.end(), replaced->second.begin(), replaced->second.end());
      continue;
    }
    if (!MovesWithItsTarget(code[i])) {
      copy.code.push_back(code[i]);
      continue;
    }
    int64_t target = sass::RelativeTarget(code[i], uint64_t{i} * kInstructionBytes, generation);
    if (target >= 0 && target < static_cast<int64_t>(uint64_t{end} * kInstructionBytes)) {
      target =
          int64_t{copy.moved[static_cast<size_t>(target) / kInstructionBytes]} * kInstructionBytes;
    }
    copy.code.push_back(
        sass::WithRelativeTarget(code[i], at * kInstructionBytes, target, generation));
  }

  // Whoever comes to the old code from elsewhere, or back from what stayed, goes on in the copy.
  for (uint32_t i = 0; i < end; ++i) {
    if (moves[i]) copy.code[i] = branch(i, copy.moved[i]);
  }
  return copy;
}

}  // namespace iket::patch
