#include "export/trace_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/content.h"
#include "export/edges.h"
#include "export/json_row.h"
#include "export/json_writer.h"
#include "export/trace_json_tables.h"
#include "trace/counters.h"
#include "trace/uncertainty.h"

namespace iket::exporter {
namespace {

constexpr size_t kFlushBytes = 1 << 20;
constexpr uint32_t kPopEvent = 31;
constexpr uint32_t kAutomaticColour = 0xffffffff;
constexpr int kStacked = 2, kOwnEnd = 1;

// A payload's type by run-iket's numbers, and which of the model's bits are its own: those of a
// narrow integer are widened there.
struct PayloadCode {
  int number = 0;
  uint64_t mask = ~uint64_t{0};
};

PayloadCode CodeOf(trace::PayloadType type) {
  switch (type) {
    case trace::PayloadType::kS32:
      return {5};
    case trace::PayloadType::kU32:
      return {6};
    case trace::PayloadType::kS64:
      return {7};
    case trace::PayloadType::kF32:
      return {13};
    case trace::PayloadType::kF64:
      return {14};
    case trace::PayloadType::kU64:
      return {16};
    case trace::PayloadType::kNone:
      break;
  }
  return {};
}

PayloadCode CodeOf(const trace::Declaration& declaration) {
  // Of an event that nobody declared the payload is its id.
  if (declaration.kind == trace::EventKind::kUnknown) return CodeOf(trace::PayloadType::kU32);
  using Declared = capture::PayloadType;
  switch (const auto declared = static_cast<Declared>(declaration.payload_declared)) {
    case Declared::kI8:
    case Declared::kU8:
      return {static_cast<int>(declared), 0xff};
    case Declared::kBool:  // as TVM declares it
      return {static_cast<int>(Declared::kU8), 0xff};
    case Declared::kI16:
    case Declared::kU16:
      return {static_cast<int>(declared), 0xffff};
    case Declared::kPointer:
      return {static_cast<int>(declared)};
    default:  // small floats are f32 in the model
      return CodeOf(declaration.payload);
  }
}

uint32_t Fnv1a(std::string_view text) {
  uint32_t hash = 0x811c9dc5;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x01000193;
  return hash;
}

// What rows say of a declaration, worked out once.
struct Said {
  PayloadCode payload;
  uint32_t event_id = 0;  // of the metadata, else from 1 on; 31 is what every pop is called
  uint32_t range_id = 0;
  uint32_t colour = kAutomaticColour;
  bool stacked = false;  // its end is a pop
};

std::vector<Said> SaidOf(const trace::Model& model) {
  std::vector<Said> all;
  for (uint32_t row = 0; row < model.declarations.size(); ++row) {
    const trace::Declaration& declaration = model.declarations[row];
    const uint32_t own_id = row + 1 < kPopEvent ? row + 1 : row + 2;
    const bool foreign = declaration.foreign_event != trace::kNoRow;
    all.push_back({.payload = CodeOf(declaration),
                   .event_id = foreign ? declaration.foreign_event : own_id,
                   .range_id = declaration.foreign_range != trace::kNoRow
                                   ? declaration.foreign_range
                                   : Fnv1a(model.NameOf(declaration)),
                   .colour = declaration.colour,
                   .stacked = declaration.kind == trace::EventKind::kPush});
  }
  return all;
}

class Writer {
 public:
  Writer(const trace::Model& model, const Sink& sink, const Progress& progress)
      : model_(model), sink_(sink), progress_(progress), tables_(model), said_(SaidOf(model)) {}

  Result<void> Write() {
    {
      auto all = json_.Object();
      WriteGraphLaunches();
      {
        auto launches = json_.Array("launches");
        for (const trace::Launch& launch : model_.launches) {
          if (!IsReplay(launch)) WriteLaunch(launch);
        }
      }
      WriteLocations();
      WriteMeta();
      auto strings = json_.Array("stringTable");
      for (const std::string_view text : tables_.strings()) json_.Value(text);
    }
    Flush();
    return status_;
  }

