// What following rings costs the supervisor: a reading without news, one of which some or almost
// everything is new, and one of rings that came around, of 1,024 rings of 32 KiB. Beside them a
// copy of the same bytes, the least that it could take.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "ring/record.h"
#include "session/ring_follower.h"

namespace {

using iket::ring::Record;
using iket::session::RingFollower;

constexpr size_t kRings = 1024, kRecords = (32 << 10) / sizeof(Record);

class Rings {
 public:
  Rings() : followers_(kRings, RingFollower(kRecords)), memory_(kRings * kRecords) {}

  // `share` of each ring is written.
  void Write(size_t records) {
    for (size_t ring = 0; ring < kRings; ++ring) {
      for (size_t i = 0; i < records; ++i) {
        clock_ += 3;
        memory_[ring * kRecords + (at_ + i) % kRecords] = {clock_, 0x1234, 0, 0};
      }
    }
    at_ += records;
  }
  uint64_t Follow() {
    uint64_t given = 0;
    for (uint32_t ring = 0; ring < kRings; ++ring) {
      const auto row = followers_[ring].Follow(
          ring, header_, std::span(memory_).subspan(ring * kRecords, kRecords), false);
      if (row) given += row->older.size() + row->newer.size();
    }
    return given;
  }
  const std::vector<Record>& memory() const { return memory_; }

 private:
  std::vector<RingFollower> followers_;
  std::vector<Record> memory_;
  iket::ring::RingHeader header_{};
  uint32_t clock_ = 0;
  size_t at_ = 0;
};

// Argument: new records in each ring between two readings.
void Follow(benchmark::State& state) {
  Rings rings;
  const auto records = static_cast<size_t>(state.range(0));
  uint64_t given = 0;
  for (auto _ : state) {
    state.PauseTiming();
    rings.Write(records);
    state.ResumeTiming();
    given += rings.Follow();
  }
  state.SetItemsProcessed(static_cast<int64_t>(given));
}
BENCHMARK(Follow)->Arg(0)->Arg(200)->Arg(1900)->Arg(2500)->Unit(benchmark::kMillisecond);

void Copy(benchmark::State& state) {
  const Rings rings;
  std::vector<Record> to(rings.memory().size());
  for (auto _ : state) {
    std::memcpy(to.data(), rings.memory().data(), to.size() * sizeof(Record));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(to.size() * sizeof(Record)));
}
BENCHMARK(Copy)->Unit(benchmark::kMillisecond);

}  // namespace
