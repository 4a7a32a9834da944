// dump_model: writes a model in every format, and as plain JSON, for perfetto_test.py and others.
//
//   dump_model synthetic SEED LAUNCHES CTAS EVENTS_PER_WARP EDGES_PER_WINDOW OUT
//
//   dump_model capture FILE EDGES_PER_WINDOW OUT
//   dump_model noisy SEED EDGES_PER_WINDOW OUT          rings with random words in them
//   dump_model edges SEED LAUNCHES CTAS EVENTS_PER_WARP EDGES_PER_WINDOW OUT
//                                                       synthetic, with declared dependencies
//   dump_model simulated SEED LAUNCHES CTAS EVENTS_PER_WARP EDGES_PER_WINDOW OUT
//                                                       synthetic, of a software device
//
// makes OUT.pftrace with windows of that many edges, OUT.<format> for all other formats, and
// OUT.json. The last is what the model says, with as little thought as
// possible: nothing of it comes from the code that the test is about.
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "capture/reader.h"
#include "export/dag_json.h"
#include "export/formats.h"
#include "export/json_writer.h"
#include "export/output_file.h"
#include "export/perfetto.h"
#include "export/synthetic_model.h"
#include "trace/decode.h"
#include "trace/synthetic.h"

namespace {

using iket::Result;
using iket::exporter::JsonWriter;
using iket::exporter::OutputFile;
namespace trace = iket::trace;

uint64_t Ns(const trace::Model& model, double ns) {
  return model.origin_ns + static_cast<uint64_t>(static_cast<int64_t>(ns));
}

void WriteValue(JsonWriter& json, const char* key, trace::PayloadType type, uint64_t payload) {
  const auto low = static_cast<uint32_t>(payload);
  switch (type) {
    case trace::PayloadType::kNone:
      return json.Member(key, nullptr);
    case trace::PayloadType::kU32:
      return json.Member(key, low);
    case trace::PayloadType::kS32:
      return json.Member(key, static_cast<int32_t>(low));
    case trace::PayloadType::kF32:
      return json.Member(key, static_cast<double>(std::bit_cast<float>(low)));
    case trace::PayloadType::kU64:
      return json.Member(key, payload);
    case trace::PayloadType::kS64:
      return json.Member(key, static_cast<int64_t>(payload));
    case trace::PayloadType::kF64:
      return json.Member(key, std::bit_cast<double>(payload));
  }
}

// Rows of Model::values by event. Of the one model that this program dumps.
const std::multimap<uint32_t, size_t>& ValueRows(const trace::Model& model) {
  static const std::multimap<uint32_t, size_t> kRows = [&] {
    std::multimap<uint32_t, size_t> made;
    for (size_t i = 0; i < model.values.size(); ++i) made.emplace(model.values.event[i], i);
    return made;
  }();
  return kRows;
}

// The payload, and what else the event carries as [name, value], in the order of declaration.
void WritePayload(JsonWriter& json, const char* key, const trace::Model& model, uint32_t event) {
  const trace::Declaration& declaration = model.declarations[model.events.declaration[event]];
  const bool unknown = declaration.kind == trace::EventKind::kUnknown;
  WriteValue(json, key, unknown ? trace::PayloadType::kU64 : declaration.payload,
             model.events.payload[event]);
  json.Member(std::string(key) + "_name", model.String(declaration.payload_name));
  auto array = json.Array(std::string(key) + "_more");
  const auto [first, last] = ValueRows(model).equal_range(event);
  for (auto row = first; row != last; ++row) {
    const size_t i = row->second;
    if (model.values.index[i] == trace::Values::kPayload) continue;
    const trace::Value& value = declaration.more[model.values.index[i]];
    auto object = json.Object();
    json.Member("index", model.values.index[i]);
    json.Member("name", model.String(value.name));
    WriteValue(json, "value", value.type, model.values.value[i]);
  }
}

void WriteRow(JsonWriter& json, const trace::Model& model, const trace::Declaration& declaration) {
  json.Member("group", model.String(declaration.group));
  json.Member("lane", model.String(declaration.lane));
}

void WriteWarp(JsonWriter& json, const trace::Model& model, uint32_t warp) {
  const trace::Warps& warps = model.warps;
  auto object = json.Object();
  json.Member("launch", warps.launch[warp]);
  json.Member("sm", warps.sm[warp]);
  json.Member("slot", warps.slot[warp]);
  json.Member("cta",
              fmt::format("({}, {}, {})", warps.cta_x[warp], warps.cta_y[warp], warps.cta_z[warp]));
  json.Member("orphan", (warps.flags[warp] & trace::kWarpOrphan) != 0);
  json.Member("flags", warps.flags[warp]);
  json.Key("index");
  if (warps.index[warp] == trace::kNoRow) {
    json.Value(nullptr);
  } else {
    json.Value(warps.index[warp]);
  }
  json.Member("begin", Ns(model, warps.begin_ns[warp]));
  json.Member("end", Ns(model, warps.end_ns[warp]));
  json.Member("cycles", warps.end_cycles[warp] - warps.begin_cycles[warp]);
}

// "kernel.cu:12", or "".
void WriteSource(JsonWriter& json, const trace::Model& model,
                 const trace::Declaration& declaration) {
  json.Member("source", declaration.line == 0 ? ""
                                              : model.String(declaration.file) + ":" +
                                                    std::to_string(declaration.line));
}

void WriteRange(JsonWriter& json, const trace::Model& model, uint32_t range) {
  const trace::Ranges& ranges = model.ranges;
  const uint32_t warp = ranges.warp[range];
  auto object = json.Object();
  json.Member("warp", warp);
  json.Member("name", model.DeclarationName(ranges.declaration[range]));
  json.Member("begin", Ns(model, model.NsOfWarp(warp, ranges.begin_cycles[range])));
  json.Member("end", Ns(model, model.NsOfWarp(warp, ranges.end_cycles[range])));
  json.Member("begin_cycles", ranges.begin_cycles[range]);
  json.Member("end_cycles", ranges.end_cycles[range]);
  json.Member("depth", ranges.depth[range]);
  json.Member("crossed", (ranges.flags[range] & trace::kRangeCrossed) != 0);
  json.Member("token", (ranges.flags[range] & trace::kRangeToken) != 0);
  json.Member("unclosed", ranges.end_event[range] == trace::kNoRow);
  WriteSource(json, model, model.declarations[ranges.declaration[range]]);
  WriteRow(json, model, model.declarations[ranges.declaration[range]]);
  WritePayload(json, "payload", model, ranges.begin_event[range]);
  if (ranges.end_event[range] != trace::kNoRow) {
    WritePayload(json, "end_payload", model, ranges.end_event[range]);
  }
}

void WriteInstant(JsonWriter& json, const trace::Model& model, uint32_t event, bool unmatched) {
  const trace::Declaration& declaration = model.declarations[model.events.declaration[event]];
  const uint32_t warp = model.events.warp[event];
  auto object = json.Object();
  json.Member("warp", warp);
  json.Member("name", model.NameOf(declaration));
  json.Member("unknown", declaration.kind == trace::EventKind::kUnknown);
  json.Member("event", event);
  json.Member("unmatched", unmatched);
  json.Member("ns", Ns(model, model.NsOfWarp(warp, model.events.cycles[event])));
  json.Member("cycles", model.events.cycles[event]);
  WriteSource(json, model, declaration);
  WriteRow(json, model, declaration);
  WritePayload(json, "payload", model, event);
}

void WriteLaunch(JsonWriter& json, const trace::Model& model, const trace::Launch& launch) {
  auto object = json.Object();
  json.Key("sequence");
  if (launch.sequence == trace::kNoRow) {
    json.Value(nullptr);
  } else {
    json.Value(launch.sequence);
  }
  json.Member("nobodys", launch.IsNobodys());
  json.Member("warps", launch.warp_count);
  json.Member("context", launch.context);
  json.Member("grid_id", launch.grid_id);
  json.Key("kernel");
  if (launch.kernel == trace::kNoRow) {
    json.Value(nullptr);
  } else {
    json.Value(model.String(model.kernels[launch.kernel].short_name));
  }
  for (const auto& [key, size] :
       {std::pair("grid", launch.grid), std::pair("block", launch.block)}) {
    auto array = json.Array(key);
    for (uint32_t n : size) json.Value(n);
  }
  json.Member("begin", Ns(model, launch.first_ns));
  json.Member("end", Ns(model, launch.last_ns));
  json.Member("complete", launch.completeness == trace::Completeness::kComplete);
  {
    auto places = json.Array("places");
    for (const auto& place : model.devices[launch.device].places) {
      auto pair = json.Array();
      json.Value(place.gpc);
      json.Value(place.tpc);
    }
  }
}

std::string Dump(const trace::Model& model) {
  JsonWriter json;
  {
    auto object = json.Object();
    json.Member("simulated", model.devices[0].simulated);
    {
      auto array = json.Array("launches");
      for (const auto& launch : model.launches) WriteLaunch(json, model, launch);
    }
    {
      auto array = json.Array("warps");
      for (uint32_t i = 0; i < model.warps.size(); ++i) WriteWarp(json, model, i);
    }
    {
      auto array = json.Array("ranges");
      for (uint32_t i = 0; i < model.ranges.size(); ++i) WriteRange(json, model, i);
    }
    {
      auto array = json.Array("instants");
      for (uint32_t event : model.marks.event) WriteInstant(json, model, event, false);
      for (uint32_t event : model.unmatched_ends) WriteInstant(json, model, event, true);
    }
    {
      auto array = json.Array("flows");
      for (size_t i = 0; i < model.flows.size(); ++i) {
        auto flow = json.Object();
        json.Member("from", model.flows.from[i]);
        json.Member("to", model.flows.to[i]);
      }
    }
    {
      auto array = json.Array("edges");
      for (const trace::DeclaredEdge& edge : model.edges) {
        auto entry = json.Object();
        json.Member("dag", model.String(edge.dag));
        json.Member("from", model.String(edge.from));
        json.Member("to", model.String(edge.to));
        json.Member("label", model.String(edge.label));
        json.Member("via", model.String(edge.via));
      }
    }
    {
      auto array = json.Array("faults");
      for (const trace::CounterInfo& info : trace::AllCounters()) {
        const uint64_t value = model.counters.*info.member;
        if (info.fault && value != 0) json.Value(fmt::format("{} {}", value, info.meaning));
      }
    }
  }
  return json.Take();
}

Result<void> WriteAll(const trace::Model& model, const std::string& out, size_t window) {
  auto pftrace = OutputFile::Create(out + ".pftrace");
  if (!pftrace) return tl::unexpected(pftrace.error());
  auto written = iket::exporter::WritePerfetto(
      model, [&](std::string_view block) { return pftrace->Write(block); },
      {.edges_per_window = window});
  if (!written) return written;
  if (auto committed = pftrace->Commit(); !committed) return committed;
  for (const std::string& format : iket::exporter::FormatNames()) {
    if (format == "pftrace") continue;
    auto file = OutputFile::Create(out + "." + format);
    if (!file) return tl::unexpected(file.error());
    const auto sink = [&](std::string_view block) { return file->Write(block); };
    if (auto other = iket::exporter::WriteAs(format, model, sink); !other) return other;
    if (auto committed = file->Commit(); !committed) return committed;
  }
  auto json = OutputFile::Create(out + ".json");
  if (!json) return tl::unexpected(json.error());
  if (auto dumped = json->Write(Dump(model)); !dumped) return dumped;
  return json->Commit();
}

uint32_t Number(const char* text) { return static_cast<uint32_t>(std::strtoul(text, nullptr, 10)); }

// What a full GPU recorded, with every hundredth record hit by a random word or a random record.
Result<trace::Model> NoisyModel(uint32_t seed) {
  std::mt19937 random(seed);
  trace::SyntheticGpu gpu = trace::BusyGpu(20'000, 4, 4);
  for (uint32_t ring = 0; ring < gpu.ring_count(); ++ring) {
    auto& records = gpu.Memory(ring);
    for (auto& record : records) {
      if (random() % 100 != 0) continue;
      switch (random() % 4) {
        case 0:
          record.clock = static_cast<uint32_t>(random());
          break;
        case 1:
          record.tag = static_cast<uint32_t>(random());
          break;
        case 2:
          record.high ^= static_cast<uint32_t>(random());
          break;
        default:
          record = records[random() % records.size()];
      }
    }
  }
  trace::Decoder decoder(gpu.facts());
  decoder.Add(gpu.Read());
  return decoder.Finish();
}

Result<trace::Model> ModelOf(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  if (kind == "capture" && argc == 5) {
    const auto reader = iket::capture::Reader::Open(argv[2]);
    if (!reader) return tl::unexpected(reader.error());
    return trace::Decode(*reader);
  }
  if (kind == "noisy" && argc == 5) return NoisyModel(Number(argv[2]));
  if ((kind == "synthetic" || kind == "simulated" || kind == "edges") && argc == 8) {
    trace::Model model = iket::exporter::MakeSyntheticModel({.seed = Number(argv[2]),
                                                             .launches = Number(argv[3]),
                                                             .ctas = Number(argv[4]),
                                                             .events_per_warp = Number(argv[5])});
    model.devices[0].simulated = kind == "simulated";
    if (kind == "edges") {  // of payloads of one type
      const auto added = iket::exporter::AddDag(
          R"({"name": "d", "edges": [{"source": "load", "target": "tile", "label": "l"},
              {"source": "tile", "target": "stage", "via": "v"},
              {"source": "mark1", "target": "load"}, {"source": "tile", "target": "mark0"},
              {"source": "load", "target": "load"}, {"source": "load", "target": "nobody"}]})",
          "edges", model);
      if (!added) return tl::unexpected(added.error());
    }
    return model;
  }
  return iket::Fail(iket::ErrorKind::kUsage, "see the head of the source");
}

}  // namespace

int main(int argc, char** argv) {
  const Result<trace::Model> model = ModelOf(argc, argv);
  Result<void> written;
  if (model) {
    written = WriteAll(*model, argv[argc - 1], Number(argv[argc - 2]));
  } else {
    written = tl::unexpected(model.error());
  }
  if (!written) std::fprintf(stderr, "dump_model: %s\n", written.error().message.c_str());
  return written ? 0 : 1;
}
