// sm.h: one streaming multiprocessor: its warp slots, its clock, who issues next.
//
// Touched by one host thread at a time. Time model: each of the four schedulers issues at most one
// instruction a cycle; a warp's next instruction comes after the stall count that the compiler put
// into the control field, and after the scoreboards it waits for, which fall after a fixed latency
// by class.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "sim/address_view.h"
#include "sim/cta.h"
#include "sim/device_model.h"

namespace iket::sim {

class Sm {
 public:
  static constexpr uint32_t kSlots = 64;
  static constexpr uint32_t kSchedulers = 4;

  Sm(const DeviceModel& model, AddressSpace& space, uint32_t sm_number)
      : number(sm_number), memory(space), model_(&model) {
    due_.fill(kNever);
    ctas_.reserve(model.max_ctas_per_sm);  // so that none is ever lost for want of memory
  }

  // Whether there is room for it the machine has seen to.
  void Place(std::unique_ptr<Cta> cta, uint64_t time);
  // Runs until its clock reaches `until`, or until CTAs end, which are appended to `ended`. False
  // if nothing ran.
  bool Run(uint64_t until, std::vector<std::unique_ptr<Cta>>& ended);
  // A warp that waited for others can go on, from its time on.
  void Wake(const Warp& warp) { due_[warp.slot] = warp.time; }
  bool empty() const { return ctas_.empty(); }

  const uint32_t number;
  AddressView memory;
  uint64_t time = 0;
  uint64_t NanosecondsAt(uint64_t cycles) const { return cycles * 1000000 / model_->clock_khz; }

 private:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  // Returns when the warp can go on: kNever if it has ended or waits for others.
  uint64_t RunWarp(Warp& warp, uint64_t until);
  void MakeWarps(Cta& cta);
  void End(Warp& warp);
  // CTAs that have ended, of themselves or because their launch was stopped.
  void Reap(std::vector<std::unique_ptr<Cta>>& ended);
  void RaiseDeadlocks();
  std::unique_ptr<uint32_t[]> TakeRegisters(uint32_t rows);

  const DeviceModel* model_;
  std::array<Warp*, kSlots> slots_{};
  // When the warp of a slot can go on; kNever also for empty slots.
  std::array<uint64_t, kSlots> due_;
  uint32_t slots_used_ = 0;                    // slots from here on are empty
  std::array<uint64_t, kSchedulers> issue_{};  // when a scheduler can issue again
  std::vector<std::unique_ptr<Cta>> ctas_;
  // Register files of warps that ended, all of `spare_rows_` rows.
  std::vector<std::unique_ptr<uint32_t[]>> spare_;
  uint32_t spare_rows_ = 0;
};

}  // namespace iket::sim
