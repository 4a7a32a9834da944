// The probe's kernels. They run beside nothing: a warp, or one CTA a SM, for microseconds.

namespace {

__device__ unsigned long long Timer() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

}  // namespace

// Answers with the timer as often as the host asks, by numbers from 1 to `rounds`. Ends by itself
// when nobody asks any more.
extern "C" __global__ void iket_probe_clock(const volatile unsigned* asked,
                                            volatile unsigned long long* timer,
                                            volatile unsigned* answered, unsigned rounds,
                                            unsigned long long patience_ns) {
  for (unsigned round = 1; round <= rounds; ++round) {
    const unsigned long long since = Timer();
    while (*asked < round) {
      if (Timer() - since > patience_ns) return;
    }
    *timer = Timer();
    __threadfence_system();
    *answered = round;
  }
}

// Of each CTA, two words: its SM, and what read_affinity.py makes of %lanemask_eq. A CTA stays a
// while, so that the next ones go to other SMs.
extern "C" __global__ void iket_probe_place(unsigned* rows, unsigned long long stay_ns) {
  unsigned sm, affinity;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u32 %0, %%lanemask_eq;" : "=r"(affinity));
  if (threadIdx.x != 0) return;
  rows[2 * blockIdx.x] = sm;
  rows[2 * blockIdx.x + 1] = affinity;
  const unsigned long long since = Timer();
  while (Timer() - since < stay_ns) {
  }
}
