// What the supervisor keeps of rings that come around with every pass: copy, follow, pack, append,
// as `iket profile --overflow stream` does it, by so many threads; and without packing. Each ring
// has four marks in turns, one of them with a counter. IKET_BENCH_DRIVER names a libcuda.so.1 (the
// system's if it does not; the software device's is lib/iket-sim/libcuda.so.1), IKET_BENCH_SMS the
// SMs (132), IKET_BENCH_FOLDER where the capture is written (/dev/shm).
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "supervisor/drain.h"
#include "supervisor/testing_rings.h"

namespace {

namespace ring = iket::ring;
namespace supervisor = iket::supervisor;

std::string Variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

// Writes all of a ring, with clocks that follow those of the last time.
void Write(supervisor::TestingRings& rings, uint32_t pass) {
  std::vector<ring::Record> records(rings.layout().ring_bytes / ring::kRecordBytes);
  uint32_t random = pass;
  for (uint32_t ring = 0; ring < rings.layout().ring_count(); ++ring) {
    uint32_t clock = pass * 4'000'000;
    for (uint32_t i = 0; i < records.size(); ++i) {
      random = random * 1664525 + 1013904223;
      clock += 1800 + (random >> 26);
      records[i] = {clock, 1000 + i % 4, i % 4 == 1 ? pass * 512 + i / 4 : 0, 0};
    }
    rings.PutRing(ring, records);
  }
}

// Arguments: threads, packed.
void Pass(benchmark::State& state) {
  const std::string driver = Variable("IKET_BENCH_DRIVER", "");
  const std::string folder =
      Variable("IKET_BENCH_FOLDER", "/dev/shm") + "/iket_drain_bench_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  supervisor::TestingRings rings(
      driver, 32 << 10, static_cast<uint32_t>(std::stoul(Variable("IKET_BENCH_SMS", "132"))));
  for (uint32_t ring = 0; ring < rings.layout().ring_count(); ++ring) rings.Use(ring);
  supervisor::RingWindows windows(driver);
  supervisor::Drain drain(folder, windows, static_cast<size_t>(state.range(0)),
                          state.range(1) != 0);
  drain.Pass({rings.memory()});  // makes lanes and memory
  uint64_t records = 0;
  uint32_t pass = 0;
  for (auto _ : state) {
    state.PauseTiming();
    rings.Enter();
    Write(rings, ++pass);
    state.ResumeTiming();
    records += drain.Pass({rings.memory()}).records;
  }
  state.SetItemsProcessed(static_cast<int64_t>(records));
  const auto writer = drain.Finish(rings.memory().pid, {}, false);
  state.counters["bytes_a_record"] =
      writer ? static_cast<double>(writer->file_bytes()) / static_cast<double>(records) : 0;
  windows.Forget(rings.memory().pid);
  std::filesystem::remove_all(folder);
}
BENCHMARK(Pass)
    ->ArgsProduct({{1, 2, 4, 8, 15, 16}, {0, 1}})
    ->ArgNames({"threads", "packed"})
    ->Iterations(8)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
