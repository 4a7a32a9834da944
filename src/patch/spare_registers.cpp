#include "patch/spare_registers.h"

#include <algorithm>
#include <array>

#include "patch/calls.h"
#include "patch/site.h"

namespace iket::patch {
namespace {

using sass::Instruction;
using sass::kInstructionBytes;

constexpr uint32_t kOpCallRelative = 0x944;
constexpr uint32_t kOpBraUniform = 0x547;
constexpr uint32_t kBaseReturn = 0x150;
// REGCOUNT, and the count of setmaxnreg, name two that code cannot use.
constexpr uint32_t kUnusable = 2;
constexpr uint32_t kPredicates = 7;  // but PT
constexpr uint32_t kBarriers = 6;

bool IsBranch(const Instruction& instruction) {
  return instruction.opcode() == sass::kOpBra || instruction.opcode() == kOpBraUniform;
}

// May it go on behind itself? BRA.DIV and BRA.CONV ask the lanes.
bool MayFallThrough(const Instruction& instruction) {
  if (!instruction.is_unguarded() || instruction.Bits(87, 4) != sass::kPredicateTrue) return true;
  if (instruction.opcode() == sass::kOpExit || instruction.base_opcode() == kBaseReturn) {
    return false;
  }
  return instruction.opcode() != sass::kOpBra || instruction.Bits(32, 2) != 0 ||
         instruction.Bits(84, 1) != 0;
}

// Control flow of which is known where it goes: on, to a target that it states, or back to behind a
// call.
bool IsUnderstood(const Instruction& instruction, size_t index, size_t count,
                  sass::Generation generation) {
  if (!sass::EndsBasicBlock(instruction) || IsBranch(instruction)) return true;
  if (instruction.opcode() == kOpCallRelative) {
    return !MayLeaveSection(instruction, index, count, generation);
  }
  switch (instruction.base_opcode()) {
    case 0x141:  // BSYNC
    case 0x142:  // BREAK
    case 0x146:  // YIELD
    case 0x148:  // WARPSYNC
    case 0x14d:  // EXIT
    case 0x155:  // BMOV
    case 0x156:  // the same
    case 0x15c:  // BPT
    case kBaseReturn:
      return true;
    default:
      return false;
  }
}

}  // namespace

SpareRegisters::SpareRegisters(std::span<const Instruction> code,
                               std::span<const uint64_t> entries, uint32_t registers,
                               sass::Generation generation)
    : code_(code), generation_(generation) {
  Split(entries);
  Connect();
  CountRegisters(registers);
}

void SpareRegisters::Split(std::span<const uint64_t> entries) {
  const std::vector<bool> starts = BlockStarts(code_, entries, generation_);
  for (uint32_t i = 0; i < code_.size(); ++i) {
    if (starts[i]) blocks_.emplace_back().first = i;
    Block& block = blocks_.back();
    block.last = i + 1;
    block.named |= sass::NamedRegisters(code_[i]);
    block_of_.push_back(static_cast<uint32_t>(blocks_.size() - 1));
  }
}

uint32_t SpareRegisters::BlockAt(uint64_t offset) const {
  return block_of_[offset / kInstructionBytes];
}

void SpareRegisters::Connect() {
  std::vector<uint32_t> behind_calls;
  std::vector<uint32_t> returns;
  const auto add = [this](uint32_t from, uint32_t to) {
    blocks_[from].next.push_back(to);
    blocks_[to].before.push_back(from);
  };
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    const bool is_last = b + 1 == blocks_.size();
    for (uint32_t i = blocks_[b].first; i < blocks_[b].last; ++i) {
      const Instruction& instruction = code_[i];
      if (!IsUnderstood(instruction, i, code_.size(), generation_)) {
        blocks_[b].leads_anywhere = true;
        continue;
      }
      if (!sass::HasRelativeTarget(instruction)) continue;
      const int64_t target =
          sass::RelativeTarget(instruction, uint64_t{i} * kInstructionBytes, generation_);
      if (target < 0 || target >= static_cast<int64_t>(code_.size() * kInstructionBytes)) {
        blocks_[b].leads_anywhere = true;
      } else {
        add(b, BlockAt(static_cast<uint64_t>(target)));
      }
    }
    const Instruction& end = code_[blocks_[b].last - 1];
    if (!is_last && MayFallThrough(end)) add(b, b + 1);
    if (!is_last && end.opcode() == kOpCallRelative) behind_calls.push_back(b + 1);
    if (end.base_opcode() == kBaseReturn) returns.push_back(b);
  }
  for (const uint32_t from : returns) {
    for (const uint32_t to : behind_calls) add(from, to);
  }
}

