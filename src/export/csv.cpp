#include "export/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "export/edges.h"
#include "export/json_writer.h"
#include "export/launches.h"
#include "export/occurrences.h"
#include "export/tracks.h"
#include "export/values.h"

namespace iket::exporter {
namespace {

constexpr size_t kFlushBytes = 1 << 20;

std::string Quoted(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

// What rows of one declaration have in common, as it is written.
struct Said {
  std::string name, unmatched_name, rows;  // rows: category, group, lane
};

class Writer {
 public:
  Writer(const trace::Model& model, const Sink& sink, const Progress& progress)
      : model_(model), sink_(sink), progress_(progress), occurrences_(model), values_(model) {
    for (uint32_t row = 0; row < model.declarations.size(); ++row) {
      const trace::Declaration& it = model.declarations[row];
      const auto label = [&](std::string_view text) { return Quoted(RowLabel(text, row)); };
      said_.push_back(
          {.name = label(LabelOf(model, {.declaration = row})),
           .unmatched_name = label(LabelOf(model, {.unmatched_end = true, .declaration = row})),
           .rows = label(model.String(it.category)) + "," + label(model.String(it.group)) + "," +
                   label(model.String(it.lane))});
    }
  }

  Result<void> Write() {
    text_ = fmt::format("{}\n", fmt::join(kCsvColumns, ","));
    WriteFacts();
    for (const trace::Launch& launch : model_.launches) {
      WriteLaunch(launch);
      for (uint32_t i = 0; i < launch.warp_count && status_; ++i) {
        WriteWarp(launch, launch.first_warp + i);
        if (progress_) progress_(++warps_written_, model_.warps.size());
      }
    }
    Flush();
    return status_;
  }

 private:
  void Flush() {
    if (status_) status_ = sink_(text_);
    text_.clear();
  }

  template <typename T>
  void Cell(const T& value) {
    fmt::format_to(std::back_inserter(text_), "{},", value);
  }
  void Skip(size_t cells) { text_.append(cells, ','); }
  void Optional(uint32_t value) {
    if (value == trace::kNoRow) return Skip(1);
    Cell(value);
  }
  void EndRow() {
    text_.back() = '\n';  // in place of the last comma
    if (text_.size() >= kFlushBytes) Flush();
  }

  // A row of no launch and no warp. Behind its time, where it has one, stands what it has of value.
  void WriteNote(std::string_view kind, std::string_view name, std::optional<int64_t> ns,
                 std::string_view payload = {}) {
    Cell(model_.process_id);
    Skip(12);
    Cell(kind);
    Cell(Quoted(RowLabel(name, 0)));
    Skip(5);
    if (ns) Cell(*ns);
    Skip(ns ? 6 : 7);
    Cell(Quoted(RowLabel(payload, 0)));
    Skip(3);
    EndRow();
  }
  void WriteFacts() {
    WriteNote("fact", "origin_ns", {}, std::to_string(GlobalNs(model_, 0)));
    WriteNote("fact", "host", {}, model_.String(model_.host));
    WriteNote("fact", "command", {}, model_.String(model_.command));
    for (const trace::Device& device : model_.devices) {
      WriteNote("fact", device.simulated ? "software device" : "device", {},
                model_.String(device.name));
    }
    if (model_.filter != 0) WriteNote("fact", "filter", {}, model_.String(model_.filter));
    for (const HealthLine& line : HealthLines(model_, {})) {
      WriteNote("health", line.text, static_cast<int64_t>(line.ns - GlobalNs(model_, 0)));
    }
    for (const trace::HostMark& mark : model_.host_marks) {
      WriteNote("host_mark", model_.String(mark.text),
                mark.ns ? std::optional(TraceNs(model_, *mark.ns)) : std::nullopt);
    }
  }

  // The first cells of all rows of a launch.
  std::string LaunchCells(const trace::Launch& launch) const {
    const bool known = launch.kernel != trace::kNoRow;
    return fmt::format(
        "{},{},{},{},", model_.process_id,
        launch.sequence == trace::kNoRow ? std::string() : std::to_string(launch.sequence),
        known ? Quoted(RowLabel(model_.String(model_.kernels[launch.kernel].short_name),
                                launch.kernel))
              : std::string("unknown kernel"),
        launch.grid_id);
  }
  void WriteLaunch(const trace::Launch& launch) {
    launch_cells_ = LaunchCells(launch);
    text_ += launch_cells_;
    Skip(9);
    text_ += "launch,";
    Cell(Quoted(RowLabel(LaunchLabel(model_, launch), 0)));
    Skip(4);
    Cell(Quoted(CompletenessWord(launch.completeness)));
    WriteTimes(TraceNs(model_, launch.first_ns), TraceNs(model_, launch.last_ns));
    Skip(8);
    EndRow();
  }

  void WriteTimes(int64_t begin, int64_t end) {
    Cell(begin);
    Cell(end);
    Cell(end - begin);
  }
  void WriteCycles(uint64_t begin, uint64_t end) {
    Cell(begin);
    Cell(end);
    Cell(static_cast<int64_t>(end - begin));  // of a damaged capture below zero
  }

  void WriteWarp(const trace::Launch& launch, uint32_t warp) {
    const trace::Warps& warps = model_.warps;
    const size_t start = text_.size();
    text_ += launch_cells_;
    if ((warps.flags[warp] & trace::kWarpOrphan) != 0) {
      Skip(6);
    } else {
      for (const uint32_t place : model_.ClusterOf(warp)) {
        if (launch.cluster[0] == 0) {
          Skip(1);
        } else {
          Cell(place);
        }
      }
      Cell(warps.cta_x[warp]);
      Cell(warps.cta_y[warp]);
      Cell(warps.cta_z[warp]);
    }
    Optional(warps.index[warp]);
    Cell(warps.sm[warp]);
    Optional(warps.slot[warp] == trace::kNoSlot ? trace::kNoRow : warps.slot[warp]);
    warp_cells_.assign(text_, start);
    text_ += "warp,";
    Skip(5);
    Cell(Quoted(WarpState(warps.flags[warp])));
    WriteTimes(TraceNs(model_, warps.begin_ns[warp]), TraceNs(model_, warps.end_ns[warp]));
    WriteCycles(warps.begin_cycles[warp], warps.end_cycles[warp]);
    Skip(5);
    EndRow();

    const trace::SmClock& clock =
        model_.clocks[model_.devices[launch.device].first_clock + warps.sm[warp]];
    occurrences_.ForEach(warp, [&](const Occurrence& it) { WriteOccurrence(clock, it); });
  }

  void WriteOccurrence(const trace::SmClock& clock, const Occurrence& it) {
    const Said& said = said_[it.declaration];
    text_ += warp_cells_;
    Cell(KindWord(model_, it));
    Cell(it.unmatched_end ? said.unmatched_name : said.name);
    Cell(said.rows);
    const int64_t begin = TraceNs(model_, clock.NsOf(it.begin_cycles));
    if (it.is_range()) {
      Cell(model_.ranges.depth[it.range]);
      Cell(Quoted(RangeState(model_.ranges.flags[it.range])));
      WriteTimes(begin, TraceNs(model_, clock.NsOf(it.end_cycles)));
      WriteCycles(it.begin_cycles, it.end_cycles);
    } else {
      Skip(2);
      Cell(begin);
      Skip(2);
      Cell(it.begin_cycles);
      Skip(2);
    }
    Cell(it.event);
    WriteValues(it.event);
    const uint32_t end = it.is_range() ? model_.ranges.end_event[it.range] : trace::kNoRow;
    if (end == trace::kNoRow) {
      Skip(2);
    } else {
      WriteValues(end);
    }
    EndRow();
  }

  // The payload, and all values by name as a JSON object.
  void WriteValues(uint32_t event) {
    const std::span<const NamedValue> values = values_.Of(event);
    if (!values.empty() && values.front().is_payload) {
      AppendNumber(text_, values.front().type, values.front().bits);
    }
    Skip(1);
    if (!values.empty()) {
      JsonWriter json;
      {
        auto object = json.Object();
        for (const NamedValue& value : values) {
          std::string number;
          AppendJsonNumber(number, value.type, value.bits);
          json.Key(RowLabel(value.name, 0));
          json.Written(number);
        }
      }
      text_ += Quoted(json.text());
    }
    Skip(1);
  }

  const trace::Model& model_;
  const Sink& sink_;
  const Progress& progress_;
  const Occurrences occurrences_;
  EventValues values_;
  std::vector<Said> said_;  // by declaration
  std::string launch_cells_, warp_cells_;
  std::string text_;
  uint64_t warps_written_ = 0;
  Result<void> status_;
};

}  // namespace

Result<void> WriteCsv(const trace::Model& model, const Sink& sink, const Progress& progress) {
  return Writer(model, sink, progress).Write();
}

}  // namespace iket::exporter
