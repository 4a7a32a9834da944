// rooms: trace capture. From ring records to a model: events a second on one core.
//
// Each figure is per event of the capture. "Copy" is the least that any reader pays: one copy of
// the records; the others are to be read as multiples of it.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/reader.h"
#include "capture/writer.h"
#include "trace/decode.h"
#include "trace/pair.h"
#include "trace/statistics.h"
#include "trace/synthetic.h"

namespace {

using iket::capture::RingBlock;
using iket::trace::Decoder;
using iket::trace::Model;
using iket::trace::SyntheticGpu;

struct Story {
  explicit Story(int64_t events)
      : gpu(iket::trace::BusyGpu(static_cast<uint64_t>(events))), block(gpu.Read()) {
    // The records stay where they are as long as the story: nothing has to copy them.
    block.memory = std::shared_ptr<const void>(std::shared_ptr<const void>(), &gpu);
  }

  SyntheticGpu gpu;
  RingBlock block;
};

Model DecodeOnce(const Story& story) {
  Decoder decoder(story.gpu.facts());
  decoder.Add(story.block);
  return std::move(*decoder.Finish());
}

void CountEvents(benchmark::State& state, uint64_t events) {
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

void Copy(benchmark::State& state) {
  const Story story(state.range(0));
  uint64_t records = 0;
  for (const auto& row : story.block.rows) records += row.records.size();
  for (auto _ : state) {
    std::vector<iket::ring::Record> all;
    all.reserve(records);
    for (const auto& row : story.block.rows) {
      all.insert(all.end(), row.records.begin(), row.records.end());
    }
    benchmark::DoNotOptimize(all.data());
  }
  CountEvents(state, records);
}

void DecodeAndPair(benchmark::State& state) {
  const Story story(state.range(0));
  uint64_t events = 0;
  for (auto _ : state) {
    const Model model = DecodeOnce(story);
    events = model.events.size();
    benchmark::DoNotOptimize(model.ranges.size());
  }
  CountEvents(state, events);
}

// The same from a capture file: checksums and inflating come on top.
void ReadDecodeAndPair(benchmark::State& state) {
  Story story(state.range(0));
  const std::string path = std::filesystem::temp_directory_path() /
                           ("iket_postprocess_bench_" + std::to_string(getpid()));
  {
    auto writer = iket::capture::Writer::Create(path);
    if (!writer || !story.gpu.Write(*writer) || !writer->Finish()) {
      state.SkipWithError("no capture could be written");
      return;
    }
  }
  uint64_t events = 0;
  for (auto _ : state) {
    const auto reader = iket::capture::Reader::Open(path);
    const auto model = iket::trace::Decode(*reader);
    events = model->events.size();
    benchmark::DoNotOptimize(events);
  }
  std::filesystem::remove(path);
  CountEvents(state, events);
}

void Pair(benchmark::State& state) {
  const Story story(state.range(0));
  Model model = DecodeOnce(story);
  for (auto _ : state) iket::trace::PairRanges(model);
  CountEvents(state, model.events.size());
}

void Statistics(benchmark::State& state) {
  const Story story(state.range(0));
  const Model model = DecodeOnce(story);
  for (auto _ : state) benchmark::DoNotOptimize(iket::trace::Summarize(model).ranges.data());
  CountEvents(state, model.events.size());
}

// Many short warps: begin and end dominate.
void DecodeShortWarps(benchmark::State& state) {
  SyntheticGpu gpu({.sms = 132, .ring_bytes = 32768, .keep_log = false});
  const uint32_t kernel = gpu.AddKernel("short");
  const uint32_t mark = gpu.Declare(iket::capture::EventKind::kMark, "only");
  const auto warps = static_cast<uint32_t>(state.range(0));
  const uint32_t grid = gpu.Launch(kernel, {warps / 8, 1, 1}, {256, 1, 1});
  for (uint32_t i = 0; i < warps; ++i) {
    const uint32_t place = i % (132 * 32);
    const auto warp = gpu.Begin(grid, i / 8, i % 8, place / 32, place % 32);
    gpu.Pass(2);
    gpu.Event(warp, mark);
    gpu.Exit(warp);
  }
  const RingBlock block = gpu.Read();
  for (auto _ : state) {
    Decoder decoder(gpu.facts());
    decoder.Add(block);
    const auto model = decoder.Finish();
    benchmark::DoNotOptimize(model->warps.size());
  }
  state.counters["warps/s"] =
      benchmark::Counter(static_cast<double>(warps) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

BENCHMARK(Copy)->Arg(100'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(DecodeAndPair)
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->Arg(10'000'000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(ReadDecodeAndPair)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(Pair)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(Statistics)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(DecodeShortWarps)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
