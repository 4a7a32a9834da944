#include "patch/rewrite.h"

#include <algorithm>

#include "patch/distance.h"
#include "patch/foreign_code.h"
#include "patch/late_start.h"
#include "sass/encode.h"

namespace iket::patch {
namespace {

using sass::Control;
using sass::Instruction;
using sass::kInstructionBytes;

constexpr uint32_t kSectionAlignment = 128 / kInstructionBytes;  // instructions
// Scoreboard of stores whose operands an exit stub must not clobber too early. That code which was
// compiled may wait for the same one makes it wait longer and nothing else.
constexpr uint8_t kExitBarrier = 5;
// Of the code that elects a lane; as above.
constexpr uint8_t kElectBarrier = 5;
// From an instruction that makes a predicate to one that it guards; no other distance is longer.
constexpr uint8_t kCompareToGuard = 13;

class Rewriter {
 public:
  Rewriter(const CodeSection& section, const ring::Layout& layout)
      : section_(section),
        layout_(layout),
        generation_(section.generation),
        self_branch_(sass::Bra(section.generation, 0, 0, {.stall = 1})),
        code_(section.code),
        makes_address_(section.code.size(), false),
        stalls_(section.code.size()) {
    for (size_t i = 0; i < stalls_.size(); ++i) stalls_[i] = code_[i].control().stall;
  }

  RewrittenCode Run(const EntryOptions* entry) {
    for (const Site& site : section_.sites.all) {
      if (site.left_out) continue;
      makes_address_[AddressOf(site)] = true;
      if (IsCompact(site)) DropStalls(site);
      for (const MoreOfSite& more : site.more) makes_address_[more.address] = true;
      RewriteStore(site);
    }
    for (const Site& site : section_.sites.all) {
      if (!site.left_out) RewriteSlots(site);
    }
    for (uint32_t store : section_.stores_to_guard) {
      if (IsDormant(store)) continue;
      Control control = code_[store].control();
      control.read_barrier = kExitBarrier;
      code_[store] = code_[store].WithControl(control);
    }
    if (entry != nullptr) RedirectEntry(*entry);
    for (uint32_t exit : section_.exits) RewriteExit(exit);
    while (code_.size() % kSectionAlignment != 0) code_.push_back(sass::Nop({.stall = 1}));
    return RewrittenCode{std::move(code_), std::move(exit_offsets_)};
  }

 private:
  uint64_t End() const { return code_.size() * kInstructionBytes; }

  // True of the store of a site that is left out, if what a stub might spoil is its data alone: it
  // never happens, so to say, and then to bytes that nobody reads. Through a general register it
  // could go elsewhere.
  bool IsDormant(uint32_t store) const {
    if (section_.code[store].opcode() != sass::kOpStsUniform) return false;
    const auto& sites = section_.sites.all;
    return std::any_of(sites.begin(), sites.end(), [store](const Site& site) {
      return site.left_out && site.store <= store && store <= site.last_store();
    });
  }

  // A guard that never holds becomes one that does, in the first active lane; without a payload,
  // in which lanes may differ, it goes, and its comparison makes room for the address. What makes
  // up the stored words needs no guard: the registers are the site's own. Data and scoreboards of
  // the store stay. Nobody on the GPU reads rings: their lines are to leave the caches first.
  void RewriteStore(const Site& site) {
    const uint8_t guard = section_.code[site.store].guard();
    for (uint32_t i = site.compare + 1; i < site.last_store(); ++i) {
      if (code_[i].guard() == guard) code_[i] = code_[i].WithGuard(sass::kPredicateTrue);
    }
    StoreToRing(site, site.store);
    for (const MoreOfSite& more : site.more) StoreToRing(site, more.store);
  }

