#include "patch/site.h"

#include <fmt/format.h>

#include <optional>

namespace iket::patch {
namespace {

using sass::Instruction;

std::optional<uint32_t> SlotMask(const Instruction& instruction) {
  if (instruction.opcode() != sass::kOpPmTrig) return std::nullopt;
  return static_cast<uint32_t>(instruction.low >> 32) & 0xffff;
}

bool IsSlot(const Instruction& instruction, uint32_t kind) {
  const auto mask = SlotMask(instruction);
  return mask && *mask >> 8 == kind;
}

int32_t StoreOffset(const Instruction& instruction) {
  return static_cast<int32_t>(instruction.Bits(40, 24) << 8) >> 8;
}

// A store to shared memory with this offset, whatever the base register.
bool IsStoreAt(const Instruction& instruction, int32_t offset) {
  return (instruction.opcode() == sass::kOpStsUniform || instruction.opcode() == sass::kOpSts) &&
         StoreOffset(instruction) == offset;
}
// Width field of a store: 4 is 32 bits, 5 is 64.
uint32_t StoreWidth(const Instruction& instruction) { return instruction.Bits(73, 3); }
uint32_t StoreData(const Instruction& instruction) { return instruction.Bits(32, 8); }

// Walks back through the block of one slot and collects what belongs to it.
class SiteFinder {
 public:
  SiteFinder(std::span<const Instruction> code, const std::vector<bool>& starts)
      : code_(code), starts_(starts) {}

  // Empty reason: `site` is whole.
  std::string Find(uint32_t first_slot, Site& site) const {
    const Instruction& slot = code_[first_slot];
    site.first_slot = first_slot;
    site.bytes = *SlotMask(slot) & 0xff;
    if (site.bytes != 16) {
      return fmt::format("a record of {} bytes is of a newer version of the header", site.bytes);
    }
    if (!slot.is_unguarded()) return "its slot is guarded";

    for (uint32_t i = first_slot; !starts_[i];) {
      --i;
      if (IsSlot(code_[i], kSecondSlot)) break;
      if (IsSlot(code_[i], kFirstSlot)) return "two first slots follow each other";
      if (IsStoreAt(code_[i], kTimeOffset) && StoreWidth(code_[i]) == 5 && HoldsClock(i)) {
        if (site.time != Site::kNone) return "two time stamps in one site";
        site.time = i;
      } else if (IsStoreAt(code_[i], kPayloadOffset) && IsPayload(code_[i])) {
        if (site.payload != Site::kNone) return "two payloads in one site";
        site.payload = i;
      }
    }
    if (site.time == Site::kNone) {
      return "no time stamp before its slot (code that ptxas did not optimise is not supported)";
    }
    for (uint32_t i = first_slot + 1; i < code_.size() && !starts_[i]; ++i) {
      if (IsSlot(code_[i], kFirstSlot)) break;
      if (!IsSlot(code_[i], kSecondSlot)) continue;
      if (!code_[i].is_unguarded()) return "its second slot is guarded";
      site.second_slot = i;
      break;
    }
    if (site.second_slot == Site::kNone) return "its second slot is missing";
    // The payload's store is guarded by the placeholder itself: the first active lane stores it.
    // That it is not guarded by more than that is seen from the time stamp, which is of the same
    // asm.
    if (!code_[site.time].is_unguarded()) return "its time stamp is guarded";
    return {};
  }

 private:
  static bool IsPayload(const Instruction& store) {
    return StoreWidth(store) == 4 || StoreWidth(store) == 5;
  }

  // The low word of the data was read from the clock. Where the block does not show who wrote it,
  // the address has to do.
  bool HoldsClock(uint32_t store) const {
    const uint32_t data = StoreData(code_[store]);
    for (uint32_t i = store; !starts_[i];) {
      --i;
      if (code_[i].opcode() != sass::kOpCs2r || code_[i].Bits(16, 8) != data) continue;
      return code_[i].Bits(72, 8) == static_cast<uint32_t>(sass::SpecialRegister::kClockLow);
    }
    return true;
  }

  std::span<const Instruction> code_;
  const std::vector<bool>& starts_;
};

}  // namespace

std::vector<bool> BlockStarts(std::span<const Instruction> code,
                              std::span<const uint64_t> entries) {
  std::vector<bool> starts(code.size() + 1, false);
  starts[0] = true;
  for (uint64_t entry : entries) {
    if (entry / sass::kInstructionBytes < code.size())
      starts[entry / sass::kInstructionBytes] = true;
  }
  for (size_t i = 0; i < code.size(); ++i) {
    if (sass::EndsBasicBlock(code[i])) starts[i + 1] = true;
    if (!sass::HasRelativeTarget(code[i])) continue;
    const int64_t target = sass::RelativeTarget(code[i], i * sass::kInstructionBytes);
    if (target >= 0 && target / sass::kInstructionBytes < static_cast<int64_t>(code.size())) {
      starts[static_cast<size_t>(target) / sass::kInstructionBytes] = true;
    }
  }
  return starts;
}

Sites FindSites(std::span<const Instruction> code, std::span<const uint64_t> entries) {
  Sites sites;
  const std::vector<bool> starts = BlockStarts(code, entries);
  const SiteFinder finder(code, starts);
  uint32_t second_slots = 0;
  for (uint32_t i = 0; i < code.size(); ++i) {
    if (IsSlot(code[i], kSecondSlot)) ++second_slots;
    if (!IsSlot(code[i], kFirstSlot)) continue;
    Site site;
    std::string reason = finder.Find(i, site);
    if (reason.empty()) {
      sites.all.push_back(site);
    } else {
      sites.problems.push_back({i, std::move(reason)});
    }
  }
  if (sites.problems.empty() && second_slots != sites.all.size()) {
    sites.problems.push_back(
        {0, fmt::format("{} second slots for {} sites", second_slots, sites.all.size())});
  }
  return sites;
}

}  // namespace iket::patch
