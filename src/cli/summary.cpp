#include "cli/summary.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>

#include "cli/terminal.h"
#include "cli/text.h"
#include "export/json_writer.h"
#include "trace/statistics.h"

namespace iket::cli {
namespace {

constexpr size_t kRangesShown = 5;
constexpr size_t kRefusalLines = 10;

// "a, b and 3 more".
std::string NameList(std::span<const std::string> names) {
  constexpr size_t kNamesShown = 10;
  std::string text =
      fmt::format("{}", fmt::join(names.first(std::min(names.size(), kNamesShown)), ", "));
  if (names.size() > kNamesShown) text += fmt::format(" and {} more", names.size() - kNamesShown);
  return text;
}

void AddOnce(std::string name, std::vector<std::string>& names) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
}

}  // namespace

void Summary::Add(const Loaded& loaded) {
  const trace::Model& model = loaded.model;
  for (std::string& name : DeviceNames(loaded)) {
    if (std::ranges::find(devices_, name) == devices_.end()) devices_.push_back(std::move(name));
  }
  simulated_ |= Simulated(loaded);
  const trace::LaunchTotals totals = trace::CountLaunches(model);
  launches_ += totals.launches;
  complete_ += totals.complete;
  partial_ += totals.partial;
  unknown_ += totals.unknown;
  by_graphs_ += totals.by_graphs;
  replays_known_ += totals.replays_known;
  warps_ += totals.warps;
  running_ += model.counters.warps_running;
  events_ += totals.events;
  if (loaded.tally) {
    warps_ += loaded.tally->warps;
    events_ += loaded.tally->events;
    records_lost_ += loaded.tally->lost();
    records_written_ += loaded.tally->written;
    lost_is_lower_bound_ |= loaded.tally->is_lower_bound;
    counted_.push_back(loaded.path);
  }
  records_lost_ += model.counters.records_lost;
  records_written_ += model.counters.records_written;
  lost_is_lower_bound_ |= model.counters.lost_is_lower_bound != 0;
  for (size_t i = 0; i < model.kernels.size(); ++i) {
    const trace::Kernel& kernel = model.kernels[i];
    const capture::Kernel& stated = loaded.facts().kernels[i];
    if (stated.state != capture::KernelState::kRefused) {
      sites_ += stated.sites;
      sites_left_out_ += stated.sites_left_out;
    }
    if (kernel.left_out) {
      const std::string name = Printable(model.String(kernel.short_name));
      AddOnce(name, left_out_);
      if (!stated.refusal.empty()) AddOnce(name, without_events_);
      continue;
    }
    if (kernel.refusal == 0) {
      ++kernels_;
      continue;
    }
    const std::string name = Printable(model.String(kernel.short_name));
    const std::string reason = Printable(model.String(kernel.refusal));
    const auto same = std::find_if(refusals_.begin(), refusals_.end(), [&](const Refusal& r) {
      return r.kernel == name && r.reason == reason;
    });
    if (same != refusals_.end()) {
      ++same->count;
    } else {
      refusals_.push_back({name, reason, 1});
    }
  }
  for (const auto& note : loaded.facts().notes) {
    // Refusals of whole images; those of kernels stand at the kernels.
    if (note.severity == capture::Severity::kRefusal && note.kernel < 0) {
      refusals_.push_back({"", Printable(note.text), 1});
    }
  }
  for (const auto& kernel : loaded.facts().kernels) names_.push_back(kernel.mangled_name);
  for (const auto& filter : loaded.facts().filters) AddOnce(FilterText(filter), filters_);
  for (const auto& declaration : loaded.facts().declarations) {
    // Neither has a name of the program's.
    if (declaration.kind == capture::EventKind::kPop) continue;
    if (declaration.kind == capture::EventKind::kSync) continue;
    (declaration.left_out ? events_left_out_ : events_wanted_).insert(Printable(declaration.name));
  }
  const auto is_left_out = [](const auto& launch) { return launch.left_out && !launch.failed; };
  launches_left_out_ += std::ranges::count_if(loaded.facts().launches, is_left_out) +
                        std::ranges::count_if(loaded.facts().graph_launches, is_left_out);
  for (const auto& context : loaded.facts().contexts) {
    device_memory_bytes_ += context.device_memory_bytes;
    sink_contexts_ += context.sink_only ? 1 : 0;
    ++contexts_;
  }
  clocks_.Add(SummarizeClocks(model));
  // All launches: the five longest names must not depend on what a full ring overwrote.
  for (const auto& row : trace::Summarize(model, {.all_launches = true}).ranges) {
    Range& range = ranges_[Printable(model.String(row.name))];
    range.total_ns += row.ns.total;
    range.count += row.count;
    range.open += row.unclosed;
  }
  if (loaded.facts().damage.any()) {
    damage_.push_back(fmt::format("{}: {}", loaded.path, loaded.facts().damage.Summary()));
  }
}

