#include "patch/rewrite.h"

#include <algorithm>

#include "sass/encode.h"

namespace iket::patch {
namespace {

using sass::Control;
using sass::Instruction;
using sass::kInstructionBytes;

constexpr uint32_t kSectionAlignment = 128 / kInstructionBytes;  // instructions
constexpr Instruction kSelfBranch = sass::Bra(0, 0, {.stall = 1});
// A branch takes at least this long until its target issues.
constexpr uint32_t kBranchCycles = 5;

class Rewriter {
 public:
  Rewriter(const CodeSection& section, const ring::Layout& layout)
      : section_(section), layout_(layout), code_(section.code) {}

  RewrittenCode Run(const EntryOptions* entry) {
    for (const Site& site : section_.sites.all) RewriteStores(site);
    for (const Site& site : section_.sites.all) RewriteSlots(site);
    if (entry != nullptr) RedirectEntry(*entry);
    for (uint32_t exit : section_.exits) RewriteExit(exit);
    while (code_.size() % kSectionAlignment != 0) code_.push_back(sass::Nop({.stall = 1}));
    return RewrittenCode{std::move(code_), std::move(exit_offsets_)};
  }

 private:
  uint64_t End() const { return code_.size() * kInstructionBytes; }

  static bool IsRingStore(const Instruction& instruction) {
    return instruction.opcode() == 0x986 && instruction.Bits(64, 6) == 0;
  }

  // The stores go to the ring with the data, guard and scoreboards that they had. Nobody on the GPU
  // reads rings: their lines are to leave the caches first.
  void RewriteStores(const Site& site) {
    const auto replace = [this](uint32_t index, int32_t offset) {
      const Instruction& old = section_.code[index];
      const auto width = old.Bits(73, 3) == 4 ? sass::Width::k32 : sass::Width::k64;
      code_[index] = sass::StgEvictFirst(width, sass::kRegisterZero, 0, offset,
                                         static_cast<uint8_t>(old.Bits(32, 8)), old.control())
                         .WithGuardOf(old);
    };
    replace(site.time, 0);
    if (site.payload != Site::kNone) replace(site.payload, 8);
  }

  void RewriteSlots(const Site& site) {
    // The first slot makes the address of the next record, the second moves the cursor on.
    Control ring = section_.code[site.first_slot].control();
    const uint32_t until_store = StallUntil(site.first_slot + 1, kUniformToAddress,
                                            [this](uint32_t i) { return IsRingStore(code_[i]); });
    if (ring.stall + until_store < kUniformToAddress) {
      ring.stall = static_cast<uint8_t>(kUniformToAddress - until_store);
    }
    code_[site.first_slot] = RingSlot(layout_, ring);

    Control advance = section_.code[site.second_slot].control();
    const uint32_t until_slot =
        StallUntil(site.second_slot + 1, kUniformToUniform,
                   [this](uint32_t i) { return section_.code[i].opcode() == sass::kOpPmTrig; });
    if (advance.stall + until_slot < kUniformToUniform) {
      advance.stall = static_cast<uint8_t>(kUniformToUniform - until_slot);
    }
    code_[site.second_slot] = AdvanceSlot(site.bytes, advance);
  }

  // Cycles that pass from instruction `first` until one that `reads` may issue, as far as `enough`.
  template <typename Reads>
  uint32_t StallUntil(uint32_t first, uint32_t enough, const Reads& reads) const {
    uint32_t cycles = 0;
    for (uint32_t i = first; i < section_.code.size() && cycles < enough; ++i) {
      if (reads(i)) return cycles;
      if (sass::EndsBasicBlock(section_.code[i])) return cycles + kBranchCycles;
      cycles += section_.code[i].control().stall;
    }
    return cycles;
  }

  void RedirectEntry(const EntryOptions& options) {
    const uint64_t trampoline = End();
    for (const Instruction& instruction : EntryCode(options)) code_.push_back(instruction);
    code_.push_back(section_.code.front());
    code_.push_back(sass::Bra(End(), kInstructionBytes, {.stall = 5}));
    code_.front() = sass::Bra(0, trampoline, {.stall = 5});
  }

  // True if nothing but padding follows: then the stub can stand in place of the EXIT.
  bool IsLast(uint32_t exit) const {
    const auto is_padding = [](const Instruction& instruction) {
      return instruction.opcode() == sass::kOpNop;
    };
    const auto& code = section_.code;
    return code[exit].is_unguarded() && exit + 1 < code.size() &&
           code[exit + 1].low == kSelfBranch.low &&
           std::all_of(code.begin() + exit + 2, code.end(), is_padding);
  }

  void RewriteExit(uint32_t exit) {
    const Instruction old = section_.code[exit];
    std::vector<Instruction> stub = ExitCode(layout_, section_.exit_registers);
    const size_t room = section_.code.size() - exit;
    if (IsLast(exit) && stub.size() + 2 <= room) {
      uint32_t at = exit;
      for (const Instruction& instruction : stub) code_[at++] = instruction;
      exit_offsets_.push_back(at * kInstructionBytes);
      code_[at++] = old;
      code_[at++] = kSelfBranch;
      return;
    }
    // The branch takes the guard and the source predicate, the stub ends in the same exit
    // unguarded: whoever arrives there has met them.
    constexpr uint64_t kSourcePredicate = uint64_t{0xf} << (87 - 64);
    Instruction branch =
        sass::Bra(uint64_t{exit} * kInstructionBytes, End(), {.stall = 5}).WithGuardOf(old);
    branch.high = (branch.high & ~kSourcePredicate) | (old.high & kSourcePredicate);
    Control control = old.control();
    control.stall = std::max<uint8_t>(control.stall, 5);
    code_[exit] = branch.WithControl(control);
    for (const Instruction& instruction : stub) code_.push_back(instruction);
    exit_offsets_.push_back(static_cast<uint32_t>(End()));
    Instruction last = old.WithGuardOf(kSelfBranch);
    last.high |= uint64_t{7} << (87 - 64);
    last.high &= ~(uint64_t{1} << (90 - 64));
    code_.push_back(last.WithControl({.stall = 5}));
    code_.push_back(kSelfBranch);
  }

  const CodeSection& section_;
  const ring::Layout& layout_;
  std::vector<Instruction> code_;
  std::vector<uint32_t> exit_offsets_;
};

}  // namespace

RewrittenCode Rewrite(const CodeSection& section, const ring::Layout& layout,
                      const EntryOptions* entry) {
  return Rewriter(section, layout).Run(entry);
}

}  // namespace iket::patch