  void StoreToRing(const Site& site, uint32_t store) {
    const Instruction& old = section_.code[store];
    const auto width = site.has_payload() ? sass::Width::k128 : sass::Width::k64;
    code_[store] = sass::StgEvictFirst(width, sass::kRegisterZero, 0, 0,
                                       static_cast<uint8_t>(old.Bits(32, 8)), old.control())
                       .WithGuard(site.has_payload() ? old.guard() : sass::kPredicateTrue);
    if (site.has_payload() && ElectsInStub()) {
      code_[store] = code_[store].WithNegatedGuard(old.guard());
    }
  }

  bool ElectsInStub() const { return generation_ == sass::Generation::kAmpere; }

  // Before sm_90: code beside the function finds out which lanes are not the first, and makes the
  // address. Its register is the clock's, which it reads again; site.cpp sees to it that nobody has
  // it by then. UR0 means nothing until it is the address.
  void ElectBeside(const Site& site) {
    const Instruction& store = section_.code[site.store];
    const auto data = static_cast<uint8_t>(store.Bits(32, 8));
    // From the predicate to the store are 13 cycles, from the address to it 9.
    constexpr uint8_t kToAddress = kUniformToAddress - kBranchCycles;
    constexpr uint8_t kToGuard = kCompareToGuard - kBranchCycles - kToAddress - 1;
    code_[site.address] = sass::Nop(section_.code[site.address].control());
    Control control = section_.code[site.compare].control();
    control.stall = kBranchCycles;
    code_[site.compare] =
        sass::Bra(generation_, uint64_t{site.compare} * kInstructionBytes, End(), control);
    code_.push_back(sass::ActiveLanes(0, {.stall = 2}));
    code_.push_back(sass::S2r(data, sass::SpecialRegister::kLowerLanes,
                              {.stall = 8, .write_barrier = kElectBarrier}));
    code_.push_back(
        sass::TestUniform(store.guard(), data, 0, {.stall = kToGuard, .wait = 1 << kElectBarrier}));
    code_.push_back(sass::Cs2r32(data, sass::SpecialRegister::kClockLow, {.stall = 1}));
    code_.push_back(RingSlot(layout_, {.stall = kToAddress}));
    code_.push_back(sass::Bra(generation_, End(), (uint64_t{site.compare} + 1) * kInstructionBytes,
                              {.stall = kBranchCycles}));
  }

  // The words that make the record's address, elect the lane that stores, and move the cursor on.
  void RewriteSlots(const Site& site) {
    const uint32_t address = AddressOf(site);
    if (site.has_payload() && !ElectsInStub()) {
      const uint32_t elect = address == site.compare ? site.address : site.compare;
      code_[elect] = sass::Elect(generation_, section_.code[site.store].guard(), ControlOf(elect));
    }
    Control control =
        WithDistance(address, kUniformToAddress, [&](uint32_t i) { return i == site.store; });
    if (IsCompact(site)) control.stall = CompactStall(site);
    code_[address] = RingSlot(layout_, control);
    if (site.has_payload() && ElectsInStub()) ElectBeside(site);
    Advance(site.advance, site.bytes);
    // The cursor moves on before a store and not behind it, so that the address of the next one
    // need not wait for it.
    for (const MoreOfSite& more : site.more) {
      Advance(more.next, site.bytes);
      code_[more.address] =
          RingSlot(layout_, WithDistance(more.address, kUniformToAddress,
                                         [&](uint32_t i) { return i == more.store; }));
    }
  }

  void Advance(uint32_t slot, uint32_t bytes) {
    code_[slot] = AdvanceSlot(
        generation_, bytes,
        WithDistance(slot, kUniformToUniform, [this](uint32_t i) { return makes_address_[i]; }));
  }

