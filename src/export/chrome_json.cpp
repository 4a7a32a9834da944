#include "export/chrome_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "export/dag_json.h"
#include "export/edges.h"
#include "export/json_writer.h"
#include "export/launches.h"
#include "export/occurrences.h"
#include "export/tracks.h"
#include "export/values.h"
#include "trace/edge_links.h"

namespace iket::exporter {
namespace {

constexpr size_t kFlushBytes = 1 << 20;
// Process 0, of the whole trace, and its threads. A launch is the process of its row and one.
constexpr uint32_t kTracePid = 0;
constexpr uint32_t kHealthTid = 1, kHostTid = 2, kFirstQueueTid = 3;

std::string Micros(int64_t ns) {
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns / 1000), std::abs(ns % 1000));
}

class Writer {
 public:
  Writer(const trace::Model& model, const Sink& sink, const Progress& progress)
      : model_(model),
        sink_(sink),
        progress_(progress),
        tracks_(model),
        links_(trace::LinkEdges(model)),
        occurrences_(model),
        values_(model, {"cycles", "state", "cta", "warp", "sm", "slot", "source"}) {
    for (uint32_t row = 0; row < model.declarations.size(); ++row) {
      const std::string label = LabelOf(model, {.declaration = row});
      const std::string unmatched = LabelOf(model, {.unmatched_end = true, .declaration = row});
      names_.push_back({RowLabel(label, row), RowLabel(unmatched, row)});
    }
  }

