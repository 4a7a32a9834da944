#include "patch/foreign_code.h"

#include <algorithm>

#include "patch/dead_address.h"
#include "patch/distance.h"
#include "patch/spare_registers.h"
#include "patch/trampoline.h"
#include "sass/encode.h"

namespace iket::patch {
namespace {

using sass::Control;
using sass::Instruction;
using sass::Width;

constexpr uint8_t kRZ = sass::kRegisterZero;
// Where in a record the words stand that are stored by themselves.
constexpr int32_t kIdOffset = 4, kPayloadOffset = 8;
// From an ALU instruction to a store that reads its result.
constexpr uint8_t kResultToStore = 5;
// From reading the clock to the store.
constexpr uint8_t kClockToStore = 9;
// From a vote to what its predicate guards.
constexpr uint8_t kVoteToGuard = 13;
// From taking a scoreboard until it may be waited for.
constexpr uint8_t kBarrierTaken = 2;

uint8_t Bit(uint8_t barrier) { return static_cast<uint8_t>(1u << barrier); }

Instruction Under(const Guard& guard, const Instruction& instruction) {
  return guard.negated ? instruction.WithNegatedGuard(guard.predicate)
                       : instruction.WithGuard(guard.predicate);
}

class Coder {
 public:
  Coder(const CodeSection& section, const ring::Layout& layout)
      : section_(section), layout_(layout) {
    for (const ForeignSite& site : section.foreign_sites) {
      if (!site.left_out) begins_.insert(site.first());
    }
  }

  Replacements Run() {
    for (const ForeignSite& site : section_.foreign_sites) {
      if (site.left_out) continue;
      if (site.clock == ForeignSite::kNone) {
        CodeTrigger(site);
      } else if (site.pair) {
        CodeWithPair(site);
      } else {
        CodeWithout(site);
      }
    }
    return std::move(code_);
  }

 private:
  Control ControlOf(uint32_t index) const { return section_.code[index].control(); }

  template <typename Reads>
  uint32_t StallUntil(uint32_t first, uint32_t enough, const Reads& reads) const {
    return CyclesUntil(
        section_.code, first, enough, [this](uint32_t i) { return ControlOf(i).stall; }, reads);
  }

  // The record's address, `later` cycles before the store that needs it.
  Instruction Address(uint32_t later) const {
    const uint32_t stall = later < kUniformToAddress ? kUniformToAddress - later : 1;
    return RingSlot(layout_, {.stall = static_cast<uint8_t>(stall)});
  }

  // What comes before the clock is read: the address, and the lane whose payload counts.
  std::vector<Instruction> Begin(const ForeignSite& site) const {
    const uint32_t later = StallUntil(site.clock, kVoteToGuard, [&site](uint32_t i) {
      return i == site.store || i == site.payload;
    });
    const Instruction address = Address(later);
    if (!Elects(site)) return {address};
    const uint32_t behind = address.control().stall + later;
    const uint32_t stall = behind < kVoteToGuard ? kVoteToGuard - behind : 1;
    return {
        sass::Elect(section_.generation, *site.predicate, {.stall = static_cast<uint8_t>(stall)}),
        address};
  }

  // TileLang lets every lane store its payload. The first is to count, as it does of others.
  bool Elects(const ForeignSite& site) const {
    return site.payload != ForeignSite::kNone && site.guard.always() && site.predicate &&
           section_.generation != sass::Generation::kAmpere;
  }

  // Every store has a scoreboard: what reads registers that an exit stub takes is waited for.
  Instruction Store(const ForeignSite& site, Width width, int32_t offset, uint8_t data,
                    Control control) const {
    if (control.read_barrier == sass::kNoBarrier) control.read_barrier = site.barrier;
    const Guard guard = Elects(site) ? Guard{.predicate = *site.predicate} : site.guard;
    return Under(guard, sass::StgEvictFirst(width, kRZ, 0, offset, data, control));
  }
  Instruction StorePayload(const ForeignSite& site, const Control& control) const {
    return Store(site, site.payload_bytes == 8 ? Width::k64 : Width::k32, kPayloadOffset,
                 site.payload_register, control);
  }

