// iket report: first what can be trusted, then what warps did that never ended, then how long
// things took.
#include <algorithm>
#include <memory>
#include <vector>

#include "cli/clock_summary.h"
#include "cli/command.h"
#include "cli/event_words.h"
#include "cli/load.h"
#include "cli/standstill_text.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "export/json_writer.h"
#include "trace/statistics.h"
#include "trace/uncertainty.h"

namespace iket::cli {
namespace {

using Align = Table::Align;
using exporter::JsonWriter;

struct Options {
  std::string file;
  bool all = false;
  bool json = false;
};

struct Report {
  const Loaded& loaded;
  trace::LaunchTotals launches = {};
  trace::Statistics statistics = {};
  bool over_all = false;  // the statistics include launches that are not complete
  ClockSummary clocks = {};
};

std::string KernelName(const trace::Model& model, uint32_t kernel) {
  if (kernel == trace::kNoRow) return "unknown kernel";
  return model.String(model.kernels[kernel].short_name);
}

// In full, as the compiler names it.
std::string FullName(const trace::Model& model, uint32_t kernel) {
  if (kernel == trace::kNoRow) return "";
  const trace::Kernel& row = model.kernels[kernel];
  return model.String(row.demangled != 0 ? row.demangled : row.mangled);
}

std::string TrustText(const Report& report) {
  const trace::Model& model = report.loaded.model;
  const trace::Counters& counters = model.counters;
  Table table({Align::kLeft, Align::kLeft});
  for (const std::string& device : DeviceNames(report.loaded)) table.Row({"device", device});
  table.Row(
      {"launches", fmt::format("{}: {} complete, {} partial, {} not matched with the host's log",
                               Count(report.launches.launches), Count(report.launches.complete),
                               Count(report.launches.partial), Count(report.launches.unknown))});
  if (report.launches.by_graphs != 0) {
    table.Row({"graphs", GraphsText(report.launches.by_graphs, report.launches.replays_known)});
  }
  std::string warps = fmt::format("{}, {} without begin, {} without end, {} missing",
                                  Count(report.launches.warps), Count(counters.warps_begin_missing),
                                  Count(counters.warps_end_missing), Count(counters.warps_missing));
  if (report.launches.pieces != 0) {
    warps += fmt::format("; {} of unknown warps", Counted(report.launches.pieces, "piece"));
  }
  table.Row({"warps", warps});
  for (const capture::KernelFilter& filter : report.loaded.facts().filters) {
    const capture::Kernel* const kernel = report.loaded.facts().FindKernel(filter.kernel);
    table.Row({"only CTAs", fmt::format("{}, of {}", FilterText(filter),
                                        kernel != nullptr ? Printable(kernel->demangled_name)
                                                          : "a kernel that is not known")});
  }
  table.Row({"records", fmt::format("{} written, {} kept, {}{} lost ({})",
                                    Count(counters.records_written), Count(counters.records_kept),
                                    counters.lost_is_lower_bound != 0 ? "at least " : "",
                                    Count(counters.records_lost),
                                    Share(counters.records_lost, counters.records_written))});
  table.Row({"suspect", fmt::format("{}, {} unknown, {} of unknown id",
                                    Counted(counters.suspect_rings, "ring"),
                                    Counted(counters.unknown_records, "record"),
                                    Counted(counters.unknown_ids, "event"))});
  table.Row({"unmatched",
             fmt::format("{} without begin, {} without end",
                         Counted(counters.unmatched_ends + counters.unmatched_ends_lossy, "close"),
                         Counted(counters.unclosed_ranges, "range"))});
  if (report.clocks.sms == 0 && !report.loaded.reader) {
    table.Row({"clock", "%globaltimer alone, in steps of 32 ns"});
  } else {
    table.Row({"clock", fmt::format("{}, {:.3f} to {:.3f} GHz; residual at most {:.1f} ns, rms at "
                                    "most {:.1f} ns",
                                    Counted(report.clocks.sms, "SM"), report.clocks.ghz_min,
                                    report.clocks.ghz_max, report.clocks.residual_max_ns,
                                    report.clocks.residual_rms_ns)});
  }
  table.Row({"known to", trace::UncertaintyOf(model).Sentence()});
  for (const trace::CounterInfo& info : trace::AllCounters()) {
    const uint64_t value = counters.*info.member;
    if (info.fault && value != 0) {
      table.Row({"note", fmt::format("{} {}", Count(value), info.meaning)});
    }
  }
  for (const trace::Kernel& kernel : model.kernels) {
    if (kernel.refusal == 0) continue;
    table.Row({"refused",
               Printable(model.String(kernel.short_name) + ": " + model.String(kernel.refusal))});
  }
  return "trust\n" + table.Text(2);
}

std::string OverText(const Report& report) {
  const auto& statistics = report.statistics;
  const std::string used = Counted(statistics.launches_used, "launch", "launches");
  const std::string times = Simulated(report.loaded) ? "; times are a model's" : "";
  if (!report.over_all) {
    std::string left_out;
    if (statistics.launches_left_out != 0) {
      left_out = Counted(statistics.launches_left_out, "launch", "launches");
    }
    if (report.launches.pieces != 0) {
      left_out += fmt::format("{}{} of unknown warps", left_out.empty() ? "" : " and ",
                              Counted(report.launches.pieces, "piece"));
    }
    return fmt::format("over the {} that {} complete{}{}", used,
                       statistics.launches_used == 1 ? "is" : "are",
                       left_out.empty() ? "" : "; not " + left_out + " (--all shows them)", times);
  }
  if (report.launches.complete == report.launches.launches) {
    return fmt::format("over {}{}", used, times);
  }
  return fmt::format("over {}, complete or not{}", used, times);
}

// What the numbers stand for, of the kernels that the report names. Instances of a template share
// a short name.
std::string NumbersText(const Report& report, std::vector<uint32_t> kernels) {
  const trace::Model& model = report.loaded.model;
  for (uint32_t i = 0; i < model.kernels.size(); ++i) {
    if (model.kernels[i].refusal != 0) kernels.push_back(i);
  }
  std::sort(kernels.begin(), kernels.end());
  kernels.erase(std::unique(kernels.begin(), kernels.end()), kernels.end());
  Table table({Align::kLeft, Align::kLeft});
  bool any = false;
  for (const uint32_t kernel : kernels) {
    if (kernel == trace::kNoRow || !model.kernels[kernel].numbered) continue;
    table.Row({Printable(KernelName(model, kernel)), Printable(FullName(model, kernel))});
    any = true;
  }
  return any ? "\nkernels of one name\n" + table.Text(2) : "";
}

// Where ranges and marks of a name begin in the source; line 0 if that is not known, or at several
// places.
struct Place {
  std::string file;
  uint32_t line = 0;