template <typename Key>
Summary::NamedRanges Summary::Most(uint64_t Range::* count, Key Range::* key) const {
  NamedRanges most;
  std::ranges::copy_if(ranges_, std::back_inserter(most),
                       [&](const auto& range) { return range.second.*count != 0; });
  std::ranges::stable_sort(most, std::greater(),
                           [&](const auto& range) { return range.second.*key; });
  most.resize(std::min(most.size(), kRangesShown));
  return most;
}

std::string Summary::Text() const {
  using Align = Table::Align;
  Table names({Align::kLeft, Align::kRight, Align::kRight});
  const auto longest = LongestRanges();
  for (const auto& [name, range] : longest) {
    names.Row({name, Duration(range.total_ns), Counted(range.count, "time")});
  }
  const std::string name_lines = names.Text();

  Table table({Align::kLeft, Align::kLeft});
  for (const std::string& device : devices_) table.Row({"device", device});
  table.Row({"kernels",
             fmt::format("{} traced, {}{} refused", Count(kernels_),
                         left_out_.empty() ? "" : fmt::format("{} left out, ", left_out_.size()),
                         Count(refusals_.size()))});
  std::string launches = fmt::format("{}: {} complete, {} partial", Count(launches_),
                                     Count(complete_), Count(partial_));
  if (unknown_ != 0)
    launches += fmt::format(", {} not matched with the host's log", Count(unknown_));
  if (launches_left_out_ != 0) {
    launches +=
        fmt::format("; the host made {} more that were left out", Count(launches_left_out_));
  }
  table.Row({"launches", fmt::format("{}; {}", launches, Counted(warps_, "warp"))});
  for (const std::string& filter : filters_) table.Row({"only CTAs", filter});
  if (by_graphs_ != 0) table.Row({"graphs", GraphsText(by_graphs_, replays_known_)});
  if (running_ != 0) {
    table.Row({"not ended", fmt::format("{}; iket report says what they were doing",
                                        Counted(running_, "warp"))});
  }
  // What is lost is known in records only: events, begins and identities of warps.
  const std::string lost =
      records_lost_ == 0
          ? "0 lost (0 %)"
          : fmt::format("{}{} records overwritten ({} of all); --ring sets the size",
                        lost_is_lower_bound_ ? "at least " : "", Count(records_lost_),
                        Share(records_lost_, records_written_));
  table.Row({"events", fmt::format("{} kept, {}", Count(events_), lost)});
  if (!events_left_out_.empty()) {
    std::set<std::string> all =
        events_wanted_;  // a name may be wanted in one row and not in others
    all.insert(events_left_out_.begin(), events_left_out_.end());
    table.Row({"only", fmt::format("{} of {}; {} of {} stay as they were",
                                   Count(events_wanted_.size()), Counted(all.size(), "name"),
                                   Count(sites_left_out_), Counted(sites_, "site"))});
  }
  if (longest.empty()) table.Row({"longest ranges", "none"});
  size_t start = 0;
  for (size_t i = 0; i < longest.size(); ++i) {
    const size_t end = name_lines.find('\n', start);
    table.Row({i == 0 ? "longest ranges" : "", name_lines.substr(start, end - start)});
    start = end + 1;
  }
  const auto open = OpenRanges();
  for (const auto& [name, range] : open) {
    table.Row({&range == &open.front().second ? "still open" : "",
               fmt::format("{}  {}", name, Counted(range.open, "time"))});
  }
  if (const std::string change = clocks_.Change(); !change.empty()) table.Row({"clock", change});
  table.Row(
      {"device memory",
       Bytes(device_memory_bytes_) +
           (contexts_ > 1 ? fmt::format(" in {} contexts", contexts_) : "") +
           (memory_cap_ == 0 ? "" : fmt::format(", at most {} at a time", Bytes(memory_cap_)))});
  if (sink_contexts_ != 0) {
    table.Row({"not recorded", fmt::format("kernels of {}: no device memory for rings; try a "
                                           "smaller --ring, or more --memory",
                                           Counted(sink_contexts_, "context"))});
  }
  for (size_t i = 0; i < std::min(refusals_.size(), kRefusalLines); ++i) {
    const Refusal& refusal = refusals_[i];
    std::string line = refusal.kernel.empty()
                           ? refusal.reason
                           : fmt::format("{}: {}", refusal.kernel, refusal.reason);
    if (refusal.count > 1) line += fmt::format(" ({} times)", refusal.count);
    table.Row({"refused", line});
  }
  if (refusals_.size() > kRefusalLines) {
    table.Row({"refused", fmt::format("and {} more", refusals_.size() - kRefusalLines)});
  }
  for (const std::string& path : counted_) {
    table.Row({"only counted", fmt::format("{}: decoded it would be larger than the memory that is "
                                           "left; nothing was exported, launches were not told "
                                           "apart",
                                           Printable(path))});
  }
  for (const std::string& damage : damage_) table.Row({"damaged", damage});
  for (size_t i = 0; i < files_.size(); ++i) {
    table.Row({i == 0 ? "files" : "",
               fmt::format("{} ({})", Printable(files_[i].path), Bytes(files_[i].bytes))});
  }
  return table.Text(2);
}