 private:
  void Flush() {
    const std::string text = json_.Take();
    if (status_ && !text.empty()) status_ = sink_(text);
  }
  // Ends the row at hand.
  void WriteRow() {
    json_.Written(row_.text());
    row_.Clear();
    if (json_.text().size() >= kFlushBytes) Flush();
  }

  const trace::SmClock& ClockOf(uint32_t warp) const {
    const trace::Launch& launch = model_.launches[model_.warps.launch[warp]];
    return model_.clocks[model_.devices[launch.device].first_clock + model_.warps.sm[warp]];
  }
  uint64_t TimeOf(const trace::SmClock& clock, uint64_t cycles) const {
    return GlobalNs(model_, clock.NsOf(cycles));
  }
  void PutPayload(const PayloadCode& code, uint64_t bits) {
    if (code.number == 0) return;
    row_ << R"("payloadType":)" << code.number << R"(,"payloadVal":)" << (bits & code.mask) << ",";
  }
  // What an event carries: its payload, then, in a key that is ours, its further values.
  void PutValues(uint32_t event) {
    const uint32_t declaration = model_.events.declaration[event];
    if (model_.HasPayload(event)) {
      PutPayload(said_[declaration].payload, model_.events.payload[event]);
    }
    if (model_.values.size() == 0) return;
    const std::vector<trace::Value>& declared = model_.declarations[declaration].more;
    const auto [first, last] = model_.values.Of(event);
    bool any = false;
    for (size_t i = first; i < last; ++i) {
      const uint8_t index = model_.values.index[i];
      if (index >= declared.size()) continue;  // the payload, again
      row_ << (any ? "," : R"("iketValues":[)") << R"({"nameIdx":)"
           << tables_.NameOfValue(declaration, index) << R"(,"payloadType":)"
           << CodeOf(declared[index].type).number << R"(,"payloadVal":)" << model_.values.value[i]
           << "}";
      any = true;
    }
    if (any) row_ << "],";
  }
  void WriteXyz(const char* key, const std::array<uint32_t, 3>& xyz) {
    auto object = json_.Object(key);
    json_.Member("x", xyz[0]);
    json_.Member("y", xyz[1]);
    json_.Member("z", xyz[2]);
  }

  // Launches of graphs stand apart, by graph and replay; where those are not known they stand among
  // the others.
  static bool IsReplay(const trace::Launch& launch) {
    return launch.graph != trace::kNoRow && launch.replay != trace::kNoRow;
  }
  void GroupReplays() {
    for (const trace::Launch& launch : model_.launches) {
      if (IsReplay(launch)) replays_[{launch.graph, launch.replay}].push_back(&launch);
    }
  }
  static std::string ReplayKey(const std::pair<uint32_t, uint32_t>& replay) {
    return fmt::format("graph_exec_{}:{}", replay.first, replay.second);
  }
  void WriteGraphLaunches() {
    GroupReplays();
    auto graphs = json_.Object("graphLaunches");
    for (const auto& [replay, members] : replays_) {
      auto launches = json_.Array(ReplayKey(replay));
      for (const trace::Launch* launch : members) WriteLaunch(*launch);
    }
  }
  // The node of each launch there; -1 not known.
  void WriteGraphNodes() {
    auto graphs = json_.Object("graphNodes");
    for (const auto& [replay, members] : replays_) {
      auto nodes = json_.Array(ReplayKey(replay));
      for (const trace::Launch* launch : members) {
        json_.Value(launch->node == trace::kNoRow ? -1 : int64_t{launch->node});
      }
    }
  }

