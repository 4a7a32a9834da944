// How fast chunks of a capture are summed: bytes a second by chunk size.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/checksum.h"

namespace {

void Crc32c(benchmark::State& state) {
  const std::vector<char> data(static_cast<size_t>(state.range(0)), 'x');
  for (auto _ : state) benchmark::DoNotOptimize(iket::Crc32c(data.data(), data.size()));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Crc32c)->Arg(64)->Arg(4096)->Arg(1 << 20);

}  // namespace
