#include "sim/warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "sim/cta.h"
#include "sim/image.h"

namespace iket::sim {

uint32_t Warp::Constant(uint32_t bank, uint32_t offset) {
  if (bank >= 8 || offset + 4 > constant_bytes[bank]) return 0;
  uint32_t value;
  std::memcpy(&value, constants[bank] + offset, sizeof value);
  return value;
}

void Warp::Start(std::unique_ptr<uint32_t[]> registers, uint32_t rows, uint32_t lanes,
                 uint32_t entry) {
  registers_ = std::move(registers);
  std::fill_n(registers_.get(), size_t{rows} * kLanes, 0);
  predicate.fill(0);
  predicate[7] = kAllLanes;
  uniform.fill(0);
  uniform_predicate.fill(false);
  uniform_predicate[7] = true;
  live = active = lanes;
  pc = entry;
  waiting.clear();
}

void Warp::Branch(uint32_t mask, uint32_t target) {
  const uint32_t stay = active & ~mask;
  if (stay == 0) {
    pc = target;
    return;
  }
  waiting.push_back({.mask = mask, .pc = target});
  active = stay;
}

void Warp::Wait(uint32_t mask, SplitState state, uint8_t barrier, uint32_t mates) {
  waiting.push_back({.mask = mask, .pc = pc, .state = state, .barrier = barrier, .mates = mates});
  active &= ~mask;
  Reconverge();
  if (active == 0) leave = true;
}

void Warp::Exit(uint32_t mask) {
  live &= ~mask;
  active &= ~mask;
  cta->LanesExited(*this);
  Reconverge();
  if (active == 0) leave = true;
}

void Warp::Reconverge() {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < waiting.size() && !changed; ++i) {
      const Split split = waiting[i];
      if (split.state != SplitState::kConvergence && split.state != SplitState::kWarpSync) continue;
      // Who waits at the same barrier, and whom the lanes of this split wait for.
      uint32_t there = 0;
      for (const Split& other : waiting) {
        if (other.state == split.state &&
            (split.state == SplitState::kWarpSync || other.barrier == split.barrier)) {
          there |= other.mask;
        }
      }
      uint32_t needed = split.mates & live;
      if (split.state == SplitState::kConvergence) {
        // Mates as they are now: BREAK may have taken some away.
        const auto lane = static_cast<size_t>(std::countr_zero(split.mask));
        needed = convergence[split.barrier][lane] & live;
      }
      if ((needed & ~there) != 0) continue;
      // Free: all lanes of `needed`, together where they stand at the same instruction.
      changed = true;
      const uint32_t freed = needed | split.mask;
      std::vector<Split> kept;
      std::vector<Split> ready;
      for (Split& other : waiting) {
        const uint32_t go = other.state == split.state && (split.state == SplitState::kWarpSync ||
                                                           other.barrier == split.barrier)
                                ? other.mask & freed
                                : 0;
        if (go == 0) {
          kept.push_back(other);
          continue;
        }
        if ((other.mask & ~go) != 0) {
          kept.push_back(other);
          kept.back().mask &= ~go;
        }
        const auto same = std::find_if(ready.begin(), ready.end(),
                                       [&](const Split& s) { return s.pc == other.pc; });
        if (same != ready.end()) {
          same->mask |= go;
        } else {
          ready.push_back({.mask = go, .pc = other.pc});
        }
      }
      // What has just met runs next.
      kept.insert(kept.begin(), ready.begin(), ready.end());
      waiting = std::move(kept);
    }
  }
}

bool Warp::Pick() {
  if (active != 0) return true;
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i].state != SplitState::kReady) continue;
    active = waiting[i].mask;
    pc = waiting[i].pc;
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  return false;
}

void Warp::Rotate() {
  if (active == 0 || waiting.empty()) return;
  waiting.push_back({.mask = active, .pc = pc});
  active = 0;
  Pick();
}

void Warp::Raise(Fault::Kind kind, uint32_t lane, uint64_t address, std::string what) {
  if (faulted) return;
  faulted = true;
  leave = true;
  const Image::Place place = launch->image->PlaceOf(at);
  Fault fault;
  fault.kind = kind;
  fault.kernel = launch->kernel->name;
  fault.offset = place.offset;
  std::copy_n(cta->id, 3, fault.cta);
  fault.warp = number;
  fault.lane = lane;
  fault.address = address;
  const std::string inside =
      place.function == launch->kernel->name ? "" : fmt::format(" in {}", place.function);
  fault.message = fmt::format("{}+{:#x}{}: CTA ({}, {}, {}), warp {}, lane {}: {}: {}",
                              launch->kernel->name, place.offset, inside, cta->id[0], cta->id[1],
                              cta->id[2], number, lane, FaultKindName(kind), what);
  launch->Fail(std::move(fault));
}

void Warp::RaiseInvalidPc(uint64_t address) {
  Raise(Fault::Kind::kInvalidPc, FirstLane(), address,
        fmt::format("a jump to {:#x}, where there is no code of this module", address));
}

std::byte* Warp::Local(uint32_t lane, uint64_t address, uint32_t size) {
  const uint32_t bytes = launch->local_bytes;
  if (address > bytes || size > bytes - address) return nullptr;
  if (local_ == nullptr) {
    // calloc and not new: of large pieces only what is touched takes memory.
    local_.reset(static_cast<std::byte*>(std::calloc(kLanes, bytes)));
    if (local_ == nullptr) return nullptr;
  }
  return local_.get() + size_t{lane} * bytes + address;
}

}  // namespace iket::sim
