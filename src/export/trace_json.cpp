#include "export/trace_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/edges.h"
#include "export/json_writer.h"
#include "trace/counters.h"

namespace iket::exporter {
namespace {

constexpr size_t kFlushBytes = 1 << 20;
constexpr uint32_t kPopEvent = 31;
constexpr uint32_t kAutomaticColour = 0xffffffff;
constexpr int kStacked = 2, kOwnEnd = 1;

// run-iket's numbers for the types of payloads.
int PayloadCode(trace::PayloadType type) {
  switch (type) {
    case trace::PayloadType::kS32:
      return 5;
    case trace::PayloadType::kU32:
      return 6;
    case trace::PayloadType::kS64:
      return 7;
    case trace::PayloadType::kF32:
      return 13;
    case trace::PayloadType::kF64:
      return 14;
    case trace::PayloadType::kU64:
      return 16;
    case trace::PayloadType::kNone:
      break;
  }
  return 0;
}

uint32_t Fnv1a(std::string_view text) {
  uint32_t hash = 0x811c9dc5;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x01000193;
  return hash;
}

// From 1 on; 31 is what every pop is called.
uint32_t EventId(uint32_t declaration) {
  return declaration + 1 < kPopEvent ? declaration + 1 : declaration + 2;
}

class Writer {
 public:
  Writer(const trace::Model& model, const Sink& sink, const Progress& progress)
      : model_(model), sink_(sink), progress_(progress) {}

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
      for (const trace::Declaration& declaration : model_.declarations) {
        const bool known = declaration.kind != trace::EventKind::kUnknown;
        json_.Value(known ? model_.NameOf(declaration) : "unknown event");
      }
    }
    Flush();
    return status_;
  }

 private:
  void Flush() {
    const std::string text = json_.Take();
    if (status_ && !text.empty()) status_ = sink_(text);
  }
  void FlushIfLarge() {
    if (json_.text().size() >= kFlushBytes) Flush();
  }

  uint64_t TimeOf(uint32_t warp, uint64_t cycles) const {
    return GlobalNs(model_, model_.NsOfWarp(warp, cycles));
  }
  static uint32_t ColourOf(const trace::Declaration& declaration) {
    return declaration.colour == trace::kNoRow ? kAutomaticColour : declaration.colour;
  }
  void WritePayload(trace::PayloadType type, uint64_t bits) {
    if (type == trace::PayloadType::kNone) return;
    json_.Member("payloadType", PayloadCode(type));
    json_.Member("payloadVal", bits);
  }
  void WriteXyz(const char* key, uint32_t x, uint32_t y, uint32_t z) {
    auto object = json_.Object(key);
    json_.Member("x", x);
    json_.Member("y", y);
    json_.Member("z", z);
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
    WriteXyz("enabledCluster", 1, 1, 1);
    json_.Member("gridDimX", launch.grid[0]);
    json_.Member("gridDimY", launch.grid[1]);
    json_.Member("gridDimZ", launch.grid[2]);
    json_.Member("gridId", launch.grid_id);
    json_.Member("kernelName", launch.kernel == trace::kNoRow
                                   ? std::string("unknown kernel")
                                   : model_.String(model_.kernels[launch.kernel].mangled));
    const uint32_t end = launch.first_warp + launch.warp_count;
    {
      auto markers = json_.Array("markers");
      for (uint32_t warp = launch.first_warp; warp < end; ++warp) WriteMarkers(warp);
    }
    {
      auto ranges = json_.Array("ranges");
      for (uint32_t warp = launch.first_warp; warp < end && status_; ++warp) WriteRanges(warp);
    }
    json_.Member("singleClusterActive", 0);
    auto lifetimes = json_.Array("warpLifetimes");
    for (uint32_t warp = launch.first_warp; warp < end; ++warp) {
      auto lifetime = json_.Object();
      json_.Member("endTs", TimeOf(warp, model_.warps.end_cycles[warp]));
      json_.Member("locIdx", warp);
      json_.Member("startTs", TimeOf(warp, model_.warps.begin_cycles[warp]));
      FlushIfLarge();
    }
  }