  // What stands at `index` reads the clock, early enough for the store.
  Instruction Clock(const ForeignSite& site, uint32_t index, uint8_t rd, uint8_t wait) const {
    Control control = ControlOf(index);
    control.wait |= wait;
    control.write_barrier = sass::kNoBarrier;  // S2UR's
    const uint32_t later =
        StallUntil(index + 1, kClockToStore, [&site](uint32_t i) { return i == site.store; });
    if (control.stall + later < kClockToStore) {
      control.stall = static_cast<uint8_t>(kClockToStore - later);
    }
    return sass::Cs2r32(rd, sass::SpecialRegister::kClockLow, control);
  }
  // Nothing, in the time of what stood there.
  Instruction Idle(uint32_t index) const {
    Control control = ControlOf(index);
    control.write_barrier = control.read_barrier = sass::kNoBarrier;
    return sass::Nop(control);
  }

  void CodeWithPair(const ForeignSite& site) {
    const uint8_t pair = *site.pair;
    const auto id = static_cast<uint8_t>(pair + 1);
    auto& begin = code_[site.clock];
    begin = Begin(site);
    if (site.keeps_stamp) begin.push_back(section_.code[site.clock]);
    begin.push_back(Clock(site, site.clock, pair, Bit(site.barrier)));
    if (site.move != ForeignSite::kNone && !site.keeps_stamp) code_[site.move] = {Idle(site.move)};
    if (site.join != ForeignSite::kNone && !site.keeps_stamp) {
      code_[site.join] = {sass::MovImmediate(id, site.event, ControlOf(site.join))};
    } else {
      begin.push_back(sass::MovImmediate(id, site.event, {.stall = kResultToStore}));
    }
    Control control = ControlOf(site.store);
    const Control compiled = control;
    control.read_barrier = site.barrier;
    code_[site.store] = {Store(site, Width::k64, 0, pair, control)};
    FinishStores(site, compiled);
    Advance(site);
  }

  // Through the site's own register, one word after the other.
  void CodeWithout(const ForeignSite& site) {
    const Instruction& old = section_.code[site.store];
    const auto word = static_cast<uint8_t>(old.Bits(32, 8));
    auto& begin = code_[site.clock];
    begin = Begin(site);
    // Where the timer went through a uniform register, the general one is free only where it is
    // moved there.
    const uint32_t at = site.move == ForeignSite::kNone ? site.clock : site.move;
    const auto timer = static_cast<uint8_t>(section_.code[at].Bits(16, 8));
    // What writes registers of the program keeps its guard: in other lanes they may hold something.
    const Instruction clock = Clock(site, at, timer, 0).WithGuardOf(section_.code[at]);
    if (at == site.clock) {
      begin.push_back(clock);
    } else {
      begin.push_back(Idle(site.clock));
      code_[at] = {clock};
    }
    if (site.join != ForeignSite::kNone) {
      const bool copies = timer != word && site.join > at;
      code_[site.join] = {copies ? sass::OrImmediate(word, timer, 0, ControlOf(site.join))
                                       .WithGuardOf(section_.code[site.join])
                                 : Idle(site.join)};
    }
    const Control compiled = old.control();
    Control first = compiled;
    first.read_barrier = site.barrier;
    first.stall = std::max(first.stall, kBarrierTaken);
    Control second = compiled;
    second.wait = 0;
    code_[site.store] = {
        Store(site, Width::k32, 0, word, first),
        sass::MovImmediate(word, site.event, {.stall = kResultToStore, .wait = Bit(site.barrier)})
            .WithGuardOf(section_.code[at]),
        Store(site, Width::k32, kIdOffset, word, second),
    };
    FinishStores(site, second);
    Advance(site);
  }

  // The payload, from wherever it was stored.
  void FinishStores(const ForeignSite& site, Control with_stamp) {
    if (site.payload == ForeignSite::kNone) return;
    if (site.payload == site.store) {
      with_stamp.wait = 0;
      code_[site.store].push_back(StorePayload(site, with_stamp));
    } else {
      code_[site.payload] = {StorePayload(site, ControlOf(site.payload))};
    }
  }

