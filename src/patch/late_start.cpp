#include "patch/late_start.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "patch/flow_graph.h"
#include "patch/roomy_copy.h"
#include "sass/operands.h"

namespace iket::patch {
namespace {

using sass::Instruction;

constexpr size_t kMostBlocks = 64;
constexpr uint32_t kUnusableRegisters = 2;

bool IsBranch(const Instruction& instruction) {
  return instruction.opcode() == sass::kOpBra || instruction.opcode() == sass::kOpBraUniform;
}

// Memory that every kernel has, or what reads none.
bool IsSafeMemory(uint32_t base) {
  switch (base) {
    case 0x182:  // LDC
    case 0x184:  // LDS
    case 0x188:  // STS
    case 0x189:  // SHFL
    case 0x1b2:  // SYNCS.EXCH: makes a barrier
    case 0x1b9:  // UTMACCTL: asks for a descriptor ahead
      return true;
    default:
      return false;
  }
}

// Could the warp stay here, end here, fault, go where nobody knows, or record?
bool Stops(const Instruction& instruction, sass::Generation generation) {
  const uint32_t base = instruction.base_opcode();
  constexpr uint32_t kBsync = 0x141, kYield = 0x146, kBar = 0x11d, kClusterBar = 0x1c7;
  constexpr uint64_t kClusterWait = uint64_t{1} << 10;
  if (sass::MayUseReservedUniforms(instruction, generation)) return true;
  if (base >= 0x140 && base <= 0x15f) {
    return !IsBranch(instruction) && instruction.opcode() != sass::kOpBssy && base != kBsync &&
           base != kYield;
  }
  if (base == kBar || instruction.opcode() == sass::kOpSetMaxReg) return true;
  if (base == kClusterBar) return (instruction.low & kClusterWait) != 0;
  return base >= 0x160 && base <= 0x1bf && !IsSafeMemory(base);
}

class Search {
 public:
  explicit Search(const LateStartInput& input)
      : in_(input),
        flow_(input.code, input.entries, input.generation),
        stop_(flow_.blocks().size(), kUnseen),
        start_(flow_.BlockOf(input.second)) {}

  std::optional<LateStart> Run() {
    if (!Explore()) return std::nullopt;
    const std::vector<bool> movable = Movable(in_.code);
    std::optional<LateStart> best;
    for (const uint32_t block : near_) {
      if (IsSkippedBySomeWay(block) || ComesAgain(block)) continue;
      const auto at = LastPlace(block, movable);
      if (!at) continue;
      const LateStart found = Measure(block, *at);
      if (found.passed >= kLeastPassed && (!best || found.passed > best->passed)) {
        if (const auto complete = WithRegisters(found, block)) best = complete;
      }
    }
    return best;
  }

 private:
  static constexpr uint32_t kUnseen = ~0u;

  uint32_t FirstOf(uint32_t block) const {
    return block == start_ ? in_.second : flow_.blocks()[block].first;
  }
  bool HasStop(uint32_t block) const { return stop_[block] < flow_.blocks()[block].last; }

  // Where each block stops that a warp can come to first; what lies behind is not looked at. False
  // if that is too much.
  bool Explore() {
    std::vector<uint32_t> pending{start_};
    const auto see = [&](uint32_t b) {
      const FlowBlock& block = flow_.blocks()[b];
      stop_[b] = FirstOf(b);
      while (stop_[b] < block.last && !Stops(in_.code[stop_[b]], in_.generation)) ++stop_[b];
      if (block.leads_anywhere && !HasStop(b)) stop_[b] = block.last - 1;
      near_.push_back(b);
    };
    see(start_);
    while (!pending.empty()) {
      const uint32_t b = pending.back();
      pending.pop_back();
      if (HasStop(b)) continue;
      for (const uint32_t next : flow_.blocks()[b].next) {
        if (stop_[next] != kUnseen) continue;
        if (near_.size() == kMostBlocks) return false;
        see(next);
        pending.push_back(next);
      }
    }
    StopAtLoops();
    return true;
  }

  // A warp may stay in a loop: what a way leads back to stops it at once.
  void StopAtLoops() {
    enum class Colour : uint8_t { kNew, kOpen, kDone };
    std::vector<Colour> colours(stop_.size(), Colour::kNew);
    std::vector<std::pair<uint32_t, size_t>> path{{start_, 0}};
    colours[start_] = Colour::kOpen;
    while (!path.empty()) {
      auto& [b, n] = path.back();
      const std::vector<uint32_t>& next = flow_.blocks()[b].next;
      if (HasStop(b) || n == next.size()) {
        colours[b] = Colour::kDone;
        path.pop_back();
        continue;
      }
      const uint32_t to = next[n++];
      if (colours[to] == Colour::kOpen) stop_[to] = FirstOf(to);
      if (colours[to] != Colour::kNew) continue;
      colours[to] = Colour::kOpen;
      path.emplace_back(to, 0);
    }
  }

