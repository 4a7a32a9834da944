#include "sim/cta.h"

#include <algorithm>
#include <bit>

#include "sim/sm.h"

namespace iket::sim {
namespace {

constexpr uint64_t kBarrierCycles = 20;

}  // namespace

void Launch::Fail(Fault&& what) {
  const std::lock_guard lock(fault_mutex);
  if (!fault) fault = std::move(what);
  stop.store(true, std::memory_order_relaxed);
}

void Cta::Arrive(Warp& warp, uint32_t mask, uint32_t barrier, uint32_t threads, bool wait,
                 uint32_t true_lanes) {
  CtaBarrier& b = barriers[barrier];
  b.busy = true;
  if (threads != 0) b.expected = threads;
  b.arrived[warp.number] |= mask;
  b.true_count += static_cast<uint32_t>(std::popcount(true_lanes & mask));
  b.all_true &= (true_lanes & mask) == mask;
  b.any_true |= (true_lanes & mask) != 0;
  if (wait) {
    warp.waiting.push_back({.mask = mask,
                            .pc = warp.pc,
                            .state = SplitState::kCtaBarrier,
                            .barrier = static_cast<uint8_t>(barrier)});
    warp.active &= ~mask;
    if (warp.active == 0) warp.leave = true;
  }
  TryComplete(barrier, warp.time);
}

void Cta::LanesExited(Warp& warp) {
  for (uint32_t i = 0; i < barriers.size(); ++i) {
    if (barriers[i].busy) TryComplete(i, warp.time);
  }
}

void Cta::TryComplete(uint32_t barrier, uint64_t time) {
  CtaBarrier& b = barriers[barrier];
  uint32_t threads = 0;
  bool all = true;
  for (const auto& warp : warps) {
    const uint32_t arrived = b.arrived[warp->number];
    const uint32_t here = arrived & warp->live;
    const bool whole = here == warp->live;
    all &= whole;
    // A warp that has come whole counts as 32 threads, however many it has.
    if (arrived != 0) threads += whole ? kLanes : static_cast<uint32_t>(std::popcount(arrived));
  }
  if (b.expected != 0 ? threads < b.expected : !all) return;
  for (const auto& warp : warps) {
    bool freed = false;
    for (Split& split : warp->waiting) {
      if (split.state != SplitState::kCtaBarrier || split.barrier != barrier) continue;
      split.state = SplitState::kReady;
      freed = true;
    }
    if (!freed) continue;
    warp->barrier_count = b.true_count;
    warp->barrier_all = b.all_true;
    warp->barrier_any = b.any_true;
    warp->time = std::max(warp->time, time + kBarrierCycles);
    sm->Wake(*warp);
  }
  b = CtaBarrier{};
}

}  // namespace iket::sim