std::vector<std::string> Summary::UnusedRules(const session::Selection& selection) const {
  std::vector<std::string> unused;
  for (const session::ClusterRule& rule : selection.rules) {
    const bool is_used = std::ranges::any_of(
        names_, [&](const std::string& name) { return name.find(rule.part) != std::string::npos; });
    if (!is_used) unused.push_back(rule.part);
  }
  return unused;
}

std::string Summary::WhyNoEvents(const session::Selection& selection) const {
  if (selection.events.empty() || events_left_out_.empty() || !events_wanted_.empty()) return "";
  const std::vector<std::string> names(events_left_out_.begin(), events_left_out_.end());
  return fmt::format(
      "--range-filter '{}' is found in no name, category, group or lane of a mark or range; there "
      "are {}",
      Printable(selection.events), NameList(names));
}

std::string Summary::WhyNothing(const session::Selection& selection) const {
  if (warps_ != 0) return "";
  if (const std::string why = WhyNoEvents(selection); !why.empty()) return why;
  if (kernels_ == 0 && !without_events_.empty()) {
    return fmt::format(
        "--range-filter '{}' is found in no name, category, group or lane of a mark or range of {}",
        Printable(selection.events), NameList(without_events_));
  }
  if (kernels_ == 0 && !selection.triggers.empty()) {
    std::vector<std::string> masks;
    for (const auto& [mask, name] : selection.triggers) masks.push_back(std::to_string(mask));
    return fmt::format("--pmevent: no code that declares no marks has a pmevent of mask {}",
                       fmt::join(masks, ", "));
  }
  if (kernels_ == 0 && !left_out_.empty()) {
    return fmt::format("--kernel '{}' is found in no name of a kernel with marks; there are {}",
                       Printable(selection.kernels), NameList(left_out_));
  }
  if (launches_left_out_ != 0) {
    std::string which;
    if (selection.first_launch != 0 || selection.end_launch != UINT64_MAX) which = "--launch";
    if (!selection.nvtx.empty()) which = "--nvtx " + Printable(selection.nvtx);
    if (selection.by_program) which = "--paused";
    return fmt::format("{} launches were made, all outside of what {} selects", launches_left_out_,
                       which.empty() ? "the program" : which);
  }
  if (!selection.ctas.passes_all() || !selection.rules.empty()) {
    return "no CTA that was launched is among those that were selected";
  }
  return "";
}

std::string Summary::Json() const {
  exporter::JsonWriter json;
  {
    auto object = json.Object();
    {
      auto devices = json.Array("devices");
      for (const std::string& device : devices_) json.Value(device);
    }
    json.Member("simulated", simulated_);
    json.Member("kernels", kernels_);
    {
      auto left_out = json.Array("kernels_left_out");
      for (const std::string& name : left_out_) json.Value(name);
    }
    json.Member("sites", sites_);
    json.Member("sites_left_out", sites_left_out_);
    {
      auto left_out = json.Array("names_left_out");
      for (const std::string& name : events_left_out_) json.Value(name);
    }
    {
      auto launches = json.Object("launches");
      json.Member("all", launches_);
      json.Member("complete", complete_);
      json.Member("partial", partial_);
      json.Member("unknown", unknown_);
      json.Member("left_out", launches_left_out_);
      json.Member("by_graphs", by_graphs_);
      json.Member("replays_known", replays_known_);
    }
    json.Member("warps", warps_);
    json.Member("warps_running", running_);
    json.Member("events_kept", events_);
    json.Member("records_written", records_written_);
    json.Member("records_lost", records_lost_);
    json.Member("lost_is_lower_bound", lost_is_lower_bound_);
    json.Member("clock_ghz_min", clocks_.ghz_min);
    json.Member("clock_ghz_max", clocks_.ghz_max);
    json.Member("device_memory_bytes", device_memory_bytes_);
    json.Member("contexts_without_rings", sink_contexts_);
    {
      auto ranges = json.Array("longest_ranges");
      for (const auto& [name, range] : LongestRanges()) {
        auto entry = json.Object();
        json.Member("name", name);
        json.Member("total_ns", range.total_ns);
        json.Member("n", range.count);
      }
    }
    {
      auto ranges = json.Array("open_ranges");
      for (const auto& [name, range] : OpenRanges()) {
        auto entry = json.Object();
        json.Member("name", name);
        json.Member("n", range.open);
      }
    }
    {
      auto refusals = json.Array("refused");
      for (const Refusal& refusal : refusals_) {
        auto entry = json.Object();
        json.Member("kernel", refusal.kernel);
        json.Member("reason", refusal.reason);
        json.Member("times", refusal.count);
      }
    }
    {
      auto counted = json.Array("only_counted");
      for (const std::string& path : counted_) json.Value(path);
    }
    {
      auto damage = json.Array("damaged");
      for (const std::string& line : damage_) json.Value(line);
    }
    auto files = json.Array("files");
    for (const File& file : files_) {
      auto entry = json.Object();
      json.Member("file", file.path);
      json.Member("bytes", file.bytes);
    }
  }
  return json.Take();
}

}  // namespace iket::cli
