// flow_graph.h: which basic block of a code section can lead to which.
//
// Errs towards more ways: an instruction of which it is not known where it goes makes its block
// lead anywhere, and returns lead behind every call of the section.
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

  // Does a way lead from behind an instruction to one that `reads`, before one that `writes`? Both
  // are asked by index.
  template <typename Reads, typename Writes>
  bool MayReach(uint32_t instruction, const Reads& reads, const Writes& writes) const {
    enum class Meets { kNobody, kReader, kWriter };
    const auto scan = [&](uint32_t first, uint32_t last) {
      for (uint32_t i = first; i < last; ++i) {
        if (reads(i)) return Meets::kReader;
        if (writes(i)) return Meets::kWriter;
      }
      return Meets::kNobody;
    };
    std::vector<bool> reached(blocks_.size());
    std::vector<uint32_t> pending;
    const auto go_on = [&](const FlowBlock& block) {
      for (const uint32_t next : block.next) {
        if (!reached[next]) pending.push_back(next);
        reached[next] = true;
      }
      return !block.leads_anywhere;
    };
    const FlowBlock& home = blocks_[block_of_[instruction]];
    const Meets at_home = scan(instruction + 1, home.last);
    if (at_home != Meets::kNobody) return at_home == Meets::kReader;
    if (!go_on(home)) return true;
    while (!pending.empty()) {
      const FlowBlock& block = blocks_[pending.back()];
      pending.pop_back();
      const Meets meets = scan(block.first, block.last);
      if (meets == Meets::kReader || (meets == Meets::kNobody && !go_on(block))) return true;
    }
    return false;
  }

 private:
  void Connect(sass::Generation generation);

  std::span<const sass::Instruction> code_;
  std::vector<FlowBlock> blocks_;
  std::vector<uint32_t> block_of_;  // by instruction
};

}  // namespace iket::patch
