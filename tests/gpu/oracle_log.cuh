// SPDX-License-Identifier: Apache-2.0
//
// What a kernel of the oracle writes down about itself, without iket: for each warp who it is, and
// each event that it marked with the value of its payload and the SM's clock just before and just
// after. `oracle_check.py` holds the trace against it.
#pragma once

#include "oracle_log.h"

namespace oracle {

// Volatile, so that it stays on its side of the mark.
__device__ __forceinline__ unsigned Clock() {
  unsigned clock;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(clock)::"memory");
  return clock;
}

__device__ __forceinline__ unsigned Lane() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

__device__ __forceinline__ unsigned Bits(int value) { return static_cast<unsigned>(value); }
__device__ __forceinline__ unsigned Bits(unsigned value) { return value; }
__device__ __forceinline__ unsigned Bits(float value) { return __float_as_uint(value); }

// Of the words of several values, in their order, the low one of 64 bits first.
__device__ __forceinline__ unsigned Digest() { return 0; }
template <typename... Words>
__device__ __forceinline__ unsigned Digest(unsigned first, Words... rest) {
  unsigned factor = 1;
  ((factor *= 31, static_cast<void>(rest)), ...);
  return first * factor + Digest(rest...);
}

// The log of the calling warp. All lanes construct it, converged.
class WarpLog {
 public:
  // `cta` and `thread` count through the grid and the block, x first; `threads` are those of a
  // block.
  __device__ WarpLog(const Log& log, uint3 cta_index, unsigned cta, unsigned thread,
                     unsigned threads)
      : header_(log.warps + cta * ((threads + 31) / 32) + thread / 32),
        entries_(log.entries +
                 static_cast<size_t>(cta * ((threads + 31) / 32) + thread / 32) * log.capacity),
        capacity_(log.capacity) {
    if (Lane() != 0) return;
    unsigned long long grid_id;
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(grid_id));
    asm volatile("mov.u32 %0, %%smid;" : "=r"(header_->sm));
    header_->grid_id = static_cast<unsigned>(grid_id);
    header_->cta[0] = cta_index.x;
    header_->cta[1] = cta_index.y;
    header_->cta[2] = cta_index.z;
    header_->warp = thread / 32;
    header_->start = Clock();
  }

  // Runs `mark` and logs it. Called by any part of the warp.
  template <typename Payload, typename Mark>
  __device__ __forceinline__ void Around(unsigned event, Payload payload, Mark mark) {
    const unsigned active = __activemask();
    const unsigned before = Clock();
    mark();
    Add(event, Bits(payload), active, before, Clock());
  }

  __device__ __forceinline__ void Add(unsigned event, unsigned payload, unsigned active,
                                      unsigned before, unsigned after) {
    if (Lane() != __ffs(static_cast<int>(active)) - 1u) return;
    const unsigned at = atomicAdd(&header_->count, 1u);
    if (at < capacity_) entries_[at] = Entry{before, after, event, payload};
  }

 private:
  WarpHeader* header_;
  Entry* entries_;
  unsigned capacity_;
};

// One-dimensional grids and blocks. Kernels that use it do not read the other dimensions.
__device__ __forceinline__ WarpLog LogOf(const Log& log) {
  return WarpLog(log, {blockIdx.x, 0, 0}, blockIdx.x, threadIdx.x, blockDim.x);
}

// Logs the end of a scoped range. It stands before the range, BeforeEnd behind it, so that their
// destructors run on both sides of the range's.
class AroundEnd {
 public:
  __device__ __forceinline__ AroundEnd(WarpLog& log, unsigned event) : log_(log), event_(event) {}
  __device__ __forceinline__ ~AroundEnd() { log_.Add(event_, 0, active_, before_, Clock()); }
  AroundEnd(const AroundEnd&) = delete;
  AroundEnd& operator=(const AroundEnd&) = delete;

 private:
  friend class BeforeEnd;
  WarpLog& log_;
  unsigned event_, active_ = 0, before_ = 0;
};
class BeforeEnd {
 public:
  __device__ __forceinline__ explicit BeforeEnd(AroundEnd& end) : end_(end) {}
  __device__ __forceinline__ ~BeforeEnd() {
    end_.active_ = __activemask();
    end_.before_ = Clock();
  }
  BeforeEnd(const BeforeEnd&) = delete;
  BeforeEnd& operator=(const BeforeEnd&) = delete;

 private:
  AroundEnd& end_;
};

}  // namespace oracle
