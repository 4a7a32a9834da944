#include "cli/standstill_text.h"

#include <algorithm>
#include <bit>
#include <concepts>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "analyze/waits.h"
#include "cli/terminal.h"
#include "cli/text.h"

namespace iket::cli {
namespace {

using analyze::StandstillGroup;
using analyze::StandstillLaunch;
using exporter::JsonWriter;
using Align = Table::Align;

constexpr size_t kGroupsShown = 12;
constexpr size_t kLaunchesShown = 8;
constexpr size_t kRunsShown = 4;

// "0-131, 140": sorted numbers, the first few runs of them.
std::string Runs(std::vector<uint32_t> numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string text;
  size_t runs = 0;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (runs == kRunsShown) return text + fmt::format(" and {} more", Count(numbers.size() - i));
    if (runs++ != 0) text += ", ";
    text += end - i == 1 ? fmt::format("{}", numbers[i])
                         : fmt::format("{}-{}", numbers[i], numbers[end - 1]);
    i = end;
  }
  return text;
}

// "CTA 0-131, warp 4-7", or for a single warp also its SM.
std::string Where(const trace::Model& model, const StandstillGroup& group) {
  const trace::Warps& warps = model.warps;
  std::vector<uint32_t> ctas, indices, sms;
  bool flat = true;
  size_t unknown = 0;
  for (const uint32_t warp : group.warps) {
    if ((warps.flags[warp] & trace::kWarpOrphan) != 0) {
      ++unknown;
      continue;
    }
    flat &= warps.cta_y[warp] == 0 && warps.cta_z[warp] == 0;
    ctas.push_back(warps.cta_x[warp]);
    if (warps.index[warp] != trace::kNoRow) indices.push_back(warps.index[warp]);
    sms.push_back(warps.sm[warp]);
  }
  std::string text;
  if (!ctas.empty()) {
    const uint32_t first = group.warps.front();
    text = flat ? "CTA " + Runs(ctas)
                : fmt::format("CTA ({}, {}, {}){}", warps.cta_x[first], warps.cta_y[first],
                              warps.cta_z[first], ctas.size() > 1 ? " and others" : "");
    if (!indices.empty()) text += "; warp " + Runs(indices);
    if (ctas.size() == 1) text += fmt::format("; SM {}", sms.front());
  }
  if (unknown != 0) {
    text += fmt::format("{}{} of unknown CTA", text.empty() ? "" : "; ", Count(unknown));
  }
  return text;
}

std::string OpenRanges(const trace::Model& model, const StandstillGroup& group) {
  std::string text = group.may_be_deeper ? "..." : "";
  for (const uint32_t declaration : group.open) {
    if (!text.empty()) text += " > ";
    text += Printable(model.DeclarationName(declaration));
  }
  return text.empty() ? "none" : text;
}

std::string LastEvent(const trace::Model& model, const StandstillGroup& group) {
  if (group.last_event == trace::kNoRow) return "none";
  const trace::Declaration& declaration = model.declarations[group.last_event];
  std::string name = Printable(model.NameOf(declaration));
  if (group.last_closes) return name.empty() ? "pop" : "end of " + name;
  if (trace::Opens(declaration.kind)) return "begin of " + name;
  return declaration.kind == trace::EventKind::kUnknown ? "unknown event" : name;
}

// A payload as its type reads. Values of one type compare as such.
using Payload = std::variant<uint64_t, int64_t, double>;
Payload PayloadOf(trace::PayloadType type, uint64_t bits) {
  const auto low = static_cast<uint32_t>(bits);
  switch (type) {
    case trace::PayloadType::kF32:
      return std::bit_cast<float>(low);
    case trace::PayloadType::kF64:
      return std::bit_cast<double>(bits);
    case trace::PayloadType::kS32:
      return int64_t{static_cast<int32_t>(low)};
    case trace::PayloadType::kS64:
      return static_cast<int64_t>(bits);
    default:
      return bits;
  }
}

std::string PayloadText(trace::PayloadType type, uint64_t bits) {
  return std::visit(
      [](auto value) {
        if constexpr (std::same_as<decltype(value), double>)
          return fmt::format("{:g}", value);
        else
          return fmt::format("{}", value);
      },
      PayloadOf(type, bits));
}

// "7", or "7 .. 12": the smallest and the largest, as their type orders them.
std::string Payloads(const trace::Model& model, const StandstillGroup& group) {
  if (group.payloads.empty()) return "";
  const trace::PayloadType type = model.declarations[group.last_event].payload;
  const auto [least, most] = std::ranges::minmax_element(
      group.payloads, {}, [type](uint64_t bits) { return PayloadOf(type, bits); });
  const std::string from = PayloadText(type, *least), to = PayloadText(type, *most);
  return from == to ? from : from + " .. " + to;
}

// How long before the newest event of the launch the warps fell silent.
std::string Silence(const StandstillLaunch& launch, const StandstillGroup& group) {
  const std::string least = Duration(launch.newest_ns - group.last_ns);
  const std::string most = Duration(launch.newest_ns - group.first_ns);
  return least == most ? least : least + " .. " + most;
}

std::string LaunchName(const trace::Model& model, const trace::Launch& launch) {
  std::string name = launch.kernel == trace::kNoRow
                         ? "unknown kernel"
                         : Printable(model.String(model.kernels[launch.kernel].short_name));
  if (launch.sequence != trace::kNoRow) name += fmt::format(", launch {}", Count(launch.sequence));
  if (launch.graph == trace::kNoRow) return name;
  name += fmt::format(", graph {}", launch.graph);
  if (launch.node != trace::kNoRow) name += fmt::format(" node {}", launch.node);
  if (launch.replay != trace::kNoRow) name += fmt::format(" replay {}", launch.replay);
  return name;
}

// Of the warps of a group that wait for something with a partner: how many have none, and how many
// lost what would say so.
struct GroupWaits {
  std::optional<analyze::Wait> first;  // of one of them
  size_t waiting = 0, without_partner = 0, lossy = 0;
};
GroupWaits WaitsOf(const StandstillGroup& group, analyze::Waits& waits) {
  GroupWaits all;
  for (const uint32_t warp : group.warps) {
    auto wait = waits.Of(warp);
    if (!wait) continue;
    ++all.waiting;
    all.without_partner += wait->without_partner() ? 1 : 0;
    all.lossy += wait->lossy ? 1 : 0;
    if (!all.first) all.first = std::move(wait);
  }
  return all;
}

// "arrive full or release full".
std::string Partners(const trace::Model& model, const analyze::Wait& wait) {
  std::vector<std::string> names;
  for (const uint32_t row : wait.partners) {
    names.push_back(Printable(model.DeclarationName(row)));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return fmt::format("{}", fmt::join(names, " or "));
}

std::string WaitsText(const trace::Model& model, const StandstillGroup& group,
                      analyze::Waits& waits) {
  const GroupWaits all = WaitsOf(group, waits);
  if (all.waiting == 0) return "";
  const std::string name = Printable(model.DeclarationName(all.first->declaration));
  const std::string partners = Partners(model, *all.first);
  std::string text = fmt::format("    {}: ", name);
  if (all.without_partner != 0) {
    text += fmt::format("{} of {} without a partner, {} came less often than they wait",
                        Count(all.without_partner), Counted(all.waiting, "warp"), partners);
  } else if (all.lossy != 0) {
    text += fmt::format("whether {} came is not known, records were lost", partners);
  } else {
    text += fmt::format("{} came as often as they wait, or oftener", partners);
  }
  return text + "\n";
}

std::string LaunchText(const Loaded& loaded, const StandstillLaunch& launch) {
  const trace::Model& model = loaded.model;
  std::string text = fmt::format("\n  {}: {} had not ended, {} had",  //
                                 LaunchName(model, model.launches[launch.launch]),
                                 Counted(launch.running, "warp"), Count(launch.ended));
  if (launch.not_seen != 0) {
    text += fmt::format(", {} not started or overwritten", Count(launch.not_seen));
  }
  // A software device's time has nothing to do with the host's.
  if (model.read_ns && !Simulated(loaded)) {
    text += fmt::format("\n  no event in the last {} before the rings were read",
                        Duration(std::max(0.0, *model.read_ns - launch.newest_ns)));
  }
  text += "\n";
  Table table(
      {Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft});
  table.Row({"warps", "ranges open", "last event", "payload", "silent before newest", "where"});
  const size_t shown = std::min(launch.groups.size(), kGroupsShown);
  for (const StandstillGroup& group : std::span(launch.groups).first(shown)) {
    table.Row({Count(group.warps.size()), OpenRanges(model, group), LastEvent(model, group),
               Payloads(model, group), Silence(launch, group), Where(model, group)});
  }
  text += table.Text(4);
  analyze::Waits waits(model, launch.launch);
  for (const StandstillGroup& group : std::span(launch.groups).first(shown)) {
    text += WaitsText(model, group, waits);
  }
  if (shown < launch.groups.size()) {
    uint64_t warps = 0;
    for (const StandstillGroup& group : std::span(launch.groups).subspan(shown)) {
      warps += group.warps.size();
    }
    text += fmt::format("    and {} in {} further states (--json has all)\n",
                        Counted(warps, "warp"), Count(launch.groups.size() - shown));
  }
  return text;
}

void WriteWaits(JsonWriter& json, const trace::Model& model, const GroupWaits& all) {
  if (all.waiting == 0) return;
  auto object = json.Object("wait");
  json.Member("event", model.DeclarationName(all.first->declaration));
  {
    auto partners = json.Array("partners");
    for (const uint32_t row : all.first->partners) json.Value(model.DeclarationName(row));
  }
  json.Member("warps", all.waiting);
  json.Member("warps_without_partner", all.without_partner);
  json.Member("warps_lossy", all.lossy);
}

}  // namespace

std::string StandstillText(const Loaded& loaded) {
  const auto launches = analyze::FindStandstill(loaded.model);
  if (launches.empty()) return "";
  std::string text = "\nwhat everyone was doing\n";
  const size_t shown = std::min(launches.size(), kLaunchesShown);
  for (const auto& launch : std::span(launches).first(shown)) text += LaunchText(loaded, launch);
  if (shown < launches.size()) {
    text += fmt::format("\n  and {} (--json has all)\n",
                        Counted(launches.size() - shown, "further launch", "further launches"));
  }
  return text;
}

void WriteStandstill(JsonWriter& json, const trace::Model& model) {
  auto launches = json.Array("standstill");
  for (const StandstillLaunch& launch : analyze::FindStandstill(model)) {
    auto object = json.Object();
    const trace::Launch& of = model.launches[launch.launch];
    json.Member("kernel", of.kernel == trace::kNoRow
                              ? std::string()
                              : model.String(model.kernels[of.kernel].short_name));
    json.Member("launch", of.sequence == trace::kNoRow ? -1 : int64_t{of.sequence});
    json.Member("warps_running", launch.running);
    json.Member("warps_ended", launch.ended);
    json.Member("warps_not_seen", launch.not_seen);
    analyze::Waits waits(model, launch.launch);
    auto groups = json.Array("groups");
    for (const StandstillGroup& group : launch.groups) {
      auto entry = json.Object();
      {
        auto open = json.Array("open_ranges");
        for (const uint32_t range : group.open) json.Value(model.DeclarationName(range));
      }
      json.Member("may_be_deeper", group.may_be_deeper);
      json.Member("last_event", LastEvent(model, group));
      json.Member("silent_ns_min", launch.newest_ns - group.last_ns);
      json.Member("silent_ns_max", launch.newest_ns - group.first_ns);
      WriteWaits(json, model, WaitsOf(group, waits));
      auto warps = json.Array("warps");
      for (size_t i = 0; i < group.warps.size(); ++i) {
        const uint32_t row = group.warps[i];
        auto warp = json.Object();
        json.Member("cta_x", model.warps.cta_x[row]);
        json.Member("cta_y", model.warps.cta_y[row]);
        json.Member("cta_z", model.warps.cta_z[row]);
        json.Member("warp",
                    model.warps.index[row] == trace::kNoRow ? -1 : int64_t{model.warps.index[row]});
        json.Member("sm", model.warps.sm[row]);
        json.Member("slot", model.warps.slot[row]);
        if (!group.payloads.empty()) {
          json.Member("payload",
                      PayloadText(model.declarations[group.last_event].payload, group.payloads[i]));
        }
      }
    }
  }
}

}  // namespace iket::cli