  void WriteLaunch(const trace::Launch& launch) {
    auto object = json_.Object();
    json_.Member("blockDimX", launch.block[0]);
    json_.Member("blockDimY", launch.block[1]);
    json_.Member("blockDimZ", launch.block[2]);
    json_.Member("contextId", launch.context + 1);
    WriteXyz("enabledCluster", launch.only_cluster.value_or(std::array<uint32_t, 3>{1, 1, 1}));
    json_.Member("gridDimX", launch.grid[0]);
    json_.Member("gridDimY", launch.grid[1]);
    json_.Member("gridDimZ", launch.grid[2]);
    json_.Member("gridId", launch.grid_id);
    json_.Member("kernelName", launch.kernel == trace::kNoRow
                                   ? std::string("unknown kernel")
                                   : model_.String(model_.kernels[launch.kernel].mangled));
    const std::span<const uint32_t> warps = tables_.WarpsOf(launch);
    {
      auto markers = json_.Array("markers");
      for (const uint32_t warp : warps) WriteMarkers(warp);
    }
    {
      auto ranges = json_.Array("ranges");
      for (const uint32_t warp : warps) {
        if (!status_) break;
        const uint32_t first = model_.warps.first_range[warp];
        for (uint32_t row = first; row < first + model_.warps.range_count[warp]; ++row) {
          if (IsClosed(row)) WriteRange(warp, row);
        }
        if (progress_) progress_(++warps_written_, model_.warps.size());
      }
    }
    json_.Member("singleClusterActive", launch.only_cluster ? 1 : 0);
    auto lifetimes = json_.Array("warpLifetimes");
    for (const uint32_t warp : warps) {
      const trace::SmClock& clock = ClockOf(warp);
      row_ << R"({"endTs":)" << TimeOf(clock, model_.warps.end_cycles[warp]) << R"(,"locIdx":)"
           << tables_.LocationOf(warp) << R"(,"startTs":)"
           << TimeOf(clock, model_.warps.begin_cycles[warp]) << "}";
      WriteRow();
    }
  }

  void WriteMarkers(uint32_t warp) {
    const trace::SmClock& clock = ClockOf(warp);
    const uint32_t first = model_.warps.first_mark[warp];
    for (uint32_t mark = first; mark < first + model_.warps.mark_count[warp]; ++mark) {
      const uint32_t event = model_.marks.event[mark];
      const uint32_t declaration = model_.events.declaration[event];
      row_ << R"({"color":)" << said_[declaration].colour << R"(,"locIdx":)"
           << tables_.LocationOf(warp) << R"(,"markerNameIdx":)" << tables_.NameOf(declaration)
           << ",";
      PutValues(event);
      row_ << R"("timestamp":)" << TimeOf(clock, model_.events.cycles[event]) << "}";
      WriteRow();
    }
  }

  bool IsClosed(uint32_t range) const { return model_.ranges.end_event[range] != trace::kNoRow; }

  void PutInternalEvent(uint32_t event, uint32_t id, uint64_t ns) {
    row_ << R"({"eventId":)" << id << ",";
    PutValues(event);
    row_ << R"("timestamp":)" << ns << "}";
  }
  // One that was never closed has one event.
  void WriteRange(uint32_t warp, uint32_t row) {
    const trace::Ranges& ranges = model_.ranges;
    const trace::SmClock& clock = ClockOf(warp);
    const uint32_t declaration = ranges.declaration[row];
    const Said& said = said_[declaration];
    const uint64_t begin = TimeOf(clock, ranges.begin_cycles[row]);
    const uint64_t end = TimeOf(clock, ranges.end_cycles[row]);
    row_ << R"({"endTs":)" << end << R"(,"internalEvents":[)";
    PutInternalEvent(ranges.begin_event[row], said.event_id, begin);
    if (IsClosed(row)) {
      row_ << ",";
      PutInternalEvent(ranges.end_event[row], said.stacked ? kPopEvent : said.event_id, end);
    }
    const uint32_t location = tables_.LocationOf(warp);
    row_ << R"(],"rangeColor":)" << said.colour << R"(,"rangeId":)" << said.range_id
         << R"(,"rangeNameIdx":)" << tables_.NameOf(declaration)
         << R"(,"rangeScope":0,"rangeType":)" << (said.stacked ? kStacked : kOwnEnd)
         << R"(,"startTs":)" << begin << R"(,"warpLocIdxs":[)" << location << "," << location
         << "]}";
    WriteRow();
  }

