#include "patch/site.h"

#include <fmt/format.h>

#include <optional>

#include "ring/record.h"
#include "sass/operands.h"

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

// Which store of a placeholder this is, by its width and its offset from whatever base register.
enum class Store { kNone, kPlain, kPayload };
Store StoreOf(const Instruction& instruction) {
  if (instruction.opcode() != sass::kOpStsUniform && instruction.opcode() != sass::kOpSts) {
    return Store::kNone;
  }
  constexpr uint32_t k64 = 5, k128 = 6;
  const int32_t offset = static_cast<int32_t>(instruction.Bits(40, 24) << 8) >> 8;
  const uint32_t width = instruction.Bits(73, 3);
  if (offset == kPlainOffset && width == k64) return Store::kPlain;
  if (offset == kPayloadOffset && width == k128) return Store::kPayload;
  return Store::kNone;
}
uint32_t StoreData(const Instruction& instruction) { return instruction.Bits(32, 8); }

bool ReadsClock(const Instruction& instruction) {
  return instruction.opcode() == sass::kOpCs2r &&
         instruction.Bits(72, 8) == static_cast<uint32_t>(sass::SpecialRegister::kClockLow);
}

// Walks through the block of one advance slot and collects what belongs to it.
class SiteFinder {
 public:
  SiteFinder(std::span<const Instruction> code, const std::vector<bool>& starts,
             sass::Generation generation)
      : code_(code), starts_(starts), generation_(generation) {}

  // Empty reason: `site` is whole.
  std::string Find(uint32_t advance, Site& site) const {
    const Instruction& slot = code_[advance];
    site.advance = advance;
    site.bytes = *SlotMask(slot) & 0xff;
    if (site.bytes != ring::kRecordBytes) {
      return fmt::format("a record of {} bytes is of a newer version of the header", site.bytes);
    }
    if (!slot.is_unguarded()) return "its slot is guarded";

    uint32_t first = advance;                  // of what may belong to the site
    std::vector<uint32_t> stores, next, more;  // from the last to the first
    while (!starts_[first] && !IsSlot(code_[first - 1], kAdvanceSlot)) {
      --first;
      if (IsSlot(code_[first], kNextSlot)) next.push_back(first);
      if (IsSlot(code_[first], kMoreSlot)) more.push_back(first);
      // A program's own store of a clock has no guard, or another one.
      if (StoreOf(code_[first]) == Store::kNone || !HoldsClock(first)) continue;
      if (code_[first].guard() == sass::kPredicateTrue) continue;
      stores.push_back(first);
    }
    if (stores.empty()) {
      return "no guarded store before its slot; code that ptxas did not optimise (-Xptxas -O0) is "
             "not supported";
    }
    site.store = stores.back();
    if (stores.size() != more.size() + 1 || next.size() != more.size()) {
      return stores.size() > 1 && more.empty() ? "two stores in one site"
                                               : "stores and slots in it do not belong together";
    }
    for (const uint32_t at : next) {
      if ((*SlotMask(code_[at]) & 0xff) != site.bytes) return "its records differ in size";
    }
    for (size_t i = more.size(); i-- > 0;) {
      site.more.push_back({.next = next[i], .address = more[i], .store = stores[i]});
    }
    for (uint32_t i = site.store; i-- > first;) {
      if (!IsSlot(code_[i], kAddressSlot)) continue;
      if (site.address != Site::kNone) return "two address slots in one site";
      if (!code_[i].is_unguarded()) return "its address slot is guarded";
      site.address = i;
    }
    if (!site.more.empty() && !site.has_payload()) return "its address slot is missing";
    if (site.has_payload() != (StoreOf(code_[site.store]) == Store::kPayload)) {
      return site.has_payload() ? "an address slot without a payload"
                                : "its address slot is missing";
    }
    std::string problem = FindCompare(first, site);
    if (problem.empty()) problem = CheckMore(site);
    if (problem.empty()) problem = CannotElect(site);
    if (problem.empty()) site.event = EventOf(site);
    return problem;
  }