  std::string Text() const { return PlaceText(file, line); }
};

Place PlaceOf(const trace::Model& model, trace::StringId name) {
  Place place;
  for (const trace::Declaration& declaration : model.declarations) {
    if (declaration.name != name || trace::Closes(declaration.kind)) continue;
    if (declaration.line == 0) return {};
    const std::string& file = model.String(declaration.file);
    if (place.line != 0 && (place.line != declaration.line || place.file != file)) return {};
    place = {.file = file, .line = declaration.line};
  }
  return place;
}

void WritePlace(JsonWriter& json, const trace::Model& model, trace::StringId name) {
  const Place place = PlaceOf(model, name);
  json.Member("source_file", place.file);
  json.Member("source_line", place.line);
}

std::string StatisticsText(const Report& report) {
  const trace::Model& model = report.loaded.model;
  std::vector<uint32_t> kernels;  // in the order of their largest range
  const auto add = [&](uint32_t kernel) {
    if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) {
      kernels.push_back(kernel);
    }
  };
  for (const auto& row : report.statistics.ranges) add(row.kernel);
  for (const auto& row : report.statistics.marks) add(row.kernel);

  std::string text = fmt::format("\nranges and marks, {}\n", OverText(report));
  for (uint32_t kernel : kernels) {
    Table table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                 Align::kRight, Align::kLeft});
    table.Row({"name", "n", "total", "median", "p99", "max", ""});
    for (const auto& row : report.statistics.ranges) {
      if (row.kernel != kernel) continue;
      std::string note = PlaceOf(model, row.name).Text();
      if (row.unclosed != 0) {
        note += fmt::format("{}and {} without end", note.empty() ? "" : "  ", Count(row.unclosed));
      }
      table.Row({Printable(model.String(row.name)), Count(row.count), Duration(row.ns.total),
                 Duration(row.ns.median), Duration(row.ns.p99), Duration(row.ns.max), note});
    }
    for (const auto& row : report.statistics.marks) {
      if (row.kernel != kernel) continue;
      table.Row({Printable(model.String(row.name)), Count(row.count), "mark", "", "", "",
                 PlaceOf(model, row.name).Text()});
    }
    text += fmt::format("\n{}\n", Printable(KernelName(model, kernel))) + table.Text(2);
  }
  if (kernels.empty()) text += "  none\n";
  return text + NumbersText(report, kernels);
}

void WriteKernel(JsonWriter& json, const trace::Model& model, uint32_t kernel) {
  json.Member("kernel", KernelName(model, kernel));
  json.Member("kernel_demangled", FullName(model, kernel));
  json.Member("kernel_mangled",
              kernel == trace::kNoRow ? "" : model.String(model.kernels[kernel].mangled));
}