  // ptxas often leaves a site in one piece: slot, clock, comparison, the id under the guard, store.
  // There the predicate may be elected in the slot, before the clock is read (nobody looks at it in
  // between), and its latency, for which the comparison stalls, is over earlier.
  bool IsCompact(const Site& site) const {
    const auto& code = section_.code;
    if (site.compare == 0) return false;
    const Instruction& clock = code[site.compare - 1];
    if (clock.opcode() != sass::kOpCs2r || !clock.is_unguarded()) return false;
    if (site.has_payload() && site.address + 2 != site.compare) return false;  // no slot between
    const bool has_next = !site.more.empty() && site.more.front().next == site.compare + 1;
    const uint32_t until_guarded = code[site.compare].control().stall +
                                   (has_next ? code[site.compare + 1].control().stall : 0);
    if (until_guarded != kCompareToGuard) return false;
    const uint8_t guard = code[site.store].guard();
    return std::all_of(code.begin() + site.compare + (has_next ? 2 : 1), code.begin() + site.store,
                       [guard](const Instruction& i) { return i.guard() == guard; });
  }

  // The slot behind the comparison stalls for its predicate, which is elected earlier; that before
  // the clock for what the comparison reads, which is no more.
  void DropStalls(const Site& site) {
    if (!site.more.empty()) stalls_[site.more.front().next] = 1;
    if (site.has_payload() && !ElectsInStub()) stalls_[site.address] = 1;
  }

  Control ControlOf(uint32_t index) const {
    Control control = section_.code[index].control();
    if (stalls_[index] < control.stall) control.prefer_stay = true;
    control.stall = stalls_[index];
    return control;
  }

  // What the comparison of a compact site still has to stall as the maker of the address. From the
  // slot to the store that its predicate guards, or from the clock to the site's end, 13 cycles
  // stay. So no instruction before the site loses the distance that ptxas gave it to its readers,
  // either: none needs more.
  uint8_t CompactStall(const Site& site) const {
    const uint32_t before =
        stalls_[site.compare - 1] + (site.has_payload() ? stalls_[site.address] : 0);
    const uint32_t store = StallUntil(site.compare + 1, kUniformToAddress,
                                      [&](uint32_t i) { return i == site.store; });
    uint32_t stall = store < kUniformToAddress ? kUniformToAddress - store : 1;
    const uint32_t behind = store + section_.code[site.store].control().stall;
    const uint32_t others = before + (site.has_payload() ? store : behind);
    if (stall + others < kCompareToGuard) stall = kCompareToGuard - others;
    return static_cast<uint8_t>(std::min<uint32_t>(stall, kCompareToGuard));
  }

  // Where the address of the record is made.
  uint32_t AddressOf(const Site& site) const {
    return site.has_payload() && !IsCompact(site) && !ElectsInStub() ? site.address : site.compare;
  }

  // The control of instruction `index` with a stall such that `cycles` pass until the next
  // instruction for which `reads` holds.
  template <typename Reads>
  Control WithDistance(uint32_t index, uint32_t cycles, const Reads& reads) const {
    Control control = ControlOf(index);
    const uint32_t later = StallUntil(index + 1, cycles, reads);
    if (control.stall + later < cycles) control.stall = static_cast<uint8_t>(cycles - later);
    return control;
  }

  template <typename Reads>
  uint32_t StallUntil(uint32_t first, uint32_t enough, const Reads& reads) const {
    return CyclesUntil(
        section_.code, first, enough, [this](uint32_t i) { return stalls_[i]; }, reads);
  }

  void RedirectEntry(const EntryOptions& options) {
    const auto late = PlaceOfLateStart();
    const LateEntryCode split = late ? SplitEntryCode(options, *late) : LateEntryCode{};
    const uint64_t trampoline = End();
    Append(late ? split.first : EntryCode(options));
    code_.push_back(section_.code.front());
    AppendBranch(section_.second);
    code_.front() = sass::Bra(generation_, 0, trampoline, {.stall = 5});
    if (!late) return;

    const auto second = static_cast<uint32_t>(code_.size());
    Append(split.second);
    Instruction& skip = code_[second + split.skip];
    skip = sass::WithRelativeTarget(skip, uint64_t{second + split.skip} * kInstructionBytes,
                                    static_cast<int64_t>(End()), generation_);
    code_.push_back(code_[late->at]);
    AppendBranch(late->at + 1);
    // Whoever stalled before it stalled for what it reads, and does still.
    code_[late->at] = sass::Bra(generation_, uint64_t{late->at} * kInstructionBytes,
                                uint64_t{second} * kInstructionBytes, {.stall = 5});
  }