  // A bare PMTRIG: all of it in one place.
  void CodeTrigger(const ForeignSite& site) {
    const uint8_t pair = *site.pair;
    const auto wait = static_cast<uint8_t>(ControlOf(site.trigger).wait | Bit(site.barrier));
    code_[site.trigger] = {
        Address(kUniformToAddress),
        sass::Cs2r32(pair, sass::SpecialRegister::kClockLow, {.stall = 1, .wait = wait}),
        sass::MovImmediate(static_cast<uint8_t>(pair + 1), site.event,
                           {.stall = kUniformToAddress - 2}),
        Store(site, Width::k64, 0, pair, {.stall = kBarrierTaken}),
    };
    Advance(site);
  }

  // The cursor moves on if anybody stored.
  void Advance(const ForeignSite& site) {
    Control control = ControlOf(site.trigger);
    if (site.clock == ForeignSite::kNone) control.wait = 0;
    const uint32_t later = StallUntil(site.trigger + 1, kUniformToUniform,
                                      [this](uint32_t i) { return begins_.contains(i); });
    if (control.stall + later < kUniformToUniform) {
      control.stall = static_cast<uint8_t>(kUniformToUniform - later);
    }
    Instruction advance = AdvanceSlot(section_.generation, ring::kRecordBytes, control);
    if (!site.somebody_stores) {
      Vote(site);
      advance = advance.WithGuard(*site.uniform_predicate);
    }
    code_[site.trigger].push_back(advance);
  }

  // Right behind the store, whose predicate may be another's when the trigger comes.
  void Vote(const ForeignSite& site) {
    const bool is_bare = site.clock == ForeignSite::kNone;
    const uint32_t later = is_bare ? 0
                                   : StallUntil(site.store + 1, kVoteToGuard,
                                                [&site](uint32_t i) { return i == site.trigger; });
    const uint32_t stall = later < kVoteToGuard ? kVoteToGuard - later : 1;
    code_[is_bare ? site.trigger : site.store].push_back(
        sass::VoteUniformAny(section_.generation, *site.uniform_predicate, site.guard.predicate,
                             site.guard.negated, {.stall = static_cast<uint8_t>(stall)}));
  }

