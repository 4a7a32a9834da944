#include "patch/foreign_site.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sass/operands.h"

namespace iket::patch {
namespace {

using sass::Instruction;

constexpr uint32_t kOpLop3Immediate = 0x812, kOpUlop3Immediate = 0x892;

// The mask of a PMTRIG that may be an event of the metadata. Ours lie above (site.h).
std::optional<uint32_t> TriggeredId(const Instruction& instruction) {
  if (instruction.opcode() != sass::kOpPmTrig) return std::nullopt;
  const uint32_t mask = instruction.Bits(32, 16);
  if (mask == 0 || mask > kMostForeignId) return std::nullopt;
  return mask;
}

bool IsSharedStore(const Instruction& instruction) {
  return instruction.opcode() == sass::kOpSts || instruction.opcode() == sass::kOpStsUniform;
}
uint8_t Data(const Instruction& store) { return static_cast<uint8_t>(store.Bits(32, 8)); }
// Of the data, by the width field; 0 of widths that no placeholder has.
uint32_t DataBytes(const Instruction& store) {
  switch (store.Bits(73, 3)) {
    case 4:
      return 4;
    case 5:
      return 8;
    case 6:
      return 16;
    default:
      return 0;
  }
}
// Signed, 24 bits.
int32_t Offset(const Instruction& store) {
  return static_cast<int32_t>(store.Bits(40, 24) << 8) >> 8;
}
// The register that the offset is added to, with what says of which file it is.
uint64_t Base(const Instruction& store) {
  return store.opcode() == sass::kOpStsUniform ? uint64_t{store.Bits(64, 8)} << 32
                                               : store.Bits(24, 8);
}

bool ReadsTimer(const Instruction& instruction) {
  return instruction.opcode() == sass::kOpCs2r && instruction.Bits(80, 1) == 0 &&
         instruction.Bits(72, 8) == static_cast<uint32_t>(sass::SpecialRegister::kGlobalTimerLow);
}

bool ReadsTimerUniformly(const Instruction& instruction) {
  return instruction.opcode() == sass::kOpS2ur &&
         instruction.Bits(72, 8) == static_cast<uint32_t>(sass::SpecialRegister::kGlobalTimerLow);
}

// Rd = Ra | id, of general or of uniform registers.
bool JoinsId(const Instruction& instruction, uint32_t opcode, uint32_t id) {
  constexpr uint32_t kOr = 0xfc;
  return instruction.opcode() == opcode && instruction.Bits(72, 8) == kOr &&
         instruction.Bits(32, 32) == id;
}

class Finder {
 public:
  Finder(std::span<const Instruction> code, const std::vector<bool>& starts,
         const ForeignMarks& marks, sass::Generation generation)
      : code_(code), starts_(starts), marks_(marks), generation_(generation) {}

  // A program's own pmevent, which is nobody's event.
  bool IsOwn(uint32_t trigger) const {
    const uint32_t id = *TriggeredId(code_[trigger]);
    if (marks_.Find(id) != nullptr) return false;
    if (IsBare(marks_.method())) return true;
    ForeignSite site;
    return id != kForeignPop && !Find(trigger, site).empty() && site.store == ForeignSite::kNone;
  }

  // Empty: `site` is whole.
  std::string Find(uint32_t trigger, ForeignSite& site) const {
    site.trigger = trigger;
    site.id = *TriggeredId(code_[trigger]);
    const ForeignEvent* const event = marks_.Find(site.id);
    const ForeignMethod method = event != nullptr ? event->method : marks_.method();
    const bool is_bare = IsBare(method);
    site.guard = GuardOf(code_[trigger]);
    site.somebody_stores = site.guard.always();
    if (is_bare) return {};
    site.payload_bytes = event != nullptr ? event->payload_bytes() : 0;

    uint32_t first = trigger;  // of what may belong to the site
    while (first > 0 && !starts_[first] && !TriggeredId(code_[first - 1])) --first;
    const bool is_native = method == ForeignMethod::kNativeDump;
    for (uint32_t i = trigger; i-- > first && site.store == ForeignSite::kNone;) {
      if (IsSharedStore(code_[i])) FindTimeStamp(first, i, is_native, site);
    }
    if (site.store == ForeignSite::kNone) {
      return "no store of a time stamp before its PMTRIG";
    }
    if (event == nullptr && site.id != kForeignPop) {
      return fmt::format("it stores event {}, which nothing declares", site.id);
    }
    std::string problem = FindPayload(first, is_native, site);
    if (problem.empty()) problem = CheckGuards(first, site);
    return problem;
  }

 private:
  // The last instruction before `i`, from `first` on, that writes a register.
  std::optional<uint32_t> Writer(uint32_t first, uint32_t i, uint8_t index) const {
    while (i-- > first) {
      if (sass::MayWriteRegister(code_[i], index)) return i;
    }
    return std::nullopt;
  }

  std::optional<uint32_t> UniformWriter(uint32_t first, uint32_t i, uint32_t index) const {
    while (i-- > first) {
      if (sass::MayWriteUniform(code_[i], index, generation_)) return i;
    }
    return std::nullopt;
  }

