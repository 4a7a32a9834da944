#include "probe/clocks.h"

#include <atomic>
#include <ctime>
#include <limits>

#include "probe/kernels.h"

namespace iket::probe {
namespace {

constexpr uint32_t kRounds = 16;
// How long the kernel waits for a question.
constexpr uint64_t kKernelPatienceNs = 50'000'000;

// What both sides see; a cache line each.
struct Mailbox {
  alignas(128) uint32_t asked;
  alignas(128) uint64_t timer_ns;
  alignas(128) uint32_t answered;
};

int64_t Now(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// How far REALTIME is ahead, by the closest of a few readings.
int64_t RealtimeAhead() {
  int64_t ahead = 0, narrowest = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < 5; ++i) {
    const int64_t before = Now(CLOCK_MONOTONIC);
    const int64_t realtime = Now(CLOCK_REALTIME);
    const int64_t after = Now(CLOCK_MONOTONIC);
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    ahead = realtime - (before + narrowest / 2);
  }
  return ahead;
}

bool Launch(const DriverCalls& calls, const Bench& bench, Mailbox* mailbox) {
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = bench.stream();
  auto asked = reinterpret_cast<CUdeviceptr>(&mailbox->asked);
  auto timer = reinterpret_cast<CUdeviceptr>(&mailbox->timer_ns);
  auto answered = reinterpret_cast<CUdeviceptr>(&mailbox->answered);
  uint32_t rounds = kRounds;
  uint64_t patience = kKernelPatienceNs;
  void* arguments[] = {&asked, &timer, &answered, &rounds, &patience};
  return calls.LaunchKernelEx(&config, bench.function(), arguments, nullptr) == CUDA_SUCCESS;
}

}  // namespace

std::optional<ClockProbe> ClockProbe::Make(const DriverCalls& calls) noexcept try {
  auto bench = Bench::Set(calls, "iket_probe_clock", sizeof(Mailbox));
  if (!bench) return std::nullopt;
  return ClockProbe(calls, std::move(*bench));
} catch (...) {
  return std::nullopt;
}

std::optional<capture::ClockExchange> ClockProbe::Ask(std::chrono::nanoseconds patience) noexcept {
  if (lost_) return std::nullopt;
  auto* const mailbox = reinterpret_cast<Mailbox*>(bench_.memory());
  const std::atomic_ref asked(mailbox->asked);
  const std::atomic_ref answered(mailbox->answered);
  asked.store(0);
  answered.store(0);
  if (!Launch(calls_, bench_, mailbox)) return std::nullopt;

  std::optional<capture::ClockExchange> best;
  for (uint32_t round = 1; round <= kRounds; ++round) {
    const int64_t before = Now(CLOCK_MONOTONIC);
    asked.store(round, std::memory_order_release);
    int64_t after = before;
    while (answered.load(std::memory_order_acquire) != round) {
      after = Now(CLOCK_MONOTONIC);
      if (after - before <= patience.count()) continue;
      // It may come yet: all its questions are there then, and it ends at once.
      asked.store(kRounds, std::memory_order_release);
      lost_ = true;
      return std::nullopt;
    }
    after = Now(CLOCK_MONOTONIC);
    if (best && after - before >= best->after_ns - best->before_ns) continue;
    best = {.timer_ns = *static_cast<volatile uint64_t*>(&mailbox->timer_ns),
            .before_ns = before,
            .after_ns = after};
  }
  best->realtime_ns = best->before_ns + (best->after_ns - best->before_ns) / 2 + RealtimeAhead();
  lost_ = !bench_.Ends(patience);
  return best;
}

}  // namespace iket::probe
