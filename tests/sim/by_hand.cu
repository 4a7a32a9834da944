// Placeholders that no front end writes so, but that somebody may by hand.
#include "../../bench/foreign_cost/foreign_marks.cuh"

// The time stamp is a value of the program, too: 1,000 and 10,000 say that it came through whole.
extern "C" __global__ void used_stamp(float* data, int) {
  unsigned stamp, joined, before, after;
  asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(before)::"memory");
  asm volatile(
      "{.reg .b32 r; mov.b32 r, %%cluster_ctarank; mov.u32 %0, %%globaltimer_lo;"
      "or.b32 %1, %0, 1; mad.lo.u32 r, r, 0x1000000, 0x3f0;"
      "st.weak.shared.u32 [r], %1; pmevent.mask 1;}"
      : "=r"(stamp), "=r"(joined)::"memory");
  asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(after)::"memory");
  data[threadIdx.x] += (stamp - before <= after - before ? 1000.0f : 0.0f) +
                       (joined == (stamp | 1) ? 10000.0f : 0.0f);
}

// Another lane each time, chosen by a predicate that ptxas takes for something else at once.
extern "C" __global__ void lanes_in_turns(float* data, int n) {
  float x = data[threadIdx.x];
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    x = x * 1.5f + 1.0f;
    asm volatile(
        "{.reg .b32 r, t; .reg .pred p; setp.eq.u32 p, %1, 0;"
        "mov.b32 r, %%cluster_ctarank; mov.u32 t, %%globaltimer_lo;" FOREIGN_JOIN
        "mad.lo.u32 r, r, 0x1000000, 0x3f0; @p " FOREIGN_STAMP
        " pmevent.mask %0;}" ::"n"(foreign::kMark),
        "r"((threadIdx.x + i) & 31)
        : "memory");
  }
  data[threadIdx.x] = x;
}