  std::optional<LateStart> PlaceOfLateStart() const {
    std::vector<uint64_t> entries;
    for (const cubin::Function& function : section_.functions) entries.push_back(function.offset);
    const std::vector<uint32_t> fixed(section_.relocated.begin(), section_.relocated.end());
    return FindLateStart({.code = code_,
                          .entries = entries,
                          .fixed = fixed,
                          .second = section_.second,
                          .registers = section_.patched_registers,
                          .generation = generation_});
  }

  void Append(const std::vector<Instruction>& code) {
    code_.insert(code_.end(), code.begin(), code.end());
  }
  void AppendBranch(uint32_t target) {
    code_.push_back(
        sass::Bra(generation_, End(), uint64_t{target} * kInstructionBytes, {.stall = 5}));
  }

  // True if nothing but padding follows: then the stub can stand in place of the EXIT.
  bool IsLast(uint32_t exit) const {
    const auto is_padding = [](const Instruction& instruction) {
      return instruction.opcode() == sass::kOpNop;
    };
    const auto& code = section_.code;
    return code[exit].is_unguarded() && exit + 1 < code.size() &&
           code[exit + 1].low == self_branch_.low &&
           std::all_of(code.begin() + exit + 2, code.end(), is_padding);
  }

  void RewriteExit(uint32_t exit) {
    const Instruction old = section_.code[exit];
    std::vector<Instruction> stub = ExitCode(layout_, generation_, section_.exit_registers);
    const size_t room = section_.code.size() - exit;
    if (IsLast(exit) && stub.size() + 2 <= room) {
      uint32_t at = exit;
      for (const Instruction& instruction : stub) code_[at++] = instruction;
      exit_offsets_.push_back(at * kInstructionBytes);
      code_[at++] = old;
      code_[at++] = self_branch_;
      return;
    }
    // The branch takes the guard and the source predicate, the stub ends in the same exit
    // unguarded: whoever arrives there has met them.
    constexpr uint64_t kSourcePredicate = uint64_t{0xf} << (87 - 64);
    Instruction branch =
        sass::Bra(generation_, uint64_t{exit} * kInstructionBytes, End(), {.stall = 5})
            .WithGuardOf(old);
    branch.high = (branch.high & ~kSourcePredicate) | (old.high & kSourcePredicate);
    Control control = old.control();
    control.stall = std::max<uint8_t>(control.stall, 5);
    code_[exit] = branch.WithControl(control);
    for (const Instruction& instruction : stub) code_.push_back(instruction);
    exit_offsets_.push_back(static_cast<uint32_t>(End()));
    Instruction last = old.WithGuardOf(self_branch_);
    last.high |= uint64_t{7} << (87 - 64);
    last.high &= ~(uint64_t{1} << (90 - 64));
    code_.push_back(last.WithControl({.stall = 5}));
    code_.push_back(self_branch_);
  }

  const CodeSection& section_;
  const ring::Layout& layout_;
  const sass::Generation generation_;
  const Instruction self_branch_;
  std::vector<Instruction> code_;
  std::vector<bool> makes_address_;  // by instruction of the section
  std::vector<uint8_t> stalls_;      // as ptxas set them, where there is still reason to
  std::vector<uint32_t> exit_offsets_;
};

}  // namespace

RewrittenCode Rewrite(const CodeSection& section, const ring::Layout& layout,
                      const EntryOptions* entry) {
  const bool has_foreign = std::any_of(section.foreign_sites.begin(), section.foreign_sites.end(),
                                       [](const ForeignSite& site) { return !site.left_out; });
  if (has_foreign) return Rewriter(WithForeignCode(section, layout), layout).Run(entry);
  return Rewriter(section, layout).Run(entry);
}

}  // namespace iket::patch
