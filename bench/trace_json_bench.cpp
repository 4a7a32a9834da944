// rooms: export. Writing a model as .trace.json, without the disk. One core.
#include <benchmark/benchmark.h>

#include "export/synthetic_model.h"
#include "export/trace_json.h"

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

void WriteTraceJson(benchmark::State& state, const iket::trace::Model& model) {
  uint64_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    auto written = iket::exporter::WriteTraceJson(model, [&](std::string_view block) {
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

BENCHMARK_CAPTURE(WriteTraceJson, persistent, PersistentKernel())->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(WriteTraceJson, short_ctas, ManyShortCtas())->Unit(benchmark::kMillisecond);

}  // namespace