  // Blocks that a warp may come to without passing `block`, nor any stop.
  std::vector<uint32_t> Before(uint32_t block) const {
    std::vector<uint32_t> found;
    if (block == start_) return found;
    std::vector<bool> seen(stop_.size());
    found.push_back(start_);
    seen[start_] = seen[block] = true;
    for (size_t i = 0; i < found.size(); ++i) {
      if (HasStop(found[i])) continue;
      for (const uint32_t next : flow_.blocks()[found[i]].next) {
        if (!seen[next]) found.push_back(next);
        seen[next] = true;
      }
    }
    return found;
  }

  bool IsSkippedBySomeWay(uint32_t block) const {
    const std::vector<uint32_t> before = Before(block);
    return std::ranges::any_of(before, [this](uint32_t b) { return HasStop(b); });
  }

  // What runs once more for each turn of a loop is no place.
  bool ComesAgain(uint32_t block) const {
    std::vector<bool> seen(stop_.size());
    std::vector<uint32_t> pending{block};
    while (!pending.empty()) {
      const uint32_t b = pending.back();
      pending.pop_back();
      for (const uint32_t next : flow_.blocks()[b].next) {
        if (next == block) return true;
        if (!seen[next]) pending.push_back(next);
        seen[next] = true;
      }
    }
    return false;
  }

  // The last instruction of a block, before its stop, in whose place a branch may stand. A mark
  // begins some instructions before it shows: where it is what stops, that is the first one.
  std::optional<uint32_t> LastPlace(uint32_t b, const std::vector<bool>& movable) const {
    const FlowBlock& block = flow_.blocks()[b];
    const auto fits = [&](uint32_t i) {
      const Instruction& instruction = in_.code[i];
      return movable[i] && !sass::EndsBasicBlock(instruction) &&
             !sass::HasRelativeTarget(instruction) && !std::ranges::binary_search(in_.fixed, i);
    };
    const uint32_t first = FirstOf(b);
    uint32_t last = std::min(stop_[b], block.last - 1);
    if (HasStop(b) && sass::MayUseReservedUniforms(in_.code[stop_[b]], in_.generation)) {
      last = first;
    }
    for (uint32_t i = last + 1; i-- > first;) {
      if (fits(i)) return i;
    }
    return std::nullopt;
  }

  LateStart Measure(uint32_t block, uint32_t at) const {
    LateStart found{.at = at, .passed = at - FirstOf(block)};
    for (const uint32_t b : Before(block)) found.passed += flow_.blocks()[b].last - FirstOf(b);
    return found;
  }

  std::optional<LateStart> WithRegisters(LateStart found, uint32_t block) const {
    sass::RegisterSet named = sass::NamedRegisters(in_.code.front());
    uint8_t predicates = sass::NamedPredicates(in_.code.front()).vector;
    const auto add = [&](uint32_t first, uint32_t last) {
      for (uint32_t i = first; i < last; ++i) {
        named |= sass::NamedRegisters(in_.code[i]);
        predicates |= sass::NamedPredicates(in_.code[i]).vector;
      }
    };
    for (const uint32_t b : Before(block)) add(FirstOf(b), flow_.blocks()[b].last);
    add(FirstOf(block), found.at);

    const uint32_t usable = std::min<uint32_t>(
        in_.registers - std::min(in_.registers, kUnusableRegisters), sass::kRegisterZero);
    uint8_t* const wanted[] = {&found.begin, &found.identity, &found.cursor};
    size_t got = 0;
    for (uint32_t r = kFirstKeptRegister; r + 4 <= usable && got < std::size(wanted); r += 4) {
      if (named[r] || named[r + 1] || named[r + 2] || named[r + 3]) continue;
      *wanted[got++] = static_cast<uint8_t>(r);
    }
    // The bits above the last predicate are none.
    found.predicate = static_cast<uint8_t>(std::countr_one(predicates));
    if (got < std::size(wanted) || found.predicate >= sass::kPredicateTrue) return std::nullopt;
    return found;
  }

  const LateStartInput& in_;
  const FlowGraph flow_;
  std::vector<uint32_t> stop_;  // by block: its first instruction that stops, or its end
  std::vector<uint32_t> near_;  // blocks that were seen
  const uint32_t start_;
};

}  // namespace

std::optional<LateStart> FindLateStart(const LateStartInput& input) {
  if (input.generation != sass::Generation::kHopper || input.second >= input.code.size()) {
    return std::nullopt;
  }
  return Search(input).Run();
}

}  // namespace iket::patch
