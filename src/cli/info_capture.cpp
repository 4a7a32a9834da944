#include <ctime>
#include <set>

#include "capture/reader.h"
#include "cli/attribute_words.h"
#include "cli/command.h"
#include "cli/event_words.h"
#include "cli/info.h"
#include "cli/load.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "export/json_writer.h"

namespace iket::cli {
namespace {

constexpr size_t kHostMarksShown = 20;
constexpr std::string_view kLeftOut = "left out by --range-filter";

using Align = Table::Align;
using exporter::JsonWriter;

std::string FateOf(const capture::Kernel& kernel) {
  switch (kernel.state) {
    case capture::KernelState::kPatched:
      return (kernel.refusal.empty() ? "traced" : "traced in part: " + kernel.refusal) +
             (kernel.sites_left_out == 0
                  ? ""
                  : fmt::format(", {} {}", Counted(kernel.sites_left_out, "site"), kLeftOut));
    case capture::KernelState::kRefused:
      return "refused: " + kernel.refusal;
    case capture::KernelState::kLeftOut:
      return "left out: " + (kernel.refusal.empty() ? "not selected" : kernel.refusal);
    case capture::KernelState::kUnmarked:
      return "no marks";
  }
  return "unknown state";
}

std::string_view SeverityText(capture::Severity severity) {
  switch (severity) {
    case capture::Severity::kInfo:
      return "info";
    case capture::Severity::kWarning:
      return "warning";
    case capture::Severity::kRefusal:
      return "refused";
    case capture::Severity::kMarker:
      return "host mark";
  }
  return "note";
}

std::string CommandText(const capture::Session& session) {
  return Printable(fmt::format("{}", fmt::join(session.command_line, " ")));
}

std::string EndText(const capture::Session& session) {
  if (!session.ended) return "had not ended";
  if (session.signal != 0) return fmt::format("ended by signal {}", session.signal);
  return fmt::format("exit status {}", session.exit_status);
}

std::string DateText(int64_t realtime_ns) {
  const time_t seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
  struct tm parts = {};
  char text[64] = {};
  if (realtime_ns == 0 || gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts) == 0) {
    return "time not known";
  }
  return text;
}

std::string DriverText(const capture::Device& device) {
  std::string text = device.simulated                ? "iket's own driver"
                     : device.driver_version.empty() ? "driver of unknown version"
                                                     : "driver " + device.driver_version;
  if (device.cuda_version != 0) {
    text +=
        fmt::format(", CUDA {}.{}", device.cuda_version / 1000, device.cuda_version % 1000 / 10);
  }
  return text;
}

uint64_t GraphCount(const capture::Capture& facts) {
  std::set<uint32_t> graphs;
  for (const auto& node : facts.graph_nodes) graphs.insert(node.graph);
  return graphs.size();
}

std::string RingsText(const capture::Context& context) {
  return fmt::format("{} rings of {}, {} of device memory{}",
                     Count(uint64_t{context.sm_count} * context.slots_per_sm),
                     BinaryBytes(context.ring_bytes), Bytes(context.device_memory_bytes),
                     context.sink_only ? ", nothing kept"
                     : context.in_host ? ", in the host's memory"
                                       : "");
}

// `reader` is null for a run of run-iket, which has no rings.
std::string Text(const std::string& file, const capture::Capture& facts,
                 const capture::Reader* reader, bool all) {
  Table head({Align::kLeft, Align::kLeft});
  for (const auto& session : facts.sessions) {
    head.Row({"process", fmt::format("{}: {}", session.pid, CommandText(session))});
    head.Row(
        {"", Printable(fmt::format("{} on {}, {}, iket {}", DateText(session.start_realtime_ns),
                                   session.host, EndText(session), session.tool_version))});
  }
  for (const auto& device : facts.devices) {
    head.Row(
        {"device", Printable(fmt::format("{}: {}, sm_{}{}, {}, {}", device.index, device.name,
                                         device.compute_major, device.compute_minor,
                                         Counted(device.sm_count, "SM"), DriverText(device)))});
    if (device.simulated) head.Row({"", "software: times are a model's, no measurement"});
  }
  for (const auto& context : facts.contexts) {
    head.Row({"context", fmt::format("{} on device {}{}", context.index, context.device,
                                     reader == nullptr ? "" : ": " + RingsText(context))});
  }
  if (reader != nullptr) head.Row({"launches", Count(facts.launches.size())});
  if (const uint64_t graphs = GraphCount(facts); graphs != 0) {
    head.Row({"graphs", fmt::format("{}, launched {}", Counted(graphs, "executable graph"),
                                    Counted(facts.graph_launches.size(), "time"))});
  }
  if (reader != nullptr) {
    head.Row({"rings", fmt::format("{} in {}", Bytes(reader->ring_raw_bytes()),
                                   Counted(reader->ring_block_count(), "chunk"))});
  }
  for (const auto& counter : facts.counters) {
    head.Row({"counter", Printable(fmt::format("{}: {}", counter.name, Count(counter.value)))});
  }
  const int64_t start_ns = facts.sessions.empty() ? 0 : facts.sessions.front().start_ns;
  size_t host_marks = 0;
  for (const auto& note : facts.notes) {
    std::string text = Printable(note.text);
    if (note.severity == capture::Severity::kMarker) {
      if (++host_marks > kHostMarksShown && !all) continue;
      text +=
          fmt::format(", at {:+.6f} s",
                      (static_cast<double>(note.time_ns) - static_cast<double>(start_ns)) / 1e9);
    }
    head.Row({std::string(SeverityText(note.severity)), text});
  }
  if (host_marks > kHostMarksShown && !all) {
    head.Row(
        {"host mark", fmt::format("and {} more; --all shows them", host_marks - kHostMarksShown)});
  }
  std::string text =
      (reader == nullptr
           ? fmt::format("{}: a run of run-iket's\n", file)
           : fmt::format("{}: capture, {}\n", file, Counted(facts.damage.chunks_whole, "chunk"))) +
      head.Text(2);

  // The number is what tells kernels of one short name apart in other outputs: gemm#3.
  Table kernels({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  kernels.Row({"kernel", "number", "registers", "sites", ""});
  uint64_t unmarked = 0;
  for (const auto& kernel : facts.kernels) {
    if (kernel.state == capture::KernelState::kUnmarked && !all) {
      ++unmarked;
      continue;
    }
    const capture::KernelFilter* const filter = facts.FindFilter(kernel.index);
    kernels.Row({Printable(kernel.demangled_name), fmt::format("#{}", kernel.index),
                 std::to_string(kernel.registers_before), std::to_string(kernel.sites),
                 Printable(FateOf(kernel)) +
                     (filter != nullptr ? ", only CTAs " + FilterText(*filter) : "")});
  }
  text += "\n" + kernels.Text(2);
  if (unmarked != 0) text += fmt::format("  and {} without marks\n", Counted(unmarked, "kernel"));

  if (!facts.declarations.empty()) {
    Table marks(
        {Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft});
    marks.Row({"mark", "kind", "payload", "id", "", ""});
    for (const auto& declaration : facts.declarations) {
      const auto attributes = facts.AttributesOf(declaration);
      std::string about = RowText(attributes);
      if (declaration.left_out) about += (about.empty() ? "" : ", ") + std::string(kLeftOut);
      marks.Row({Clipped(Printable(declaration.name)), KindText(declaration.kind),
                 Printable(ValuesText(declaration.payload, attributes)),
                 fmt::format("{:#010x}", declaration.event),
                 PlaceText(declaration.file, declaration.line), Printable(about)});
    }
    text += "\n" + marks.Text(2);
  }
  if (!facts.edges.empty()) {
    text += "\n  declared dependencies\n";
    for (const auto& edge : facts.edges) text += "    " + Printable(EdgeText(edge)) + "\n";
  }
  return text;
}

void WriteFacts(JsonWriter& json, const capture::Capture& facts, const capture::Reader* reader) {
  {
    auto sessions = json.Array("sessions");
    for (const auto& session : facts.sessions) {
      auto entry = json.Object();
      json.Member("pid", session.pid);
      {
        auto command = json.Array("command");
        for (const auto& word : session.command_line) json.Value(word);
      }
      json.Member("host", session.host);
      json.Member("start_realtime_ns", session.start_realtime_ns);
      json.Member("ended", session.ended);
      json.Member("exit_status", session.exit_status);
      json.Member("signal", session.signal);
      json.Member("tool_version", session.tool_version);
    }
  }
  {
    auto devices = json.Array("devices");
    for (const auto& device : facts.devices) {
      auto entry = json.Object();
      json.Member("name", device.name);
      json.Member("index", device.index);
      json.Member("simulated", device.simulated);
      json.Member("compute_major", device.compute_major);
      json.Member("compute_minor", device.compute_minor);
      json.Member("sm_count", device.sm_count);
      json.Member("driver_version", device.driver_version);
      json.Member("cuda_version", device.cuda_version);
    }
  }
  {
    auto contexts = json.Array("contexts");
    for (const auto& context : facts.contexts) {
      auto entry = json.Object();
      json.Member("index", context.index);
      json.Member("device", context.device);
      json.Member("ring_bytes", context.ring_bytes);
      json.Member("device_memory_bytes", context.device_memory_bytes);
      json.Member("sink_only", context.sink_only);
    }
  }
  {
    auto kernels = json.Array("kernels");
    for (const auto& kernel : facts.kernels) {
      auto entry = json.Object();
      json.Member("name", kernel.mangled_name);
      json.Member("number", kernel.index);
      json.Member("demangled", kernel.demangled_name);
      json.Member("registers", kernel.registers_before);
      json.Member("patched_registers", kernel.registers_after);
      json.Member("sites", kernel.sites);
      json.Member("sites_left_out", kernel.sites_left_out);
      json.Member("fate", FateOf(kernel));
    }
  }
  {
    auto declarations = json.Array("declarations");
    for (const auto& declaration : facts.declarations) {
      auto entry = json.Object();
      json.Member("name", declaration.name);
      json.Member("kind", KindText(declaration.kind));
      json.Member("payload", PayloadText(declaration.payload));
      WriteAttributes(json, facts.AttributesOf(declaration));
      json.Member("id", declaration.event);
      json.Member("file", declaration.file);
      json.Member("line", declaration.line);
      json.Member("left_out", declaration.left_out);
    }
  }
  WriteEdges(json, facts.edges);
  json.Member("launches", facts.launches.size());
  json.Member("graphs", GraphCount(facts));
  json.Member("graph_launches", facts.graph_launches.size());
  if (reader != nullptr) json.Member("ring_bytes", reader->ring_raw_bytes());
  auto notes = json.Array("notes");
  for (const auto& note : facts.notes) {
    auto entry = json.Object();
    json.Member("severity", SeverityText(note.severity));
    json.Member("time_ns", note.time_ns);
    json.Member("text", note.text);
  }
}

Result<int> Say(const InfoOptions& options, const capture::Capture& facts,
                const capture::Reader* reader) {
  if (options.json) {
    JsonWriter json;
    {
      auto object = json.Object();
      json.Member("file", options.file);
      json.Member("kind", reader == nullptr ? "run-iket" : "capture");
      json.Member("damage", facts.damage.Summary());
      WriteFacts(json, facts, reader);
    }
    Print(json.text() + "\n");
  } else {
    Print(Text(options.file, facts, reader, options.all));
  }
  if (!facts.damage.any()) return kExitDone;
  PrintError(fmt::format("{}: damaged: {}; what is whole in it was read", options.file,
                         facts.damage.Summary()));
  return ExitCode(ErrorKind::kBadInput);
}

}  // namespace

// Of a capture the rings are not read.
Result<int> InfoOnCapture(const InfoOptions& options) {
  if (IsOfRunIket(options.file)) {
    const auto loaded = Load(options.file);
    if (!loaded) return tl::unexpected(loaded.error());
    return Say(options, loaded->facts(), nullptr);
  }
  const auto reader = [&] {
    Progress progress("reading " + options.file);
    return capture::Reader::Open(options.file, progress.Callback());
  }();
  if (!reader) return tl::unexpected(reader.error());
  return Say(options, reader->capture(), &*reader);
}

}  // namespace iket::cli
