// flow_graph.h: which basic block of a code section can lead to which.
//
// Errs towards more ways: an instruction of which it is not known where it goes makes its block lead
// anywhere, and returns lead behind every call of the section.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sass/instruction.h"

namespace iket::patch {

struct FlowBlock {
  uint32_t first = 0, last = 0;        // instructions, the last excluded
  std::vector<uint32_t> next, before;  // blocks
  bool leads_anywhere = false;
};

class FlowGraph {
 public:
  // `entries` are byte offsets at which functions begin. `code` must outlive the graph.
  FlowGraph(std::span<const sass::Instruction> code, std::span<const uint64_t> entries,
            sass::Generation generation);

  std::span<const FlowBlock> blocks() const { return blocks_; }
  uint32_t BlockOf(uint32_t instruction) const { return block_of_[instruction]; }

 private:
  void Connect(sass::Generation generation);

  std::span<const sass::Instruction> code_;
  std::vector<FlowBlock> blocks_;
  std::vector<uint32_t> block_of_;  // by instruction
};

}  // namespace iket::patch
