#include "sim/sm.h"

#include <algorithm>
#include <bit>
#include <new>

#include "sim/image.h"

namespace iket::sim {
namespace {

// A warp goes on for so long past the next one's turn: fewer changes of warp, clocks still agree.
constexpr uint64_t kSlack = 256;
// A split gives way to others of its warp after so many instructions, so that lanes which wait for
// each other in a loop get there.
constexpr uint64_t kSplitTurn = 512;

constexpr uint64_t CyclesOf(Latency latency) {
  switch (latency) {
    case Latency::kNone:
    case Latency::kShort:
      return 12;
    case Latency::kShared:
      return 30;
    case Latency::kGlobal:
      return 400;
    case Latency::kMath:
      return 24;
    case Latency::kMatrix:
      return 34;
  }
  return 12;
}
constexpr uint64_t kReadCycles = 10;

}  // namespace

void Sm::Place(std::unique_ptr<Cta> cta, uint64_t now) {
  if (ctas_.empty()) time = std::max(time, now);
  cta->sm = this;
  try {
    MakeWarps(*cta);
  } catch (const std::bad_alloc&) {
    // It ends at once, like a CTA whose warps have all exited.
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      if (slots_[slot] == nullptr || slots_[slot]->cta != cta.get()) continue;
      slots_[slot] = nullptr;
      due_[slot] = kNever;
    }
    cta->warps.clear();
    cta->live_warps = 0;
    cta->launch->Fail(Fault::NoHostMemory());
  }
  ctas_.push_back(std::move(cta));
}

void Sm::MakeWarps(Cta& cta) {
  const Launch& launch = *cta.launch;
  cta.shared.resize(launch.shared_bytes);
  cta.live_warps = launch.warps;
  uint32_t slot = 0;
  for (uint32_t n = 0; n < launch.warps; ++n) {
    while (slots_[slot] != nullptr) ++slot;
    auto warp = std::make_unique<Warp>();
    const uint32_t threads = std::min(kLanes, launch.threads - n * kLanes);
    warp->cta = &cta;
    warp->sm = this;
    warp->launch = cta.launch;
    warp->number = n;
    warp->slot = slot;
    warp->time = time + n / kSchedulers;
    warp->code = launch.image->code().data();
    warp->code_size = static_cast<uint32_t>(launch.image->code().size());
    warp->constants[0] = launch.constants0.data();
    warp->constant_bytes[0] = static_cast<uint32_t>(launch.constants0.size());
    for (uint32_t bank = 1; bank < 8; ++bank) {
      const auto bytes = launch.image->Constants(bank, *launch.kernel);
      warp->constants[bank] = bytes.data();
      warp->constant_bytes[bank] = static_cast<uint32_t>(bytes.size());
    }
    const uint32_t rows = launch.image->register_rows();
    warp->Start(TakeRegisters(rows), rows, threads == kLanes ? kAllLanes : (1u << threads) - 1,
                launch.kernel->entry);
    cta.warps.push_back(std::move(warp));
    slots_[slot] = cta.warps.back().get();
    due_[slot] = cta.warps.back()->time;
    slots_used_ = std::max(slots_used_, slot + 1);
  }
}

std::unique_ptr<uint32_t[]> Sm::TakeRegisters(uint32_t rows) {
  if (rows != spare_rows_) spare_.clear();
  spare_rows_ = rows;
  if (spare_.empty()) return std::make_unique_for_overwrite<uint32_t[]>(size_t{rows} * kLanes);
  auto registers = std::move(spare_.back());
  spare_.pop_back();
  return registers;
}

bool Sm::Run(uint64_t until, std::vector<std::unique_ptr<Cta>>& ended) {
  bool ran = false;
  Reap(ended);
  while (ended.empty() && !ctas_.empty()) {
    // The warp whose turn it is, and when the next one's comes.
    uint64_t first = kNever, second = kNever;
    uint32_t next = 0;
    for (uint32_t slot = 0; slot < slots_used_; ++slot) {
      const uint64_t due = due_[slot];
      second = std::min(second, std::max(first, due));
      next = due < first ? slot : next;
      first = std::min(first, due);
    }
    if (first == kNever) {
      RaiseDeadlocks();
      Reap(ended);
      continue;
    }
    time = std::max(time, first);
    if (first >= until) return true;
    ran = true;
    Warp& warp = *slots_[next];
    try {
      due_[next] = RunWarp(warp, std::min(until, second) + kSlack);
    } catch (const std::bad_alloc&) {
      due_[next] = kNever;
      warp.launch->Fail(Fault::NoHostMemory());
    }
    const Cta& cta = *warp.cta;
    if (cta.live_warps == 0 || cta.launch->stop.load(std::memory_order_relaxed)) Reap(ended);
  }
  if (!ended.empty()) return true;
  time = std::max(time, until);
  return ran;
}