  void WriteLocations() {
    auto locations = json_.Array("locationTable");
    const trace::Warps& warps = model_.warps;
    for (const uint32_t warp : tables_.locations()) {
      const trace::Device& device = model_.devices[model_.launches[warps.launch[warp]].device];
      const uint32_t sm = warps.sm[warp];
      const trace::SmPlace place = sm < device.places.size() ? device.places[sm] : trace::SmPlace{};
      row_ << R"({"ctaId":[)" << warps.cta_x[warp] << "," << warps.cta_y[warp] << ","
           << warps.cta_z[warp] << R"(],"gpcId":)" << place.gpc << R"(,"smId":)" << sm
           << R"(,"tpcId":)" << place.tpc << R"(,"warpId":)"
           << (warps.index[warp] == trace::kNoRow ? -1 : int64_t{warps.index[warp]}) << "}";
      WriteRow();
    }
  }

  // Readers of run-iket's files take each range for one with two ends.
  void WriteUnclosedRanges() {
    auto ranges = json_.Array("unclosedRanges");
    for (const trace::Launch& launch : model_.launches) {
      for (const uint32_t warp : tables_.WarpsOf(launch)) {
        if (!status_) return;
        const uint32_t first = model_.warps.first_range[warp];
        for (uint32_t row = first; row < first + model_.warps.range_count[warp]; ++row) {
          if (!IsClosed(row)) WriteRange(warp, row);
        }
      }
    }
  }

  // In ns. What is not known is not there.
  void WriteUncertainty() {
    const trace::Uncertainty uncertainty = trace::UncertaintyOf(model_);
    auto object = json_.Object("uncertainty");
    if (uncertainty.timer_step_ns) {
      json_.Member("timer_step_ns", *uncertainty.timer_step_ns);
    } else {
      json_.Member("cycle_ns", uncertainty.cycle_ns);
      json_.Member("gpu_max_ns", uncertainty.gpu_max_ns);
      json_.Member("gpu_rms_ns", uncertainty.gpu_rms_ns);
    }
    if (uncertainty.host_ns) json_.Member("host_ns", *uncertainty.host_ns);
    json_.Member("sentence", uncertainty.Sentence());
  }

  void WriteMeta() {
    auto meta = json_.Object("meta");
    {
      auto iket = json_.Object("iket");
      {
        auto devices = json_.Array("devices");
        for (const trace::Device& device : model_.devices) json_.Value(model_.String(device.name));
      }
      // Of a software device: times are a model's, nothing here is a measurement.
      json_.Member("simulated", std::ranges::any_of(model_.devices, &trace::Device::simulated));
      json_.Member("processId", model_.process_id);
      json_.Member("command", model_.String(model_.command));
      if (model_.filter != 0) json_.Member("filter", model_.String(model_.filter));
      json_.Member("damage", model_.String(model_.damage));
      WriteUncertainty();
      WriteGraphNodes();
      {
        auto counters = json_.Object("counters");
        for (const trace::CounterInfo& counter : trace::AllCounters()) {
          json_.Member(counter.name, model_.counters.*counter.member);
        }
      }
      {
        auto edges = json_.Array("edges");  // what depends on what by design
        for (const trace::DeclaredEdge& edge : model_.edges) {
          auto entry = json_.Object();
          json_.Member("dag", model_.String(edge.dag));
          json_.Member("source", model_.String(edge.from));
          json_.Member("target", model_.String(edge.to));
          json_.Member("label", model_.String(edge.label));
          json_.Member("via", model_.String(edge.via));
        }
      }
      WriteUnclosedRanges();
    }
    json_.Member("version", 1);
  }

  const trace::Model& model_;
  const Sink& sink_;
  const Progress& progress_;
  const TraceJsonTables tables_;
  const std::vector<Said> said_;  // by declaration
  JsonWriter json_;
  JsonRow row_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const trace::Launch*>> replays_;
  uint64_t warps_written_ = 0;
  Result<void> status_;
};

}  // namespace

Result<void> WriteTraceJson(const trace::Model& model, const Sink& sink, const Progress& progress) {
  return Writer(model, sink, progress).Write();
}

}  // namespace iket::exporter