// The least over all ways to a block. A kernel goes on behind a setmaxnreg that asks for more only
// when it has got it.
void SpareRegisters::CountRegisters(uint32_t registers) {
  std::vector<uint32_t> pending;
  const auto meet = [&](uint32_t block, uint32_t count) {
    uint32_t& known = blocks_[block].registers;
    if (known != 0 && known <= count) return;
    known = count;
    pending.push_back(block);
  };
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].before.empty()) meet(b, registers);
  }
  if (blocks_[0].registers == 0) meet(0, registers);
  while (!pending.empty()) {
    const uint32_t b = pending.back();
    pending.pop_back();
    uint32_t count = blocks_[b].registers;
    for (uint32_t i = blocks_[b].first; i < blocks_[b].last; ++i) {
      if (code_[i].opcode() == sass::kOpSetMaxReg) count = code_[i].Bits(32, 10);
    }
    for (const uint32_t next : blocks_[b].next) meet(next, count);
  }
}

// Adds what is named in all blocks that can be reached from one by these edges, itself among them.
// False if the way leads anywhere.
bool SpareRegisters::Reach(uint32_t from, std::vector<uint32_t> Block::* edges,
                           sass::RegisterSet& named) const {
  std::vector<bool> reached(blocks_.size());
  std::vector<uint32_t> pending{from};
  reached[from] = true;
  while (!pending.empty()) {
    const Block& block = blocks_[pending.back()];
    pending.pop_back();
    if (block.leads_anywhere) return false;
    named |= block.named;
    for (const uint32_t other : block.*edges) {
      if (!reached[other]) pending.push_back(other);
      reached[other] = true;
    }
  }
  return true;
}

std::optional<uint8_t> SpareRegisters::PairAt(uint32_t instruction) {
  const uint32_t b = block_of_[instruction];
  if (blocks_[b].pair) return *blocks_[b].pair;
  auto& pair = blocks_[b].pair.emplace(std::nullopt);
  sass::RegisterSet named;
  if (!Reach(b, &Block::next, named) || !Reach(b, &Block::before, named)) return pair;
  // What the block itself may set counts for all of it.
  uint32_t usable = blocks_[b].registers;
  for (uint32_t i = blocks_[b].first; i < blocks_[b].last; ++i) {
    if (code_[i].opcode() == sass::kOpSetMaxReg) usable = std::min(usable, code_[i].Bits(32, 10));
  }
  usable -= std::min(usable, kUnusable);
  // R0 and R1 are spared: R1 is the stack pointer of whoever looks at a stopped warp.
  for (uint32_t first = 2; first + 2 <= usable; first += 2) {
    if (named[first] || named[first + 1]) continue;
    pair = static_cast<uint8_t>(first);
    break;
  }
  return pair;
}

std::optional<uint8_t> SpareRegisters::Predicate() const {
  uint8_t named = 0;
  for (const Instruction& instruction : code_) named |= sass::NamedPredicates(instruction);
  for (uint32_t i = kPredicates; i-- > 0;) {
    if (((named >> i) & 1) == 0) return static_cast<uint8_t>(i);
  }
  return std::nullopt;
}

uint8_t SpareRegisters::Barrier() const {
  std::array<uint32_t, kBarriers> takers{};
  for (const Instruction& instruction : code_) {
    const sass::Control control = instruction.control();
    if (control.write_barrier < kBarriers) ++takers[control.write_barrier];
    if (control.read_barrier < kBarriers) ++takers[control.read_barrier];
  }
  // The last of equals: the compiler takes them from the first.
  uint32_t best = kBarriers - 1;
  for (uint32_t i = kBarriers; i-- > 0;) {
    if (takers[i] < takers[best]) best = i;
  }
  return static_cast<uint8_t>(best);
}

}  // namespace iket::patch
