#include "patch/spare_registers.h"

#include <algorithm>
#include <array>

namespace iket::patch {
namespace {

using sass::Instruction;

// REGCOUNT, and the count of setmaxnreg, name two that code cannot use.
constexpr uint32_t kUnusable = 2;
constexpr uint32_t kPredicates = 7;  // but PT
constexpr uint32_t kBarriers = 6;

std::optional<uint8_t> LastNotIn(uint8_t named) {
  for (uint32_t i = kPredicates; i-- > 0;) {
    if (((named >> i) & 1) == 0) return static_cast<uint8_t>(i);
  }
  return std::nullopt;
}

}  // namespace

SpareRegisters::SpareRegisters(std::span<const Instruction> code, const FlowGraph& flow,
                               uint32_t registers)
    : code_(code), flow_(flow), named_(flow.blocks().size()), pairs_(flow.blocks().size()) {
  for (uint32_t i = 0; i < code_.size(); ++i) {
    named_[flow_.BlockOf(i)] |= sass::NamedRegisters(code_[i]);
    const sass::PredicateSet predicates = sass::NamedPredicates(code_[i]);
    predicates_.vector |= predicates.vector;
    predicates_.uniform |= predicates.uniform;
  }
  CountRegisters(registers);
  ChooseBarriers();
}

// The least over all ways to a block. A kernel goes on behind a setmaxnreg that asks for more only
// when it has got it.
void SpareRegisters::CountRegisters(uint32_t registers) {
  const std::span<const FlowBlock> blocks = flow_.blocks();
  registers_.assign(blocks.size(), 0);
  std::vector<uint32_t> pending;
  const auto meet = [&](uint32_t block, uint32_t count) {
    uint32_t& known = registers_[block];
    if (known != 0 && known <= count) return;
    known = count;
    pending.push_back(block);
  };
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    if (b == 0 || blocks[b].before.empty()) meet(b, registers);
  }
  while (!pending.empty()) {
    const uint32_t b = pending.back();
    pending.pop_back();
    uint32_t count = registers_[b];
    for (uint32_t i = blocks[b].first; i < blocks[b].last; ++i) {
      if (code_[i].opcode() == sass::kOpSetMaxReg) count = code_[i].Bits(32, 10);
    }
    for (const uint32_t next : blocks[b].next) meet(next, count);
  }
}

// Adds what is named in all blocks that can be reached from one by these edges, itself among them.
// False if the way leads anywhere.
bool SpareRegisters::Reach(uint32_t from, std::vector<uint32_t> FlowBlock::* edges,
                           sass::RegisterSet& named) const {
  std::vector<bool> reached(named_.size());
  std::vector<uint32_t> pending{from};
  reached[from] = true;
  while (!pending.empty()) {
    const uint32_t b = pending.back();
    pending.pop_back();
    const FlowBlock& block = flow_.blocks()[b];
    if (block.leads_anywhere) return false;
    named |= named_[b];
    for (const uint32_t other : block.*edges) {
      if (!reached[other]) pending.push_back(other);
      reached[other] = true;
    }
  }
  return true;
}

std::vector<uint8_t> SpareRegisters::PairsAt(uint32_t instruction) {
  const uint32_t b = flow_.BlockOf(instruction);
  if (pairs_[b]) return *pairs_[b];
  std::vector<uint8_t>& pairs = pairs_[b].emplace();
  sass::RegisterSet named;
  if (!Reach(b, &FlowBlock::next, named) || !Reach(b, &FlowBlock::before, named)) return pairs;
  // What the block itself may set counts for all of it.
  uint32_t usable = registers_[b];
  const FlowBlock& block = flow_.blocks()[b];
  for (uint32_t i = block.first; i < block.last; ++i) {
    if (code_[i].opcode() == sass::kOpSetMaxReg) usable = std::min(usable, code_[i].Bits(32, 10));
  }
  usable = std::min<uint32_t>(usable - std::min(usable, kUnusable), sass::kRegisterZero);
  // R0 and R1 are spared: R1 is the stack pointer of whoever looks at a stopped warp.
  for (uint32_t first = 2; first + 2 <= usable && pairs.size() < barriers_.size(); first += 2) {
    const auto pair = static_cast<uint8_t>(first);
    if (named[first] || named[first + 1]) continue;
    if (pairs.empty() || BarrierOf(pairs.front()) != BarrierOf(pair)) pairs.push_back(pair);
  }
  return pairs;
}

std::optional<uint8_t> SpareRegisters::Predicate() const { return LastNotIn(predicates_.vector); }
std::optional<uint8_t> SpareRegisters::UniformPredicate() const {
  return LastNotIn(predicates_.uniform);
}

void SpareRegisters::ChooseBarriers() {
  std::array<uint32_t, kBarriers> takers{};
  for (const Instruction& instruction : code_) {
    const sass::Control control = instruction.control();
    if (control.write_barrier < kBarriers) ++takers[control.write_barrier];
    if (control.read_barrier < kBarriers) ++takers[control.read_barrier];
  }
  // The last of equals: the compiler takes them from the first.
  std::array<uint8_t, kBarriers> by_takers{5, 4, 3, 2, 1, 0};
  std::ranges::stable_sort(by_takers, {}, [&takers](uint8_t b) { return takers[b]; });
  barriers_ = {by_takers[0], by_takers[1]};
}

}  // namespace iket::patch