  // Is `store` the site's? Back from its first word to the timer, by way of the id and of a move
  // between the register files, in either order.
  void FindTimeStamp(uint32_t first, uint32_t store, bool is_native, ForeignSite& site) const {
    ForeignSite found = site;
    found.store = store;
    auto made = Writer(first, store, Data(code_[store]));
    if (made && is_native && JoinsId(code_[*made], kOpLop3Immediate, site.id)) {
      found.join = *made;
      made = Writer(first, found.join, static_cast<uint8_t>(code_[found.join].Bits(24, 8)));
    }
    const auto moved = made ? sass::MovedUniform(code_[*made], generation_) : std::nullopt;
    if (moved) {
      found.move = *made;
      made = UniformWriter(first, found.move, *moved);
      if (made && is_native && found.join == ForeignSite::kNone &&
          JoinsId(code_[*made], kOpUlop3Immediate, site.id)) {
        found.join = *made;
        made = UniformWriter(first, found.join,
                             code_[found.join].Bits(24, sass::UniformBits(generation_)));
      }
    }
    if (!made || is_native != (found.join != ForeignSite::kNone)) return;
    if (moved ? !ReadsTimerUniformly(code_[*made]) : !ReadsTimer(code_[*made])) return;
    found.clock = *made;
    site = found;
  }

  std::string FindPayload(uint32_t first, bool is_native, ForeignSite& site) const {
    const Instruction& store = code_[site.store];
    const uint32_t stamp_bytes = is_native ? 4 : 8;
    const uint32_t bytes = DataBytes(store);
    if (bytes < stamp_bytes) return "its store is narrower than a time stamp";
    // Where the payload lies behind the time stamp.
    const uint32_t distance = site.payload_bytes == 8 ? 8 : stamp_bytes;
    if (bytes > stamp_bytes) {
      if (bytes < distance + site.payload_bytes || site.payload_bytes == 0) {
        return "its store is wider than what it declares";
      }
      site.payload = site.store;
      site.payload_register = static_cast<uint8_t>(Data(store) + distance / 4);
      return {};
    }
    if (site.payload_bytes == 0) return {};
    for (uint32_t i = site.trigger; i-- > first;) {
      const Instruction& other = code_[i];
      if (i == site.store || !IsSharedStore(other)) continue;
      if (other.opcode() != store.opcode() || Base(other) != Base(store)) continue;
      if (Offset(other) != Offset(store) + static_cast<int32_t>(distance)) continue;
      if (DataBytes(other) != site.payload_bytes || GuardOf(other) != GuardOf(store)) continue;
      if (!AreAlike(std::min(i, site.store), std::max(i, site.store))) continue;
      site.payload = i;
      site.payload_register = Data(other);
      return {};
    }
    return "the store of its payload is missing";
  }

  // Do address register and guard mean the same at both of two stores that name the same ones?
  bool AreAlike(uint32_t earlier, uint32_t later) const {
    const Instruction& store = code_[later];
    const bool is_uniform = store.opcode() == sass::kOpStsUniform;
    for (uint32_t i = earlier + 1; i < later; ++i) {
      if (is_uniform ? sass::MayWriteUniform(code_[i], store.Bits(64, 8), generation_)
                     : store.Bits(24, 8) != sass::kRegisterZero &&
                           sass::MayWriteRegister(code_[i], store.Bits(24, 8))) {
        return false;
      }
      if (store.guard() != sass::kPredicateTrue &&
          sass::MayWritePredicate(code_[i], store.guard())) {
        return false;
      }
    }
    return true;
  }

  std::string CheckGuards(uint32_t first, ForeignSite& site) const {
    const Guard stores = GuardOf(code_[site.store]);
    const Guard triggers = site.guard;
    site.guard = stores;
    if (stores.always()) {
      return triggers.always() ? std::string() : "its PMTRIG is guarded and its store is not";
    }
    if (!triggers.always() && triggers != stores) {
      return "its store and its PMTRIG have different guards";
    }
    site.somebody_stores = triggers.always() && IsElected(first, stores, site);
    return {};
  }

  // True if the guard is the lane that an ELECT of this block chose. Where ptxas elects before a
  // BRA.DIV it is in another, and the lanes are asked.
  bool IsElected(uint32_t first, const Guard& guard, const ForeignSite& site) const {
    if (guard.negated) return false;
    const auto elects = [&](const Instruction& instruction) {
      return instruction.opcode() == sass::kOpElect && instruction.is_unguarded() &&
             instruction.Bits(81, 3) == guard.predicate;
    };
    for (uint32_t i = site.store; i-- > first;) {
      if (elects(code_[i])) return true;
      if (sass::MayWritePredicate(code_[i], guard.predicate)) return false;
    }
    return false;
  }

  std::span<const Instruction> code_;
  const std::vector<bool>& starts_;
  const ForeignMarks& marks_;
  const sass::Generation generation_;
};

}  // namespace

ForeignSites FindForeignSites(std::span<const Instruction> code, std::span<const uint64_t> entries,
                              sass::Generation generation, const ForeignMarks& marks) {
  ForeignSites sites;
  if (marks.events.empty()) return sites;
  const std::vector<bool> starts = BlockStarts(code, entries, generation);
  const Finder finder(code, starts, marks, generation);
  for (uint32_t i = 0; i < code.size(); ++i) {
    if (!TriggeredId(code[i]) || finder.IsOwn(i)) continue;
    ForeignSite site;
    std::string problem = marks.refusal.empty() ? finder.Find(i, site) : marks.refusal;
    if (problem.empty()) {
      sites.all.push_back(site);
    } else {
      sites.problems.push_back({i, std::move(problem)});
    }
  }
  return sites;
}

}  // namespace iket::patch
