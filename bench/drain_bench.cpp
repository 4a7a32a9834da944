// What the supervisor keeps of rings that come around with every pass: copy, follow, append, as
// `iket profile --overflow stream` does it, by so many threads. IKET_BENCH_DRIVER names a
// libcuda.so.1 (the system's if it does not; the software device's is lib/iket-sim/libcuda.so.1),
// IKET_BENCH_SMS the SMs (132), IKET_BENCH_FOLDER where the capture is written (/dev/shm).
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "supervisor/drain.h"
#include "supervisor/testing_rings.h"

namespace {

namespace ring = iket::ring;
namespace supervisor = iket::supervisor;

std::string Variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

// Argument: threads.
void Pass(benchmark::State& state) {
  const std::string driver = Variable("IKET_BENCH_DRIVER", "");
  const std::string folder =
      Variable("IKET_BENCH_FOLDER", "/dev/shm") + "/iket_drain_bench_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  supervisor::TestingRings rings(
      driver, 32 << 10, static_cast<uint32_t>(std::stoul(Variable("IKET_BENCH_SMS", "132"))));
  for (uint32_t ring = 0; ring < rings.layout().ring_count(); ++ring) rings.Use(ring);
  supervisor::RingWindows windows(driver);
  supervisor::Drain drain(folder, windows, static_cast<size_t>(state.range(0)));
  drain.Pass({rings.memory()});  // makes lanes and memory
  uint64_t records = 0;
  uint32_t word = 1;
  for (auto _ : state) {
    state.PauseTiming();
    rings.Enter();
    rings.Fill(++word);
    state.ResumeTiming();
    records += drain.Pass({rings.memory()}).records;
  }
  state.SetItemsProcessed(static_cast<int64_t>(records));
  drain.Finish(rings.memory().pid, {}, false);
  windows.Forget(rings.memory().pid);
  std::filesystem::remove_all(folder);
}
BENCHMARK(Pass)->RangeMultiplier(2)->Range(1, 16)->Iterations(8)->UseRealTime()->Unit(
    benchmark::kMillisecond);

}  // namespace
