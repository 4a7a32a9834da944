#include "export/launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "export/dag_json.h"
#include "export/edges.h"
#include "export/perfetto_fields.h"
#include "export/tracks.h"
#include "trace/counters.h"
#include "trace/uncertainty.h"

namespace iket::exporter {
namespace {

using namespace perfetto;  // NOLINT(google-build-using-namespace): a table of field numbers

void WriteAttribute(ProtoWriter& writer, std::string_view key, uint64_t value) {
  auto attribute = writer.Message(TraceAttributes::kAttribute);
  writer.Text(TraceAttribute::kKey, key);
  writer.Varint(TraceAttribute::kLongValue, value);
}

void WriteAttribute(ProtoWriter& writer, std::string_view key, std::string_view value) {
  auto attribute = writer.Message(TraceAttributes::kAttribute);
  writer.Text(TraceAttribute::kKey, key);
  writer.Text(TraceAttribute::kStringValue, value);
}

void WriteDim(ProtoWriter& writer, uint32_t field, const std::array<uint32_t, 3>& size) {
  auto dim = writer.Message(field);
  writer.Varint(Dim3::kX, size[0]);
  writer.Varint(Dim3::kY, size[1]);
  writer.Varint(Dim3::kZ, size[2]);
}

template <typename Write>
void WriteArg(ProtoWriter& writer, std::string_view name, Write write) {
  auto arg = writer.Message(ComputeKernelLaunch::kArgs);
  writer.Text(ComputeArg::kName, name);
  write();
}

constexpr uint32_t kStageIid = 1;
constexpr uint32_t kFirstQueueIid = 2;

void WriteSpecification(ProtoWriter& writer, uint32_t iid, std::string_view name,
                        uint32_t category) {
  auto entry = writer.Message(InternedData::kGpuSpecifications);
  writer.Varint(InternedGpuSpecification::kIid, iid);
  writer.Text(InternedGpuSpecification::kName, name);
  if (category != 0) writer.Varint(InternedGpuSpecification::kCategory, category);
}

// Contexts count from 0, interning ids from 1.
uint64_t ContextIid(uint32_t context) { return uint64_t{context} + 1; }

void WriteInternedState(const trace::Model& model, const Queues& queues, ProtoWriter& writer) {
  auto interned = writer.Message(TracePacket::kInternedData);
  std::vector<uint32_t> contexts;
  for (const trace::Launch& launch : model.launches) contexts.push_back(launch.context);
  std::sort(contexts.begin(), contexts.end());
  contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
  for (uint32_t context : contexts) {
    auto entry = writer.Message(InternedData::kGraphicsContexts);
    writer.Varint(InternedGraphicsContext::kIid, ContextIid(context));
    writer.Varint(InternedGraphicsContext::kPid, model.process_id);
    writer.Varint(InternedGraphicsContext::kApi, InternedGraphicsContext::kCuda);
  }
  WriteSpecification(writer, kStageIid, "Kernel", InternedGpuSpecification::kCompute);
  for (size_t i = 0; i < queues.names.size(); ++i) {
    WriteSpecification(writer, static_cast<uint32_t>(kFirstQueueIid + i), queues.names[i], 0);
  }
  for (size_t i = 0; i < model.kernels.size(); ++i) {
    const trace::Kernel& kernel = model.kernels[i];
    auto entry = writer.Message(InternedData::kComputeKernels);
    writer.Varint(InternedComputeKernel::kIid, i + 1);
    writer.Text(InternedComputeKernel::kName, model.String(kernel.mangled));
    writer.Text(InternedComputeKernel::kDemangledName, model.String(kernel.demangled));
  }
}

void WriteRenderStage(const trace::Model& model, const trace::Launch& launch, uint64_t event_id,
                      uint32_t queue_iid, ProtoWriter& writer) {
  using Event = GpuRenderStageEvent;
  const uint64_t begin = GlobalNs(model, launch.first_ns);
  const uint64_t end = std::max(begin, GlobalNs(model, launch.last_ns));
  const bool known = launch.kernel != trace::kNoRow;
  writer.Varint(TracePacket::kTimestamp, begin);
  auto event = writer.Message(TracePacket::kGpuRenderStageEvent);
  writer.Varint(Event::kEventId, event_id);
  writer.Varint(Event::kDuration, end - begin);
  writer.Varint(Event::kContext, ContextIid(launch.context));
  writer.Varint(Event::kGpuId, launch.device);
  writer.Varint(Event::kHwQueueIid, queue_iid);
  writer.Varint(Event::kStageIid, kStageIid);
  writer.Text(Event::kName,
              known ? model.String(model.kernels[launch.kernel].short_name) : "unknown kernel");
  if (known) writer.Varint(Event::kKernelIid, uint64_t{launch.kernel} + 1);
  auto details = writer.Message(Event::kLaunch);
  if (launch.grid[0] != 0) {
    WriteDim(writer, ComputeKernelLaunch::kGridSize, launch.grid);
    WriteDim(writer, ComputeKernelLaunch::kWorkgroupSize, launch.block);
  }
  if (launch.sequence != trace::kNoRow) {
    WriteArg(writer, "launch", [&] { writer.Varint(ComputeArg::kUintValue, launch.sequence); });
  }
  const auto write_known = [&](std::string_view name, uint32_t value) {
    if (value == trace::kNoRow) return;
    WriteArg(writer, name, [&] { writer.Varint(ComputeArg::kUintValue, value); });
  };
  write_known("graph", launch.graph);
  write_known("node", launch.node);
  write_known("replay", launch.replay);
  WriteArg(writer, "grid_id", [&] { writer.Varint(ComputeArg::kUintValue, launch.grid_id); });
  WriteArg(writer, "warps", [&] { writer.Varint(ComputeArg::kUintValue, launch.warp_count); });
  WriteArg(writer, "events", [&] { writer.Varint(ComputeArg::kUintValue, launch.events_kept); });
  WriteArg(writer, "completeness",
           [&] { writer.Text(ComputeArg::kStringValue, CompletenessWord(launch.completeness)); });
}

constexpr std::string_view kNoMeasurement =
    "software device: times are a model's, nothing here is a measurement";

// An event on a track; `fields` writes what it has besides its kind.
template <typename Fields>
void WriteEvent(uint64_t ns, uint32_t sequence, uint64_t track, uint32_t type, ProtoWriter& writer,
                const Fields& fields) {
  auto packet = writer.Message(Trace::kPacket);
  writer.Varint(TracePacket::kTimestamp, ns);
  writer.Varint(TracePacket::kSequenceId, sequence);
  {
    auto event = writer.Message(TracePacket::kTrackEvent);
    writer.Varint(TrackEvent::kType, type);
    writer.Varint(TrackEvent::kTrackUuid, track);
    fields();
  }
  writer.Varint(TracePacket::kSequenceFlags, TracePacket::kNeedsState);
}

void WriteInstant(const HealthLine& line, uint32_t sequence, uint64_t track, ProtoWriter& writer) {
  WriteEvent(line.ns, sequence, track, TrackEvent::kInstant, writer,
             [&] { writer.Text(TrackEvent::kName, line.text); });
}

// Why arrows of a declared dependency are missing.
void AddEdges(const trace::Model& model, std::span<const trace::EdgeCounts> edges,
              std::vector<HealthLine>& lines) {
  size_t said = 0;
  for (size_t i = 0; i < edges.size(); ++i) {
    const trace::EdgeCounts& counts = edges[i];
    const uint64_t faults = counts.unequal + counts.backward + counts.left_out;
    if ((faults == 0 && counts.linked != 0) || ++said > kMaxHealthLines) continue;
    std::string text =
        fmt::format("dependency {}: {} arrows", EdgeLabel(model, model.edges[i]), counts.linked);
    if (counts.from == 0) text += fmt::format("; no {}", model.String(model.edges[i].from));
    if (counts.to == 0) text += fmt::format("; no {}", model.String(model.edges[i].to));
    if (counts.unequal != 0) {
      text += fmt::format("; {} pairs of warps had the two unequally often", counts.unequal);
    }
    if (counts.backward != 0) text += fmt::format("; {} would lead back in time", counts.backward);
    if (counts.left_out != 0) text += fmt::format("; {} more left out", counts.left_out);
    lines.push_back({GlobalNs(model, 0), std::move(text)});
  }
}

}  // namespace

std::vector<HealthLine> HealthLines(const trace::Model& model,
                                    std::span<const trace::EdgeCounts> edges) {
  std::vector<HealthLine> lines;
  const uint64_t start = GlobalNs(model, 0);
  if (model.filter != 0) lines.push_back({start, model.String(model.filter)});
  for (const trace::CounterInfo& info : trace::AllCounters()) {
    const uint64_t value = model.counters.*info.member;
    if (info.fault && value != 0)
      lines.push_back({start, fmt::format("{} {}", value, info.meaning)});
  }
  if (model.damage != 0) {
    lines.push_back({start, "capture file damaged: " + model.String(model.damage)});
  }

  size_t refused = 0;
  for (const trace::Kernel& kernel : model.kernels) {
    if (kernel.refusal == 0 || ++refused > kMaxHealthLines) continue;
    lines.push_back({start, fmt::format("refused {}: {}", model.String(kernel.short_name),
                                        model.String(kernel.refusal))});
  }
  if (refused > kMaxHealthLines) {
    lines.push_back({start, fmt::format("{} more kernels refused", refused - kMaxHealthLines)});
  }

  const auto unplaced =
      std::ranges::count_if(model.host_marks, [](const trace::HostMark& mark) { return !mark.ns; });
  if (unplaced != 0) {
    lines.push_back({start, fmt::format("{} marks of the host are not shown: no launch tells when "
                                        "they were",
                                        unplaced)});
  }

  size_t partial = 0;
  for (const trace::Launch& launch : model.launches) {
    if (launch.completeness == trace::Completeness::kComplete || ++partial > kMaxHealthLines) {
      continue;
    }
    if (launch.IsNobodys()) {
      lines.push_back({GlobalNs(model, launch.first_ns),
                       fmt::format("{}: {}", LaunchLabel(model, launch), launch.warp_count)});
      continue;
    }
    lines.push_back(
        {GlobalNs(model, launch.first_ns),
         fmt::format("{} launch {}: {} of {} warps, at most {} records lost",
                     CompletenessWord(launch.completeness), LaunchLabel(model, launch),
                     launch.warp_count,
                     launch.warps_expected == 0 ? "?" : std::to_string(launch.warps_expected),
                     launch.lost_at_most)});
  }
  if (partial > kMaxHealthLines) {
    lines.push_back({start, fmt::format("{} more launches partial", partial - kMaxHealthLines)});
  }
  AddEdges(model, edges, lines);
  std::ranges::stable_sort(lines, {}, &HealthLine::ns);
  return lines;
}

Queues AssignQueues(const trace::Model& model) {
  struct Queue {
    uint32_t row = 0;
    uint64_t end_ns = 0;
  };
  Queues queues;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, std::vector<Queue>> by_stream;
  for (const trace::Launch& launch : model.launches) {  // by their begins
    auto& lanes = by_stream[{launch.device, launch.context, launch.stream}];
    const uint64_t begin = GlobalNs(model, launch.first_ns);
    auto lane = std::find_if(lanes.begin(), lanes.end(),
                             [&](const Queue& queue) { return queue.end_ns <= begin; });
    if (lane == lanes.end()) {
      std::string name = fmt::format("Context {} Stream {:#x}", launch.context, launch.stream);
      if (model.devices[launch.device].simulated) name.insert(0, "Software device, ");
      if (!lanes.empty()) name += fmt::format(" ({})", lanes.size() + 1);
      const auto row = static_cast<uint32_t>(queues.names.size());
      queues.names.push_back(std::move(name));
      lane = lanes.insert(lanes.end(), Queue{.row = row});
    }
    lane->end_ns = std::max(begin, GlobalNs(model, launch.last_ns));
    queues.of_launch.push_back(lane->row);
  }
  return queues;
}

void WriteAttributes(const trace::Model& model, ProtoWriter& writer) {
  auto packet = writer.Message(Trace::kPacket);
  auto attributes = writer.Message(TracePacket::kTraceAttributes);
  WriteAttribute(writer, "iket.clock", "globaltimer");
  WriteAttribute(writer, "iket.uncertainty", trace::UncertaintyOf(model).Sentence());
  WriteAttribute(writer, "iket.process_id", model.process_id);
  WriteAttribute(writer, "iket.command", model.String(model.command));
  WriteAttribute(writer, "iket.host", model.String(model.host));
  if (model.filter != 0) WriteAttribute(writer, "iket.filter", model.String(model.filter));
  for (size_t i = 0; i < model.devices.size(); ++i) {
    WriteAttribute(writer, fmt::format("iket.device.{}", i), model.String(model.devices[i].name));
    if (model.devices[i].simulated) {
      WriteAttribute(writer, fmt::format("iket.device.{}.note", i), kNoMeasurement);
    }
  }
  WriteAttribute(writer, "iket.launches", model.launches.size());
  WriteAttribute(writer, "iket.warps", model.warps.size());
  WriteAttribute(writer, "iket.events", model.events.size());
  for (const trace::CounterInfo& info : trace::AllCounters()) {
    const uint64_t value = model.counters.*info.member;
    if (value != 0) WriteAttribute(writer, fmt::format("iket.{}", info.name), value);
  }
}

void WriteRenderStages(const trace::Model& model, uint32_t sequence, ProtoWriter& writer) {
  const Queues queues = AssignQueues(model);
  {
    auto packet = writer.Message(Trace::kPacket);
    writer.Varint(TracePacket::kSequenceId, sequence);
    WriteInternedState(model, queues, writer);
    writer.Varint(TracePacket::kSequenceFlags,
                  TracePacket::kStateCleared | TracePacket::kNeedsState);
    writer.Varint(TracePacket::kFirstPacketOnSequence, 1);
  }
  for (size_t i = 0; i < model.launches.size(); ++i) {
    auto packet = writer.Message(Trace::kPacket);
    writer.Varint(TracePacket::kSequenceId, sequence);
    writer.Varint(TracePacket::kSequenceFlags, TracePacket::kNeedsState);
    WriteRenderStage(model, model.launches[i], i, kFirstQueueIid + queues.of_launch[i], writer);
  }
}

void WriteLaunches(const trace::Model& model, uint32_t sequence, const TrackTree& tracks,
                   ProtoWriter& writer) {
  const auto write = [&](uint64_t ns, uint64_t track, uint32_t type, const auto& fields) {
    WriteEvent(ns, sequence, track, type, writer, fields);
  };
  const auto argument = [&](std::string_view name, std::string_view text) {
    auto annotation = writer.Message(TrackEvent::kDebugAnnotations);
    writer.Text(DebugAnnotation::kName, name);
    writer.Text(DebugAnnotation::kStringValue, text);
  };
  std::vector<std::pair<uint64_t, size_t>> by_host;
  for (size_t i = 0; i < model.launches.size(); ++i) {
    const trace::Launch& launch = model.launches[i];
    if (model.host_clock && IsLaunchedByHost(launch)) {
      const double ns = model.host_clock->FromHost(static_cast<double>(launch.host_ns));
      by_host.emplace_back(GlobalNs(model, ns), i);
    }
    if (launch.warp_count == 0) continue;
    const uint64_t begin = GlobalNs(model, launch.first_ns);
    const bool known = launch.kernel != trace::kNoRow;
    write(begin, tracks.OfLaunch(i), TrackEvent::kSliceBegin, [&] {
      writer.Text(TrackEvent::kName,
                  known ? model.String(model.kernels[launch.kernel].short_name) : "unknown kernel");
      if (known) argument("kernel", model.String(model.kernels[launch.kernel].demangled));
      argument("completeness", CompletenessWord(launch.completeness));
      writer.Varint(TrackEvent::kCorrelationId, i + 1);
    });
    write(std::max(begin, GlobalNs(model, launch.last_ns)), tracks.OfLaunch(i),
          TrackEvent::kSliceEnd, [] {});
  }
  std::ranges::sort(by_host);
  for (const auto& [ns, i] : by_host) {
    write(ns, tracks.host_launches(), TrackEvent::kInstant, [&] {
      writer.Text(TrackEvent::kName, LaunchLabel(model, model.launches[i]));
      writer.Varint(TrackEvent::kCorrelationId, i + 1);
    });
  }
}

void WriteHostMarks(const trace::Model& model, uint32_t sequence, uint64_t track,
                    ProtoWriter& writer) {
  for (const trace::HostMark& mark : model.host_marks) {
    if (!mark.ns) continue;
    WriteInstant({GlobalNs(model, *mark.ns), model.String(mark.text)}, sequence, track, writer);
  }
}

void WriteCounter(const CounterPoint& point, uint32_t sequence, uint64_t track,
                  ProtoWriter& writer) {
  WriteEvent(point.ns, sequence, track, TrackEvent::kCounter, writer,
             [&] { writer.Double(TrackEvent::kDoubleCounterValue, point.value); });
}

void WriteHealth(const trace::Model& model, std::span<const trace::EdgeCounts> edges,
                 uint32_t sequence, uint64_t track, ProtoWriter& writer) {
  for (const HealthLine& line : HealthLines(model, edges))
    WriteInstant(line, sequence, track, writer);
}

}  // namespace iket::exporter