  Result<void> Write() {
    {
      auto all = json_.Object();
      json_.Member("displayTimeUnit", "ns");
      WriteFacts();
      auto events = json_.Array("traceEvents");
      WriteNames();
      WriteNotes();
      for (uint32_t warp = 0; warp < model_.warps.size() && status_; ++warp) {
        WriteWarp(warp);
        if (progress_) progress_(warp + 1, model_.warps.size());
      }
      WriteArrows();
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

  void WriteFacts() {
    auto facts = json_.Object("otherData");
    json_.Member("tool", "iket");
    json_.Member("origin_ns", std::to_string(GlobalNs(model_, 0)));  // more than a double holds
    json_.Member("process_id", model_.process_id);
    json_.Member("host", model_.String(model_.host));
    json_.Member("command", model_.String(model_.command));
    json_.Member("simulated", std::ranges::any_of(model_.devices, &trace::Device::simulated));
    if (model_.filter != 0) json_.Member("filter", model_.String(model_.filter));
    auto devices = json_.Array("devices");
    for (const trace::Device& device : model_.devices) json_.Value(model_.String(device.name));
  }

  void WriteName(std::string_view what, uint32_t pid, uint64_t tid, std::string_view name,
                 uint64_t rank) {
    {
      auto event = json_.Object();
      json_.Member("ph", "M");
      json_.Member("pid", pid);
      json_.Member("tid", tid);
      json_.Member("name", fmt::format("{}_name", what));
      auto args = json_.Object("args");
      json_.Member("name", RowLabel(name, rank));
    }
    {
      auto event = json_.Object();
      json_.Member("ph", "M");
      json_.Member("pid", pid);
      json_.Member("tid", tid);
      json_.Member("name", fmt::format("{}_sort_index", what));
      auto args = json_.Object("args");
      json_.Member("sort_index", rank);
    }
    FlushIfLarge();
  }
  void WriteNames() {
    const bool simulated = std::ranges::any_of(model_.devices, &trace::Device::simulated);
    WriteName("process", kTracePid, 0, simulated ? kSimulatedRoot : "IKET", 0);
    WriteName("thread", kTracePid, kHealthTid, "trace health", kHealthTid);
    if (!model_.host_marks.empty()) WriteName("thread", kTracePid, kHostTid, "host", kHostTid);
    queues_ = AssignQueues(model_);
    for (uint32_t i = 0; i < queues_.names.size(); ++i) {
      WriteName("thread", kTracePid, kFirstQueueTid + i, queues_.names[i], kFirstQueueTid + i);
    }
    for (uint32_t row = 0; row < model_.launches.size(); ++row) {
      const trace::Launch& launch = model_.launches[row];
      const bool software = model_.devices[launch.device].simulated;
      WriteName("process", row + 1, 0,
                LaunchLabel(model_, launch) + (software ? " (software device)" : ""), row + 1);
    }
    uint64_t rank = 0;
    tracks_.ForEachRow([&](uint64_t uuid, uint32_t launch, const std::string& path) {
      WriteName("thread", launch + 1, uuid, path, rank++);
    });
  }

  // The head of an event, up to its time; arguments may follow.
  void Put(char phase, std::string_view name, uint32_t pid, uint64_t tid, int64_t ns) {
    json_.Member("ph", std::string_view(&phase, 1));
    json_.Member("name", name);
    json_.Member("pid", pid);
    json_.Member("tid", tid);
    json_.Key("ts");
    json_.Written(Micros(ns));
  }
  void PutDuration(int64_t ns) {
    json_.Key("dur");
    json_.Written(Micros(ns));
  }

  void WriteNote(std::string_view name, uint32_t tid, int64_t ns) {
    auto event = json_.Object();
    Put('i', RowLabel(name, 0), kTracePid, tid, ns);
    json_.Member("s", "t");
  }
  void WriteNotes() {
    for (const HealthLine& line : HealthLines(model_, links_.counts)) {
      WriteNote(line.text, kHealthTid, static_cast<int64_t>(line.ns - GlobalNs(model_, 0)));
    }
    for (const trace::HostMark& mark : model_.host_marks) {
      if (mark.ns) WriteNote(model_.String(mark.text), kHostTid, TraceNs(model_, *mark.ns));
    }
    for (uint32_t row = 0; row < model_.launches.size(); ++row) {
      const trace::Launch& launch = model_.launches[row];
      const int64_t begin = TraceNs(model_, launch.first_ns);
      auto event = json_.Object();
      Put('X', RowLabel(LaunchLabel(model_, launch), row), kTracePid,
          kFirstQueueTid + queues_.of_launch[row], begin);
      PutDuration(std::max<int64_t>(TraceNs(model_, launch.last_ns) - begin, 0));
      auto args = json_.Object("args");
      json_.Member("grid_id", launch.grid_id);
      json_.Member("warps", launch.warp_count);
      json_.Member("events", launch.events_kept);
      json_.Member("completeness", CompletenessWord(launch.completeness));
    }
    FlushIfLarge();
  }

  int64_t NsOf(uint32_t warp, uint64_t cycles) const {
    return TraceNs(model_, model_.NsOfWarp(warp, cycles));
  }

  void WriteWarp(uint32_t warp) {
    const trace::Warps& warps = model_.warps;
    {
      auto event = json_.Object();
      const int64_t begin = TraceNs(model_, warps.begin_ns[warp]);
      Put('X', "Warp Life Time", warps.launch[warp] + 1, tracks_.LifeTime(warp), begin);
      PutDuration(TraceNs(model_, warps.end_ns[warp]) - begin);
      auto args = json_.Object("args");
      if ((warps.flags[warp] & trace::kWarpOrphan) == 0) {
        json_.Member("cta", fmt::format("({}, {}, {})", warps.cta_x[warp], warps.cta_y[warp],
                                        warps.cta_z[warp]));
      }
      if (warps.index[warp] != trace::kNoRow) json_.Member("warp", warps.index[warp]);
      json_.Member("sm", warps.sm[warp]);
      if (warps.slot[warp] != trace::kNoSlot) json_.Member("slot", warps.slot[warp]);
      json_.Member("cycles", warps.end_cycles[warp] - warps.begin_cycles[warp]);
      if (warps.flags[warp] != 0) json_.Member("state", WarpState(warps.flags[warp]));
    }
    occurrences_.ForEach(warp, [&](const Occurrence& it) {
      WriteOccurrence(warp, it);
      FlushIfLarge();
    });
  }

  void WriteOccurrence(uint32_t warp, const Occurrence& it) {
    const trace::Declaration& declaration = model_.declarations[it.declaration];
    const uint32_t pid = model_.warps.launch[warp] + 1;
    const auto& [name, unmatched_name] = names_[it.declaration];
    const int64_t begin = NsOf(warp, it.begin_cycles);
    auto event = json_.Object();
    if (it.is_range()) {
      Put('X', name, pid, tracks_.RowOfRange(warp, it.range), begin);
      PutDuration(NsOf(warp, it.end_cycles) - begin);
    } else {
      Put('i', it.unmatched_end ? unmatched_name : name, pid,
          tracks_.RowOfMark(warp, it.declaration), begin);
      json_.Member("s", "t");
    }
    if (declaration.category != 0) {
      json_.Member("cat", RowLabel(model_.String(declaration.category), declaration.category));
    }
    auto args = json_.Object("args");
    PutValues(it.event, "");
    if (it.is_range()) {
      if (const uint32_t end = model_.ranges.end_event[it.range]; end != trace::kNoRow) {
        PutValues(end, "end_");
      }
      json_.Member("cycles", it.end_cycles - it.begin_cycles);
      const std::string state = RangeState(model_.ranges.flags[it.range]);
      if (!state.empty()) json_.Member("state", state);
    }
    if (declaration.line != 0) {
      json_.Member("source", fmt::format("{}:{}", RowLabel(model_.String(declaration.file), 0),
                                         declaration.line));
    }
  }
  void PutValues(uint32_t event, std::string_view before) {
    for (const NamedValue& value : values_.Of(event)) {
      number_.clear();
      AppendJsonNumber(number_, value.type, value.bits);
      json_.Key(std::string(before) + RowLabel(value.name, 0));
      json_.Written(number_);
    }
  }

  // One id for each arrow: viewers follow whole chains of ids.
  void WriteArrow(uint64_t id, std::string_view name, uint32_t from, uint32_t to) {
    for (const bool target : {false, true}) {
      const uint32_t event = target ? to : from;
      const uint32_t warp = model_.events.warp[event];
      auto object = json_.Object();
      Put(target ? 'f' : 's', name, model_.warps.launch[warp] + 1, tracks_.LifeTime(warp),
          NsOf(warp, model_.events.cycles[event]));
      json_.Member("cat", "flow");
      json_.Member("id", id);
      if (target) json_.Member("bp", "e");
    }
    FlushIfLarge();
  }
  void WriteArrows() {
    uint64_t id = 1;
    for (size_t i = 0; i < model_.flows.size(); ++i) {
      const uint32_t from = model_.flows.from[i], to = model_.flows.to[i];
      WriteArrow(id++, names_[model_.events.declaration[from]].name, from, to);
    }
    for (const trace::EdgeLink& link : links_.links) {
      WriteArrow(id++, RowLabel(EdgeLabel(model_, model_.edges[link.edge]), link.edge), link.from,
                 link.to);
    }
  }

  struct Names {
    std::string name, unmatched_name;
  };

  const trace::Model& model_;
  const Sink& sink_;
  const Progress& progress_;
  const TrackTree tracks_;
  const trace::EdgeLinks links_;
  const Occurrences occurrences_;
  EventValues values_;
  std::vector<Names> names_;  // by declaration
  Queues queues_;
  JsonWriter json_;
  std::string number_;
  Result<void> status_;
};

}  // namespace

Result<void> WriteChromeJson(const trace::Model& model, const Sink& sink,
                             const Progress& progress) {
  return Writer(model, sink, progress).Write();
}

}  // namespace iket::exporter
