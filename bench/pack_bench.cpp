// Packing records of rings, as a stream's threads do, and unpacking them: records a second of one
// core, and bytes a record, by what the records are. A chunk has 32 rows of 480 records, as a pass
// finds them at 2 thousand million events a second, or of 24.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "capture/pack_records.h"
#include "ring/record.h"

namespace {

using iket::capture::RecordPacker;
using iket::capture::RecordUnpacker;
using iket::ring::Record;

constexpr uint32_t kRows = 32;

// What warps record: four marks in turns, some jitter; the same with a counter; small trip counts;
// warps of ten marks; marks that come in no order with payloads that nobody foretells; noise.
enum Shape { kLoop, kCounter, kNested, kShortWarps, kDisorder, kNoise };

std::vector<Record> Make(Shape shape, uint32_t per_row) {
  std::mt19937 random(7);
  std::vector<Record> records;
  const auto word = [&] { return static_cast<uint32_t>(random()); };
  for (uint32_t row = 0; row < kRows; ++row) {
    uint32_t clock = 1'000'000 + word() % 8000;
    for (uint32_t i = 0; i < per_row; ++i) {
      Record& record = records.emplace_back();
      clock += 1800 + word() % 60;
      switch (shape) {
        case kLoop:
          record = {clock, 1000 + i % 4, 0, 0};
          break;
        case kCounter:
          clock += word() % 400;
          record = {clock, 1000 + i % 4, i % 4 == 1 ? row * 1000 + i / 4 : 0, 0};
          break;
        case kNested:
          record = {clock, i % 5 == 4 ? 1000u : 1001 + i % 5 % 2, i / 5, 0};
          break;
        case kShortWarps:
          if (i % 12 == 0)
            record = {clock, iket::ring::BeginTag(0), clock / 2, clock - word() % 500};
          if (i % 12 == 1) record = {row + i, iket::ring::kTagIdentity | row * 32, 0, 17};
          if (i % 12 > 1) record = {clock, 1000 + i % 5, 0, 0};
          break;
        case kDisorder:
          record = {clock + word() % 1000, 1000 + word() % 16, word(), 0};
          break;
        case kNoise:
          record = {word(), word(), word(), word()};
          break;
      }
    }
  }
  return records;
}

struct Chunk {
  explicit Chunk(const benchmark::State& state)
      : per_row(static_cast<size_t>(state.range(1))),
        records(Make(static_cast<Shape>(state.range(0)), static_cast<uint32_t>(per_row))),
        room(RecordPacker::Room(records.size(), kRows)) {}

  size_t Pack(bool portable) {
    RecordPacker packer(room.data(), records.size());
    if (portable) packer.UsePortable();
    for (size_t row = 0; row < kRows; ++row) {
      packer.AddRow(std::span(records).subspan(row * per_row, per_row), {});
    }
    return packer.bytes();
  }

  size_t per_row;
  std::vector<Record> records;
  std::vector<std::byte> room;
};

void Report(benchmark::State& state, size_t records, size_t bytes) {
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * records));
  state.counters["bytes_a_record"] = static_cast<double>(bytes) / static_cast<double>(records);
}

void Pack(benchmark::State& state, bool portable) {
  Chunk chunk(state);
  size_t bytes = 0;
  for (auto _ : state) benchmark::DoNotOptimize(bytes = chunk.Pack(portable));
  Report(state, chunk.records.size(), bytes);
}

void Unpack(benchmark::State& state) {
  Chunk chunk(state);
  const size_t bytes = chunk.Pack(false);
  std::vector<Record> records(chunk.records.size());
  for (auto _ : state) {
    auto unpacker =
        RecordUnpacker::Of(iket::UntrustedBytes(chunk.room.data(), bytes), records.size());
    for (size_t row = 0; row < kRows; ++row) {
      const bool taken =
          unpacker->TakeRow(std::span(records).subspan(row * chunk.per_row, chunk.per_row));
      if (!taken) std::abort();
    }
    benchmark::ClobberMemory();
  }
  Report(state, records.size(), bytes);
}

void Arguments(benchmark::internal::Benchmark* bench) {
  for (const int per_row : {480, 24}) {
    for (const int shape : {kLoop, kCounter, kNested, kShortWarps, kDisorder, kNoise}) {
      bench->Args({shape, per_row});
    }
  }
  bench->ArgNames({"shape", "row"})->MinTime(0.1);
}
BENCHMARK_CAPTURE(Pack, avx, false)->Apply(Arguments);
BENCHMARK_CAPTURE(Pack, portable, true)->Apply(Arguments);
BENCHMARK(Unpack)->Apply(Arguments);

}  // namespace
