// What appending to one capture costs with several threads: a MiB of records a call, as they are or
// packed, written with write(2) under a lock, or into the mapped file by all threads at once.
// IKET_BENCH_FOLDER says where (/dev/shm if it does not).
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "capture/mapped_sink.h"
#include "capture/writer.h"
#include "ring/record.h"

namespace {

using iket::capture::FdSink;
using iket::capture::MappedSink;
using iket::capture::RingContents;
using iket::capture::RingMoment;
using iket::capture::Writer;
using iket::ring::Record;

constexpr uint32_t kRings = 32;
constexpr size_t kRecords = (32 << 10) / sizeof(Record);

std::string Path() {
  const char* const folder = std::getenv("IKET_BENCH_FOLDER");
  return (folder != nullptr ? std::string(folder) : "/dev/shm") + "/iket_append_bench_" +
         std::to_string(getpid());
}

std::unique_ptr<Writer> g_writer;  // of the run

template <typename Sink>
void Append(benchmark::State& state) {
  if (state.thread_index() == 0) {
    auto sink = Sink::Create(Path());
    if (!sink) {
      state.SkipWithError(sink.error().message.c_str());
    } else {
      auto writer = Writer::Create(
          std::move(*sink),
          {.compression_level = 0, .shared = true, .pack_rings = state.range(0) != 0});
      g_writer = std::make_unique<Writer>(std::move(*writer));
    }
  }
  // Four marks in turns, one of them with a counter.
  std::vector<Record> memory;
  uint32_t clock = 0, random = 1;
  for (uint32_t i = 0; i < kRings * kRecords; ++i) {
    random = random * 1664525 + 1013904223;
    clock += 1800 + (random >> 26);
    memory.push_back({clock, 1000 + i % 4, i % 4 == 1 ? i / 4 : 0, 0});
  }
  std::vector<RingContents> rows;
  for (uint32_t ring = 0; ring < kRings; ++ring) {
    rows.push_back({.ring = ring,
                    .written = kRecords * sizeof(Record),
                    .older = std::span<const Record>(memory).subspan(ring * kRecords, kRecords)});
  }
  for (auto _ : state) {
    if (!g_writer->Append(RingMoment{.settled = true}, rows)) state.SkipWithError("not written");
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * memory.size()));
  if (state.thread_index() == 0) {
    state.counters["bytes_a_record"] =
        static_cast<double>(g_writer->file_bytes()) /
        static_cast<double>(g_writer->chunks_written() * memory.size());
    g_writer.reset();
    unlink(Path().c_str());
  }
}

void Threads(benchmark::internal::Benchmark* bench) {
  for (const int threads : {1, 2, 4, 8, 16}) bench->Threads(threads);
  bench->ArgName("packed")->Arg(0)->Arg(1);
  bench->UseRealTime()->MinTime(0.2);
}
BENCHMARK(Append<FdSink>)->Apply(Threads);
BENCHMARK(Append<MappedSink>)->Apply(Threads);

}  // namespace