void WriteDurations(JsonWriter& json, std::string_view key, const trace::Durations& durations) {
  auto object = json.Object(key);
  json.Member("total", durations.total);
  json.Member("mean", durations.mean);
  json.Member("min", durations.min);
  json.Member("median", durations.median);
  json.Member("p99", durations.p99);
  json.Member("max", durations.max);
}

void WriteTrust(JsonWriter& json, const Report& report) {
  const trace::Model& model = report.loaded.model;
  auto trust = json.Object("trust");
  json.Member("damage", report.loaded.facts().damage.Summary());
  {
    auto devices = json.Array("devices");
    for (const std::string& device : DeviceNames(report.loaded)) json.Value(device);
  }
  json.Member("simulated", Simulated(report.loaded));
  {
    auto launches = json.Object("launches");
    json.Member("all", report.launches.launches);
    json.Member("complete", report.launches.complete);
    json.Member("partial", report.launches.partial);
    json.Member("unknown", report.launches.unknown);
    json.Member("by_graphs", report.launches.by_graphs);
    json.Member("replays_known", report.launches.replays_known);
  }
  json.Member("warps", report.launches.warps);
  json.Member("pieces_of_unknown_warps", report.launches.pieces);
  json.Member("events", report.launches.events);
  {
    auto counters = json.Object("counters");
    for (const trace::CounterInfo& info : trace::AllCounters()) {
      json.Member(info.name, model.counters.*info.member);
    }
  }
  {
    auto clock = json.Object("clock");
    json.Member("sms", report.clocks.sms);
    json.Member("residual_max_ns", report.clocks.residual_max_ns);
    json.Member("residual_rms_ns", report.clocks.residual_rms_ns);
    json.Member("ghz_min", report.clocks.ghz_min);
    json.Member("ghz_max", report.clocks.ghz_max);
    json.Member("known_to", trace::UncertaintyOf(model).Sentence());
  }
  auto refused = json.Array("refused");
  for (const trace::Kernel& kernel : model.kernels) {
    if (kernel.refusal == 0) continue;
    auto entry = json.Object();
    json.Member("kernel", model.String(kernel.demangled));
    json.Member("reason", model.String(kernel.refusal));
  }
}

std::string ReportJson(const Report& report) {
  const trace::Model& model = report.loaded.model;
  JsonWriter json;
  {
    auto object = json.Object();
    json.Member("file", report.loaded.path);
    WriteTrust(json, report);
    WriteStandstill(json, model);
    json.Member("statistics_over", report.over_all ? "all" : "complete");
    json.Member("launches_used", report.statistics.launches_used);
    json.Member("launches_left_out", report.statistics.launches_left_out);
    {
      auto ranges = json.Array("ranges");
      for (const auto& row : report.statistics.ranges) {
        auto range = json.Object();
        WriteKernel(json, model, row.kernel);
        json.Member("name", model.String(row.name));
        WritePlace(json, model, row.name);
        json.Member("n", row.count);
        json.Member("unclosed", row.unclosed);
        json.Member("crossed", row.crossed);
        WriteDurations(json, "ns", row.ns);
        WriteDurations(json, "cycles", row.cycles);
      }
    }
    auto marks = json.Array("marks");
    for (const auto& row : report.statistics.marks) {
      auto mark = json.Object();
      WriteKernel(json, model, row.kernel);
      json.Member("name", model.String(row.name));
      WritePlace(json, model, row.name);
      json.Member("n", row.count);
    }
  }
  return json.Take();
}

Result<int> RunReport(const Options& options) {
  auto loaded = Load(options.file);
  if (!loaded) return tl::unexpected(loaded.error());
  Report report{.loaded = *loaded, .launches = trace::CountLaunches(loaded->model)};
  // Where no launch is complete, what there is beats an empty table; the heading says so.
  report.over_all = options.all || report.launches.complete == 0;
  report.statistics = trace::Summarize(loaded->model, {.all_launches = report.over_all});
  report.clocks = SummarizeClocks(loaded->model);
  Print(options.json ? ReportJson(report) + "\n"
                     : TrustText(report) + StandstillText(*loaded) + StatisticsText(report));
  return ReadCode(*loaded);
}

}  // namespace

void AddReport(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "report", "Say what a capture holds: what can be trusted, then how long things took");
  sub->add_option("file", options->file, "Capture (.iketcap)")->required()->type_name("FILE");
  sub->add_flag("--all", options->all,
                "Statistics over all launches, not only over those that are complete");
  sub->add_flag("--json", options->json, "Say it as JSON");
  sub->callback([options, &run] { run = [options] { return RunReport(*options); }; });
}

}  // namespace iket::cli