void Sm::RaiseDeadlocks() {
  // What a warp waits for is always in its own CTA: nobody will ever come.
  for (const auto& cta : ctas_) {
    for (const auto& warp : cta->warps) {
      if (warp->done() || warp->waiting.empty()) continue;
      warp->at = warp->waiting.front().pc;
      warp->Raise(Fault::Kind::kDeadlock,
                  static_cast<uint32_t>(std::countr_zero(warp->waiting.front().mask)), 0,
                  "every warp of the CTA waits for others that never come");
      break;
    }
  }
}

void Sm::Reap(std::vector<std::unique_ptr<Cta>>& ended) {
  for (size_t i = 0; i < ctas_.size();) {
    Cta& cta = *ctas_[i];
    if (cta.live_warps != 0 && !cta.launch->stop.load(std::memory_order_relaxed)) {
      ++i;
      continue;
    }
    uint64_t instructions = 0;
    for (const auto& warp : cta.warps) {
      if (slots_[warp->slot] == warp.get()) {
        slots_[warp->slot] = nullptr;
        due_[warp->slot] = kNever;
      }
      instructions += warp->issued;
      // A launch that depends on this one starts behind its last warp.
      time = std::max(time, warp->time);
      if (cta.launch->image->register_rows() == spare_rows_) {
        spare_.push_back(warp->TakeRegisters());
      }
    }
    cta.launch->instructions.fetch_add(instructions, std::memory_order_relaxed);
    ended.push_back(std::move(ctas_[i]));
    ctas_.erase(ctas_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

uint64_t Sm::RunWarp(Warp& warp, uint64_t until) {
  uint64_t& issue = issue_[warp.slot % kSchedulers];
  // Nobody could have used the cycles before: this warp is the first of all.
  if (issue < warp.time) issue = warp.time;
  warp.time = issue;
  const uint64_t turn = warp.issued + kSplitTurn;
  while (warp.time < until && warp.Pick()) {
    if (warp.pc >= warp.code_size) {
      warp.at = 0;
      warp.exec = warp.active;
      warp.Raise(Fault::Kind::kInvalidPc, warp.FirstLane(), 0,
                 "the program counter is outside the code");
      return kNever;
    }
    const Op& op = warp.code[warp.pc];
    warp.at = warp.pc++;
    for (uint32_t mask = op.wait; mask != 0; mask &= mask - 1) {
      warp.time = std::max(warp.time, warp.scoreboard[static_cast<size_t>(std::countr_zero(mask))]);
    }
    uint32_t exec = warp.active;
    if (op.guard_uniform) {
      if (warp.uniform_predicate[op.guard] == op.guard_negated) exec = 0;
    } else {
      exec &= op.guard_negated ? ~warp.predicate[op.guard] : warp.predicate[op.guard];
    }
    warp.exec = exec;
    ++warp.issued;
    ++issue;
    if (exec != 0) {
      op.run(warp, op);
      if (op.write_barrier < 6) {
        warp.scoreboard[op.write_barrier] = warp.time + CyclesOf(op.latency);
      }
      if (op.read_barrier < 6) warp.scoreboard[op.read_barrier] = warp.time + kReadCycles;
    }
    warp.time += op.stall;
    if (warp.leave) {
      warp.leave = false;
      if (warp.faulted) return kNever;
      if (warp.done()) {
        End(warp);
        return kNever;
      }
    }
    if (warp.issued >= turn && !warp.waiting.empty()) {
      warp.Rotate();
      break;
    }
  }
  return warp.Pick() ? warp.time : kNever;
}

void Sm::End(Warp& warp) {
  slots_[warp.slot] = nullptr;
  while (slots_used_ != 0 && slots_[slots_used_ - 1] == nullptr) --slots_used_;
  --warp.cta->live_warps;
  uint64_t end = warp.launch->end_time.load(std::memory_order_relaxed);
  while (end < warp.time && !warp.launch->end_time.compare_exchange_weak(end, warp.time)) {
  }
}

}  // namespace iket::sim
