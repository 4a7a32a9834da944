#include "patch/flow_graph.h"

#include "patch/calls.h"
#include "patch/site.h"
#include "sass/operands.h"

namespace iket::patch {
namespace {

using sass::Instruction;
using sass::kInstructionBytes;

constexpr uint32_t kOpCallRelative = 0x944;
constexpr uint32_t kBaseReturn = 0x150;

bool IsBranch(const Instruction& instruction) {
  return instruction.opcode() == sass::kOpBra || instruction.opcode() == sass::kOpBraUniform;
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

void HiddenFrom::Add(const Instruction& writer) {
  if (writer.is_unguarded()) everybody_ = true;
  if (!knows_guards_) return;
  guards_ |= BitOf(writer);
  // Two bits that are neighbours: a predicate and its opposite.
  everybody_ = everybody_ || (guards_ & (guards_ >> 1) & 0x1555) != 0;
}

void HiddenFrom::Pass(const Instruction& instruction) {
  if (guards_ == 0) return;
  for (uint32_t predicate = 0; predicate < sass::kPredicateTrue; ++predicate) {
    if (sass::MayWritePredicate(instruction, predicate)) {
      guards_ &= static_cast<uint16_t>(~(3u << (2 * predicate)));
    }
  }
}

bool HiddenFrom::Intersect(const HiddenFrom& other) {
  const uint16_t before = guards_;
  guards_ &= other.guards_;
  return guards_ != before;
}

FlowGraph::FlowGraph(std::span<const Instruction> code, std::span<const uint64_t> entries,
                     sass::Generation generation)
    : code_(code), generation_(generation) {
  const std::vector<bool> starts = BlockStarts(code_, entries, generation);
  for (uint32_t i = 0; i < code_.size(); ++i) {
    if (starts[i]) blocks_.emplace_back().first = i;
    blocks_.back().last = i + 1;
    block_of_.push_back(static_cast<uint32_t>(blocks_.size() - 1));
  }
  Connect(generation);
}

void FlowGraph::Connect(sass::Generation generation) {
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
      if (!IsUnderstood(instruction, i, code_.size(), generation)) {
        blocks_[b].leads_anywhere = true;
        continue;
      }
      if (!sass::HasRelativeTarget(instruction)) continue;
      const int64_t target =
          sass::RelativeTarget(instruction, uint64_t{i} * kInstructionBytes, generation);
      if (target < 0 || target >= static_cast<int64_t>(code_.size() * kInstructionBytes)) {
        blocks_[b].leads_anywhere = true;
      } else {
        add(b, block_of_[static_cast<size_t>(target) / kInstructionBytes]);
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

}  // namespace iket::patch