 private:
  // The id in the second word of the data, or 0 where the block does not show it.
  uint32_t EventOf(const Site& site) const {
    const Instruction& store = code_[site.store];
    const uint32_t word = StoreData(store) + 1;
    for (uint32_t i = site.store; !starts_[i];) {
      --i;
      if (!sass::MayWriteRegister(code_[i], word)) continue;
      const auto constant = sass::MovedConstant(code_[i]);
      // Under the store's guard it is there whenever the store is.
      const bool reaches =
          code_[i].is_unguarded() || (i > site.compare && code_[i].guard() == store.guard() &&
                                      code_[i].guard_negated() == store.guard_negated());
      if (!constant || !reaches || code_[i].Bits(16, 8) != word) return 0;
      return *constant <= ring::kEventIdMask ? *constant : 0;
    }
    return 0;
  }

  // False if the low word of the data was read from another counter. Where ptxas copied it on the
  // way, or the block does not show who wrote it, the address and the guard have to do.
  bool HoldsClock(uint32_t store) const {
    const uint32_t data = StoreData(code_[store]);
    for (uint32_t i = store; !starts_[i];) {
      --i;
      if (sass::IsMove(code_[i]) && code_[i].Bits(16, 8) == data) return true;
      if (code_[i].opcode() != sass::kOpCs2r || code_[i].Bits(16, 8) != data) continue;
      return ReadsClock(code_[i]);
    }
    return true;
  }

  // True if the comparison reads the clock: the register that a CS2R of the site wrote, or, where
  // ptxas copied or spilled that on the way, the one that is stored.
  bool ComparesClock(uint32_t first, const Site& site) const {
    const Instruction& compare = code_[site.compare];
    const auto reads = [&compare](uint32_t r) {
      return compare.Bits(24, 8) == r || compare.Bits(32, 8) == r;
    };
    if (reads(StoreData(code_[site.store]))) return true;
    for (uint32_t i = first; i < site.compare; ++i) {
      if (ReadsClock(code_[i]) && reads(code_[i].Bits(16, 8))) return true;
    }
    return false;
  }

  // The comparison of the clock that guards the store. The predicate is the placeholder's own:
  // until the store, whatever stands under it is there to make up the stored words.
  std::string FindCompare(uint32_t first, Site& site) const {
    const Instruction& store = code_[site.store];
    for (uint32_t i = site.store; i-- > first && site.compare == Site::kNone;) {
      if (sass::IsIsetp(code_[i]) && sass::IsetpPredicate(code_[i]) == store.guard()) {
        site.compare = i;
      }
    }
    if (site.compare == Site::kNone) return "the comparison that guards its store is missing";
    const Instruction& compare = code_[site.compare];
    if (!ComparesClock(first, site)) {
      return "its store is guarded by something else than its clock";
    }
    if (!compare.is_unguarded() || !sass::IsSimpleIsetp(compare, generation_)) {
      return "the comparison that guards its store depends on more than its clock";
    }
    for (uint32_t i = site.compare + 1; i < site.last_store(); ++i) {
      if (code_[i].guard() == store.guard() && code_[i].guard_negated() != store.guard_negated()) {
        return "the predicate of its store guards other code";
      }
    }
    return {};
  }

