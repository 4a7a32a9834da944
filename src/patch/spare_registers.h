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

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sass/operands.h"

namespace iket::patch {

class SpareRegisters {
 public:
  // `registers`: what a thread has when the code begins; setmaxnreg changes it on the way.
  SpareRegisters(std::span<const sass::Instruction> code, std::span<const uint64_t> entries,
                 uint32_t registers, sass::Generation generation);

  // The first of two registers that are spare at an instruction, a multiple of two.
  std::optional<uint8_t> PairAt(uint32_t instruction);
  // The number of a predicate that no instruction names, P or UP.
  std::optional<uint8_t> Predicate() const;
  // The scoreboard that fewest instructions take.
  uint8_t Barrier() const;

 private:
  struct Block {
    uint32_t first = 0, last = 0;       // instructions, the last excluded
    std::vector<uint32_t> next, before;  // blocks
    sass::RegisterSet named;
    uint32_t registers = 0;  // that a thread has at its beginning, at least; 0 not reached yet
    bool leads_anywhere = false;  // a jump or call whose target is not known
    std::optional<std::optional<uint8_t>> pair;  // once it was asked for
  };

  void Split(std::span<const uint64_t> entries);
  void Connect();
  void CountRegisters(uint32_t registers);
  uint32_t BlockAt(uint64_t offset) const;
  bool Reach(uint32_t from, std::vector<uint32_t> Block::* edges, sass::RegisterSet& named) const;

  const std::span<const sass::Instruction> code_;
  const sass::Generation generation_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> block_of_;  // by instruction
};

}  // namespace iket::patch
