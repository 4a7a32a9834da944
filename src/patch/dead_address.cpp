#include "patch/dead_address.h"

#include <vector>

#include "sass/operands.h"

namespace iket::patch {
namespace {

using sass::Instruction;

// Does an instruction do nothing but make a part of such an address?
bool MayMakeAddress(const Instruction& instruction) {
  constexpr uint32_t kRank = 0x88;  // SR_CgaCtaId
  constexpr uint32_t kOpUshfImmediate = 0x899, kOpUleaImmediate = 0x891;
  constexpr uint32_t kRankShift = 24;
  if (!instruction.is_unguarded()) return false;
  switch (instruction.opcode()) {
    case sass::kOpS2ur:
      return instruction.Bits(72, 8) == kRank;
    case kOpUshfImmediate:
      return instruction.Bits(32, 32) == kRankShift;
    case kOpUleaImmediate:
      return instruction.Bits(75, 5) == kRankShift && instruction.Bits(81, 3) == 7;
    default:
      return false;
  }
}

class Finder {
 public:
  Finder(std::span<const Instruction> code, const FlowGraph& flow, const std::set<uint32_t>& removed,
         sass::Generation generation)
      : code_(code), flow_(flow), removed_(removed), generation_(generation) {}

  std::set<uint32_t> Run() {
    // What feeds a dead instruction alone is dead, too.
    for (bool found = true; found;) {
      found = false;
      for (uint32_t i = 0; i < code_.size(); ++i) {
        if (!MayMakeAddress(code_[i]) || dead_.contains(i) || IsNeeded(i)) continue;
        dead_.insert(i);
        found = true;
      }
    }
    return std::move(dead_);
  }

 private:
  enum class Meets { kNobody, kReader, kWriter };

  // Whom the value meets first on [first, last) of a block.
  Meets Scan(uint32_t first, uint32_t last, uint32_t index) const {
    for (uint32_t i = first; i < last; ++i) {
      const bool is_gone = removed_.contains(i) || dead_.contains(i);
      if (!is_gone && sass::MayReadUniform(code_[i], index, generation_)) return Meets::kReader;
      if (sass::WritesUniform(code_[i], index, generation_)) return Meets::kWriter;
    }
    return Meets::kNobody;
  }

  // May anybody read what instruction `maker` made?
  bool IsNeeded(uint32_t maker) const {
    const uint32_t index = code_[maker].Bits(16, sass::UniformBits(generation_));
    const uint32_t home = flow_.BlockOf(maker);
    std::vector<bool> reached(flow_.blocks().size());
    std::vector<uint32_t> pending;
    const auto go_on = [&](const FlowBlock& block) {
      for (const uint32_t next : block.next) {
        if (!reached[next]) pending.push_back(next);
        reached[next] = true;
      }
      return !block.leads_anywhere;
    };
    const FlowBlock& start = flow_.blocks()[home];
    const Meets at_home = Scan(maker + 1, start.last, index);
    if (at_home != Meets::kNobody) return at_home == Meets::kReader;
    if (!go_on(start)) return true;
    while (!pending.empty()) {
      const FlowBlock& block = flow_.blocks()[pending.back()];
      pending.pop_back();
      const Meets meets = Scan(block.first, block.last, index);
      if (meets == Meets::kReader) return true;
      if (meets == Meets::kNobody && !go_on(block)) return true;
    }
    return false;
  }

  const std::span<const Instruction> code_;
  const FlowGraph& flow_;
  const std::set<uint32_t>& removed_;
  const sass::Generation generation_;
  std::set<uint32_t> dead_;
};

}  // namespace

std::set<uint32_t> DeadAddressCode(std::span<const Instruction> code, const FlowGraph& flow,
                                   const std::set<uint32_t>& removed,
                                   sass::Generation generation) {
  return Finder(code, flow, removed, generation).Run();
}

}  // namespace iket::patch
