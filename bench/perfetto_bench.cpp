// Writing a model as a Perfetto trace, without the disk. One core.
#include <benchmark/benchmark.h>

#include "export/edges.h"
#include "export/perfetto.h"
#include "export/synthetic_model.h"
#include "trace/decode.h"
#include "trace/synthetic.h"

namespace {

using iket::exporter::MakeSyntheticModel;

const iket::trace::Model& PersistentKernel() {
  static const auto* const model =
      new iket::trace::Model(MakeSyntheticModel({.launches = 1,
                                                 .ctas = 132,
                                                 .warps_per_cta = 12,
                                                 .events_per_warp = 1500,
                                                 .sms = 132,
                                                 .faults = false}));
  return *model;
}

const iket::trace::Model& ManyShortCtas() {
  static const auto* const model = new iket::trace::Model(MakeSyntheticModel({.launches = 4,
                                                                              .ctas = 8448,
                                                                              .warps_per_cta = 8,
                                                                              .events_per_warp = 6,
                                                                              .sms = 132,
                                                                              .faults = false}));
  return *model;
}

void WritePerfetto(benchmark::State& state, const iket::trace::Model& model) {
  uint64_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    auto written = iket::exporter::WritePerfetto(model, [&](std::string_view block) {
      bytes += block.size();
      return iket::Result<void>();
    });
    if (!written) state.SkipWithError(written.error().message.c_str());
  }
  const auto events = static_cast<double>(model.events.size() + 2 * model.warps.size());
  state.counters["events/s"] = benchmark::Counter(events * static_cast<double>(state.iterations()),
                                                  benchmark::Counter::kIsRate);
  state.counters["bytes/event"] = static_cast<double>(bytes) / events;
}

// The merge alone: the share of the above that is not encoding.
void MergeEdges(benchmark::State& state, const iket::trace::Model& model) {
  for (auto _ : state) {
    iket::exporter::EdgeStream stream(model, static_cast<size_t>(state.range(0)));
    std::vector<iket::exporter::Edge> window;
    while (stream.Next(window)) benchmark::DoNotOptimize(window.data());
  }
  const auto events = static_cast<double>(model.events.size() + 2 * model.warps.size());
  state.counters["events/s"] = benchmark::Counter(events * static_cast<double>(state.iterations()),
                                                  benchmark::Counter::kIsRate);
}

// All that `iket export` does between the ring records and the bytes of the .pftrace.
void RingsToPerfetto(benchmark::State& state) {
  auto gpu = iket::trace::BusyGpu(static_cast<uint64_t>(state.range(0)));
  const iket::capture::RingBlock block = gpu.Read();
  size_t events = 0;
  for (auto _ : state) {
    iket::trace::Decoder decoder(gpu.facts());
    decoder.Add(block);
    const auto model = decoder.Finish();
    if (!model) return state.SkipWithError(model.error().message.c_str());
    events = model->events.size() + 2 * model->warps.size();
    uint64_t bytes = 0;
    auto written = iket::exporter::WritePerfetto(*model, [&](std::string_view text) {
      bytes += text.size();
      return iket::Result<void>();
    });
    if (!written) return state.SkipWithError(written.error().message.c_str());
    benchmark::DoNotOptimize(bytes);
  }
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(WritePerfetto, persistent_kernel, PersistentKernel())
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(WritePerfetto, many_short_ctas, ManyShortCtas())->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(MergeEdges, persistent_kernel, PersistentKernel())
    ->Arg(16'000)
    ->Arg(50'000)
    ->Arg(200'000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(MergeEdges, many_short_ctas, ManyShortCtas())
    ->Arg(16'000)
    ->Arg(50'000)
    ->Arg(200'000)
    ->Unit(benchmark::kMillisecond);

BENCHMARK(RingsToPerfetto)->Arg(4'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