  // The stores behind the first: of the same lanes, each between slots of its own.
  std::string CheckMore(const Site& site) const {
    const Instruction& store = code_[site.store];
    // The comparison may be where the address is made, before sm_90 always (rewrite.cpp).
    uint32_t last_slot = generation_ == sass::Generation::kAmpere ? site.compare : site.address;
    uint32_t last_store = site.store;
    for (const MoreOfSite& more : site.more) {
      if (!(last_slot < more.next && more.next < last_store && last_store < more.address &&
            more.address < more.store)) {
        return "stores and slots in it do not belong together";
      }
      if (!code_[more.next].is_unguarded() || !code_[more.address].is_unguarded()) {
        return "its slot is guarded";
      }
      const Instruction& behind = code_[more.store];
      if (StoreOf(behind) != Store::kPayload || behind.guard() != store.guard() ||
          behind.guard_negated() != store.guard_negated()) {
        return "its stores have different guards";
      }
      last_slot = more.address;
      last_store = more.store;
    }
    for (uint32_t i = site.store; !site.more.empty() && i < site.last_store(); ++i) {
      if (sass::IsIsetp(code_[i]) && sass::IsetpPredicate(code_[i]) == store.guard()) {
        return "its stores have different guards";
      }
    }
    return {};
  }

  // Before sm_90 no instruction elects a lane. The code that does stands in for the comparison, and
  // needs a register: the one with the clock, which it reads again. So nobody may have it by then.
  std::string CannotElect(const Site& site) const {
    if (generation_ != sass::Generation::kAmpere || !site.has_payload()) return {};
    const uint32_t data = StoreData(code_[site.store]);
    for (uint32_t i = site.compare; i-- > site.address;) {
      const Instruction& instruction = code_[i];
      if (ReadsClock(instruction) && instruction.is_unguarded() &&
          instruction.Bits(16, 8) == data && instruction.Bits(80, 1) == 0) {
        return {};
      }
      if (sass::MayReadRegister(instruction, data) || sass::MayWriteRegister(instruction, data)) {
        break;
      }
    }
    return "its clock is copied, or in use, before it is compared, which a mark with a payload "
           "cannot have before sm_90";
  }

  std::span<const Instruction> code_;
  const std::vector<bool>& starts_;
  sass::Generation generation_;
};

}  // namespace

std::vector<bool> BlockStarts(std::span<const Instruction> code, std::span<const uint64_t> entries,
                              sass::Generation generation) {
  std::vector<bool> starts(code.size() + 1, false);
  starts[0] = true;
  for (uint64_t entry : entries) {
    if (entry / sass::kInstructionBytes < code.size())
      starts[entry / sass::kInstructionBytes] = true;
  }
  for (size_t i = 0; i < code.size(); ++i) {
    if (sass::EndsBasicBlock(code[i])) starts[i + 1] = true;
    if (!sass::HasRelativeTarget(code[i])) continue;
    const int64_t target = sass::RelativeTarget(code[i], i * sass::kInstructionBytes, generation);
    if (target >= 0 && target / sass::kInstructionBytes < static_cast<int64_t>(code.size())) {
      starts[static_cast<size_t>(target) / sass::kInstructionBytes] = true;
    }
  }
  return starts;
}

Sites FindSites(std::span<const Instruction> code, std::span<const uint64_t> entries,
                sass::Generation generation) {
  Sites sites;
  const std::vector<bool> starts = BlockStarts(code, entries, generation);
  const SiteFinder finder(code, starts, generation);
  uint32_t before_stores = 0, paired = 0;
  for (uint32_t i = 0; i < code.size(); ++i) {
    for (const uint32_t kind : {kAddressSlot, kNextSlot, kMoreSlot}) {
      if (IsSlot(code[i], kind)) ++before_stores;
    }
    if (!IsSlot(code[i], kAdvanceSlot)) continue;
    Site site;
    std::string reason = finder.Find(i, site);
    if (reason.empty()) {
      paired += (site.has_payload() ? 1 : 0) + 2 * static_cast<uint32_t>(site.more.size());
      sites.all.push_back(site);
    } else {
      sites.problems.push_back({i, std::move(reason)});
    }
  }
  if (sites.problems.empty() && before_stores != paired) {
    sites.problems.push_back({0, fmt::format("{} of {} slots before stores are of no site",
                                             before_stores - paired, before_stores)});
  }
  return sites;
}

}  // namespace iket::patch
