#include "patch/dead_address.h"

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
  Finder(std::span<const Instruction> code, const FlowGraph& flow,
         const std::set<uint32_t>& removed, sass::Generation generation)
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
  // May anybody read what instruction `maker` made?
  bool IsNeeded(uint32_t maker) const {
    const uint32_t index = code_[maker].Bits(16, sass::UniformBits(generation_));
    return flow_.MayReach(
        maker,
        [&](uint32_t i) {
          return !removed_.contains(i) && !dead_.contains(i) &&
                 sass::MayReadUniform(code_[i], index, generation_);
        },
        [&](uint32_t i) { return sass::WritesUniform(code_[i], index, generation_); });
  }

  const std::span<const Instruction> code_;
  const FlowGraph& flow_;
  const std::set<uint32_t>& removed_;
  const sass::Generation generation_;
  std::set<uint32_t> dead_;
};

}  // namespace

std::set<uint32_t> DeadAddressCode(std::span<const Instruction> code, const FlowGraph& flow,
                                   const std::set<uint32_t>& removed, sass::Generation generation) {
  return Finder(code, flow, removed, generation).Run();
}

}  // namespace iket::patch
