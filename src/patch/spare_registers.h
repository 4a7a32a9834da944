// spare_registers.h: registers that recording may use at a site without anybody noticing.
//
// Whether a register holds something that is read later takes a proof about every instruction; a
// mistake is a wrong result in somebody else's program. So none is borrowed that any instruction
// names which can run in a warp before the site, or behind it: such a register holds nothing, no
// load is on its way to it and no store is still reading it. In a kernel whose warps have roles of
// their own these are often those that only another role uses; in others, those between what the
// compiler took and what the hardware gives, in steps of eight.
//
// Cost: a walk over the section for each basic block that has a site.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "patch/flow_graph.h"
#include "sass/operands.h"

namespace iket::patch {

class SpareRegisters {
 public:
  // `registers`: what a thread has when the code begins; setmaxnreg changes it on the way. Code and
  // graph, which is of it, must outlive this.
  SpareRegisters(std::span<const sass::Instruction> code, const FlowGraph& flow,
                 uint32_t registers);

  // Pairs of registers that are spare at an instruction, at most one for each scoreboard: the first
  // register of each, a multiple of two.
  std::vector<uint8_t> PairsAt(uint32_t instruction);
  // A predicate, and a uniform one, that no instruction names.
  std::optional<uint8_t> Predicate() const;
  std::optional<uint8_t> UniformPredicate() const;
  // The scoreboard of stores that read a pair, always the same for it: one of the two that fewest
  // instructions take.
  uint8_t BarrierOf(uint8_t pair) const { return barriers_[pair / 2 % barriers_.size()]; }

 private:
  void CountRegisters(uint32_t registers);
  void ChooseBarriers();
  bool Reach(uint32_t from, std::vector<uint32_t> FlowBlock::* edges,
             sass::RegisterSet& named) const;

  const std::span<const sass::Instruction> code_;
  const FlowGraph& flow_;
  // By block.
  std::vector<sass::RegisterSet> named_;
  std::vector<uint32_t> registers_;  // that a thread has at its beginning, at least; 0 not reached
  std::vector<std::optional<std::vector<uint8_t>>> pairs_;  // once they were asked for
  sass::PredicateSet predicates_;                           // that are named
  std::array<uint8_t, 2> barriers_{};
};

}  // namespace iket::patch