  const CodeSection& section_;
  const ring::Layout& layout_;
  std::set<uint32_t> begins_;  // of sites: the address is made before these
  Replacements code_;
};

FlowGraph FlowOf(const CodeSection& section) {
  std::vector<uint64_t> entries;
  for (const cubin::Function& function : section.functions) entries.push_back(function.offset);
  return FlowGraph(section.code, entries, section.generation);
}

// The instructions that hand a time stamp on, of all sites: each takes that of its own site.
std::set<uint32_t> StampTakers(const CodeSection& section) {
  std::set<uint32_t> takers;
  for (const ForeignSite& site : section.foreign_sites) {
    for (const uint32_t i : {site.move, site.join, site.store}) {
      if (i != ForeignSite::kNone) takers.insert(i);
    }
  }
  return takers;
}

// May anybody but sites read the site's time stamp? No front end does; by hand one can.
bool KeepsStamp(const CodeSection& section, const FlowGraph& flow, const std::set<uint32_t>& takers,
                const ForeignSite& site) {
  for (const uint32_t maker : {site.clock, site.move, site.join}) {
    if (maker == ForeignSite::kNone) continue;
    const Instruction& made = section.code[maker];
    const bool is_uniform = made.opcode() == sass::kOpS2ur || made.base_opcode() == 0x092;  // ULOP3
    const uint32_t index = made.Bits(16, is_uniform ? sass::UniformBits(section.generation) : 8);
    const auto reads = [&](uint32_t i) {
      if (i == site.payload || takers.contains(i)) return false;
      return is_uniform ? sass::MayReadUniform(section.code[i], index, section.generation)
                        : sass::MayReadRegister(section.code[i], index);
    };
    const auto writes = [&](uint32_t i) {
      return is_uniform ? sass::WritesUniform(section.code[i], index, section.generation)
                        : sass::WritesRegister(section.code[i], index);
    };
    if (flow.MayReach(maker, reads, writes)) return true;
  }
  return false;
}

// What made the addresses of replaced stores does nothing any more; waits and stalls stay.
void DropAddresses(const CodeSection& section, Replacements& replacements) {
  std::set<uint32_t> stores;
  for (const ForeignSite& site : section.foreign_sites) {
    if (site.left_out) continue;
    if (site.store != ForeignSite::kNone) stores.insert(site.store);
    if (site.payload != ForeignSite::kNone) stores.insert(site.payload);
  }
  const FlowGraph flow = FlowOf(section);
  for (const uint32_t i : DeadAddressCode(section.code, flow, stores, section.generation)) {
    if (section.relocated.contains(i) || (section.is_kernel() && i == 0)) continue;
    Control control = section.code[i].control();
    // A NOP releases no scoreboard.
    control.write_barrier = control.read_barrier = sass::kNoBarrier;
    replacements.try_emplace(i, std::vector<Instruction>{sass::Nop(control)});
  }
}

}  // namespace

std::vector<SiteProblem> ChooseRecorders(CodeSection& section, uint32_t registers) {
  std::vector<SiteProblem> problems;
  if (section.foreign_sites.empty()) return problems;
  const FlowGraph flow = FlowOf(section);
  SpareRegisters spare(section.code, flow, registers);
  const std::vector<bool> movable = Movable(section.code);
  const std::set<uint32_t> takers = StampTakers(section);
  size_t turn = 0;
  for (ForeignSite& site : section.foreign_sites) {
    // Who calls a function may have any register and predicate in use.
    if (section.is_kernel()) {
      const std::vector<uint8_t> pairs = spare.PairsAt(site.trigger);
      // Sites take turns: so one need not wait until the store of that before it has read its pair.
      if (!pairs.empty()) site.pair = pairs[turn++ % pairs.size()];
      site.predicate = spare.Predicate();
      site.uniform_predicate = spare.UniformPredicate();
    }
    site.barrier = spare.BarrierOf(site.pair.value_or(0));
    const bool is_fixed = [&] {
      for (const uint32_t i :
           {site.clock, site.move, site.join, site.store, site.payload, site.trigger}) {
        if (i == ForeignSite::kNone) continue;
        if (!movable[i] || section.relocated.contains(i) || (section.is_kernel() && i == 0)) {
          return true;
        }
      }
      return false;
    }();
    if (site.clock != ForeignSite::kNone) {
      site.keeps_stamp = KeepsStamp(section, flow, takers, site);
    }
    if (is_fixed) {
      problems.push_back({site.trigger, "it cannot be moved"});
    } else if (site.clock == ForeignSite::kNone && !site.pair) {
      problems.push_back({site.trigger, "no two registers are spare for a bare PMTRIG"});
    } else if (site.keeps_stamp && !site.pair && site.payload != site.store) {
      problems.push_back({site.trigger, "its time stamp is used elsewhere, too"});
    } else if (!site.somebody_stores && !site.uniform_predicate) {
      problems.push_back({site.trigger, "it is guarded, and no uniform predicate is spare"});
    }
  }
  return problems;
}

CodeSection WithForeignCode(const CodeSection& section, const ring::Layout& layout) {
  Replacements replacements = Coder(section, layout).Run();
  DropAddresses(section, replacements);
  std::set<uint32_t> fixed = section.relocated;
  if (section.is_kernel()) fixed.insert(0);
  RoomyCopy copy = CopyWithRoom(section.code, fixed, replacements, section.generation);

  CodeSection roomy = section;
  roomy.foreign_sites.clear();
  roomy.code = std::move(copy.code);
  // Everything runs in the copy but what may not move.
  const auto now_at = [&](uint32_t old, uint32_t opcode) {
    const uint32_t moved = copy.moved[old];
    return roomy.code[moved].opcode() == opcode ? moved : old;
  };
  roomy.exits.clear();
  for (const uint32_t exit : section.exits) roomy.exits.push_back(now_at(exit, sass::kOpExit));
  roomy.stores_to_guard.clear();
  for (const uint32_t store : section.stores_to_guard) {
    if (replacements.contains(store)) continue;
    roomy.stores_to_guard.push_back(now_at(store, section.code[store].opcode()));
  }
  if (section.code.size() > 1) roomy.second = copy.moved[1];
  return roomy;
}

}  // namespace iket::patch