  void WriteMarkers(uint32_t warp) {
    const uint32_t first = model_.warps.first_mark[warp];
    for (uint32_t mark = first; mark < first + model_.warps.mark_count[warp]; ++mark) {
      const uint32_t event = model_.marks.event[mark];
      const uint32_t row = model_.events.declaration[event];
      const trace::Declaration& declaration = model_.declarations[row];
      auto marker = json_.Object();
      json_.Member("color", ColourOf(declaration));
      json_.Member("locIdx", warp);
      json_.Member("markerNameIdx", row);
      // Of an event that nobody declared the payload is its id.
      WritePayload(declaration.kind == trace::EventKind::kUnknown ? trace::PayloadType::kU32
                                                                  : declaration.payload,
                   model_.events.payload[event]);
      json_.Member("timestamp", TimeOf(warp, model_.events.cycles[event]));
      FlushIfLarge();
    }
  }

  void WriteInternalEvent(uint32_t warp, uint32_t event, uint32_t id) {
    const trace::Declaration& declaration = model_.declarations[model_.events.declaration[event]];
    auto object = json_.Object();
    json_.Member("eventId", id);
    if (model_.HasPayload(event)) {
      WritePayload(declaration.payload, model_.events.payload[event]);
    }
    json_.Member("timestamp", TimeOf(warp, model_.events.cycles[event]));
  }
  void WriteRanges(uint32_t warp) {
    const trace::Ranges& ranges = model_.ranges;
    const uint32_t first = model_.warps.first_range[warp];
    for (uint32_t row = first; row < first + model_.warps.range_count[warp]; ++row) {
      const uint32_t declaration = ranges.declaration[row];
      const trace::Declaration& opened = model_.declarations[declaration];
      const bool stacked = opened.kind == trace::EventKind::kPush;
      const uint32_t id = EventId(declaration);
      auto range = json_.Object();
      json_.Member("endTs", TimeOf(warp, ranges.end_cycles[row]));
      {
        auto events = json_.Array("internalEvents");
        WriteInternalEvent(warp, ranges.begin_event[row], id);
        if (ranges.end_event[row] != trace::kNoRow) {
          WriteInternalEvent(warp, ranges.end_event[row], stacked ? kPopEvent : id);
        }
      }
      json_.Member("rangeColor", ColourOf(opened));
      json_.Member("rangeId", Fnv1a(model_.NameOf(opened)));
      json_.Member("rangeNameIdx", declaration);
      json_.Member("rangeScope", 0);
      json_.Member("rangeType", stacked ? kStacked : kOwnEnd);
      json_.Member("startTs", TimeOf(warp, ranges.begin_cycles[row]));
      {
        auto places = json_.Array("warpLocIdxs");
        json_.Value(warp);
        json_.Value(warp);
      }
      FlushIfLarge();
    }
    if (progress_) progress_(++warps_written_, model_.warps.size());
  }

  void WriteLocations() {
    auto locations = json_.Array("locationTable");
    const trace::Warps& warps = model_.warps;
    for (uint32_t warp = 0; warp < warps.size(); ++warp) {
      const trace::Device& device = model_.devices[model_.launches[warps.launch[warp]].device];
      const uint32_t sm = warps.sm[warp];
      const trace::SmPlace place = sm < device.places.size() ? device.places[sm] : trace::SmPlace{};
      auto location = json_.Object();
      {
        auto cta = json_.Array("ctaId");
        json_.Value(warps.cta_x[warp]);
        json_.Value(warps.cta_y[warp]);
        json_.Value(warps.cta_z[warp]);
      }
      json_.Member("gpcId", place.gpc);
      json_.Member("smId", sm);
      json_.Member("tpcId", place.tpc);
      json_.Member("warpId", warps.index[warp] == trace::kNoRow ? -1 : int64_t{warps.index[warp]});
      FlushIfLarge();
    }
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
      json_.Member("damage", model_.String(model_.damage));
      WriteGraphNodes();
      auto counters = json_.Object("counters");
      for (const trace::CounterInfo& counter : trace::AllCounters()) {
        json_.Member(counter.name, model_.counters.*counter.member);
      }
    }
    json_.Member("version", 1);
  }

  const trace::Model& model_;
  const Sink& sink_;
  const Progress& progress_;
  JsonWriter json_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const trace::Launch*>> replays_;
  uint64_t warps_written_ = 0;
  Result<void> status_;
};

}  // namespace

Result<void> WriteTraceJson(const trace::Model& model, const Sink& sink, const Progress& progress) {
  return Writer(model, sink, progress).Write();
}

}  // namespace iket::exporter
