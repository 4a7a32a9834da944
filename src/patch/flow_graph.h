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

// Those who cannot read a register as it was, by their guard: on the way it was written under the
// same. A bit for each of P0..P6, and one for each of their opposites.
class HiddenFrom {
 public:
  HiddenFrom() = default;
  // From sm_100 on a guard may be a uniform predicate: nobody is hidden by one.
  explicit HiddenFrom(sass::Generation generation)
      : knows_guards_(generation != sass::Generation::kBlackwell) {}

  bool Includes(const sass::Instruction& reader) const { return (guards_ & BitOf(reader)) != 0; }
  bool is_everybody() const { return everybody_; }
  // `writer` writes it wherever it runs.
  void Add(const sass::Instruction& writer);
  // Who may write a predicate ends what was known by it.
  void Pass(const sass::Instruction& instruction);
  // True if that took somebody away.
  bool Intersect(const HiddenFrom& other);

 private:
  static uint16_t BitOf(const sass::Instruction& instruction) {
    if (instruction.guard() == sass::kPredicateTrue) return 0;
    return static_cast<uint16_t>(1u << (2 * instruction.guard() + instruction.guard_negated()));
  }

  bool knows_guards_ = true, everybody_ = false;
  uint16_t guards_ = 0;
};

class FlowGraph {
 public:
  // `entries` are byte offsets at which functions begin. `code` must outlive the graph.
  FlowGraph(std::span<const sass::Instruction> code, std::span<const uint64_t> entries,
            sass::Generation generation);

  std::span<const FlowBlock> blocks() const { return blocks_; }
  uint32_t BlockOf(uint32_t instruction) const { return block_of_[instruction]; }

  // Does a way lead from behind an instruction to one that `reads`, before one that `writes`? Both
  // are asked by index. What writes under a guard hides from who reads under the same one, until
  // somebody may write that predicate; what writes under a guard and its opposite hides from all.
  template <typename Reads, typename Writes>
  bool MayReach(uint32_t instruction, const Reads& reads, const Writes& writes) const {
    enum class Meets { kNobody, kReader, kWriter };
    const auto scan = [&](uint32_t first, uint32_t last, HiddenFrom& hidden) {
      for (uint32_t i = first; i < last; ++i) {
        if (!hidden.Includes(code_[i]) && reads(i)) return Meets::kReader;
        if (writes(i)) hidden.Add(code_[i]);
        if (hidden.is_everybody()) return Meets::kWriter;
        hidden.Pass(code_[i]);
      }
      return Meets::kNobody;
    };
    struct Arrival {
      bool any = false;
      HiddenFrom hidden;
    };
    std::vector<Arrival> arrivals(blocks_.size());
    std::vector<uint32_t> pending;
    const auto go_on = [&](const FlowBlock& block, const HiddenFrom& hidden) {
      for (const uint32_t next : block.next) {
        Arrival& arrival = arrivals[next];
        // Hidden there is what is hidden on every way there.
        if (arrival.any && !arrival.hidden.Intersect(hidden)) continue;
        if (!arrival.any) arrival = {true, hidden};
        pending.push_back(next);
      }
      return !block.leads_anywhere;
    };
    HiddenFrom hidden(generation_);
    const FlowBlock& home = blocks_[block_of_[instruction]];
    const Meets at_home = scan(instruction + 1, home.last, hidden);
    if (at_home != Meets::kNobody) return at_home == Meets::kReader;
    if (!go_on(home, hidden)) return true;
    while (!pending.empty()) {
      const uint32_t index = pending.back();
      pending.pop_back();
      hidden = arrivals[index].hidden;
      const Meets meets = scan(blocks_[index].first, blocks_[index].last, hidden);
      if (meets == Meets::kReader) return true;
      if (meets == Meets::kNobody && !go_on(blocks_[index], hidden)) return true;
    }
    return false;
  }

 private:
  void Connect(sass::Generation generation);

  std::span<const sass::Instruction> code_;
  sass::Generation generation_;
  std::vector<FlowBlock> blocks_;
  std::vector<uint32_t> block_of_;  // by instruction
};

}  // namespace iket::patch
