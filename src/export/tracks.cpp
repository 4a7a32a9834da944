#include "export/tracks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "export/perfetto_fields.h"
#include "trace/roles.h"
#include "trace/uncertainty.h"

namespace iket::exporter {
namespace {

using trace::kNoRow;

constexpr uint32_t kFirstCurveRank = 3;  // behind the host, its launches and the trace's health

auto CtaOf(const trace::Warps& warps, uint32_t warp) {
  return std::tuple(warps.cta_z[warp], warps.cta_y[warp], warps.cta_x[warp]);
}

std::string_view KernelName(const trace::Model& model, const trace::Launch& launch,
                            trace::StringId trace::Kernel::* name) {
  if (launch.kernel == kNoRow) return "unknown kernel";
  return model.String(model.kernels[launch.kernel].*name);
}

}  // namespace

bool HasHostLaunches(const trace::Model& model) {
  return model.host_clock && std::ranges::any_of(model.launches, IsLaunchedByHost);
}

bool IsLaunchedByHost(const trace::Launch& launch) {
  return launch.sequence != kNoRow && launch.host_ns != 0;
}

std::string_view CompletenessWord(trace::Completeness completeness) {
  switch (completeness) {
    case trace::Completeness::kComplete:
      return "complete";
    case trace::Completeness::kPartial:
      return "partial";
    case trace::Completeness::kUnknown:
      break;
  }
  return "not matched with the host's log";
}

uint64_t CtaCount(const trace::Model& model, const trace::Launch& launch) {
  if (launch.grid[0] != 0) return uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  uint64_t count = 0;
  for (uint32_t i = 0; i < launch.warp_count; ++i) {  // rows are ordered by CTA
    const uint32_t warp = launch.first_warp + i;
    count += i == 0 || CtaOf(model.warps, warp) != CtaOf(model.warps, warp - 1);
  }
  return count;
}

std::string GraphLabel(const trace::Launch& launch) {
  if (launch.graph == kNoRow) return {};
  const auto number = [](uint32_t known) {
    return known == kNoRow ? std::string("?") : std::to_string(known);
  };
  return fmt::format("graph {} node {} replay {}", launch.graph, number(launch.node),
                     number(launch.replay));
}

std::string LaunchLabel(const trace::Model& model, const trace::Launch& launch) {
  if (launch.IsNobodys()) return fmt::format("pieces of unknown warps, context {}", launch.context);
  const std::string_view kernel = KernelName(model, launch, &trace::Kernel::short_name);
  const std::string graph = GraphLabel(launch);
  if (launch.sequence == kNoRow) {
    return fmt::format("#? {} ({}grid id {})", kernel, graph.empty() ? "" : graph + ", ",
                       launch.grid_id);
  }
  return fmt::format("#{} {}<<<{}x{}x{}, {}x{}x{}>>>{}", launch.sequence, kernel, launch.grid[0],
                     launch.grid[1], launch.grid[2], launch.block[0], launch.block[1],
                     launch.block[2], graph.empty() ? "" : " " + graph);
}

TrackTree::TrackTree(const trace::Model& model, std::span<const uint32_t> marked)
    : model_(model), row_of_warp_(model.warps.size(), 0) {
  for (const trace::Launch& launch : model.launches) {
    auto& roles = roles_.emplace_back();
    if (CtaCount(model, launch) > kMaxCtaTracks) {
      PlaceBySlot(launch);
    } else {
      PlaceByWarp(launch);
      roles = trace::RolesOf(model, launch);
    }
  }
  for (const uint32_t warp : marked) rows_[row_of_warp_[warp]].has_marks = true;
  NumberRows();
  GrowTree();
}

trace::SmPlace TrackTree::PlaceOf(uint32_t warp) const {
  const trace::Launch& launch = model_.launches[model_.warps.launch[warp]];
  const auto& places = model_.devices[launch.device].places;
  const uint16_t sm = model_.warps.sm[warp];
  return sm < places.size() ? places[sm] : trace::SmPlace{};
}

void TrackTree::PlaceByWarp(const trace::Launch& launch) {
  Column<uint32_t> warps(launch.warp_count);
  std::iota(warps.begin(), warps.end(), launch.first_warp);
  std::stable_sort(warps.begin(), warps.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(GpcOf(a), model_.warps.sm[a]) < std::pair(GpcOf(b), model_.warps.sm[b]);
  });
  for (uint32_t warp : warps) {
    rows_.push_back({.warp = warp});
    Place(warp, static_cast<uint32_t>(rows_.size() - 1));
  }
}

void TrackTree::PlaceBySlot(const trace::Launch& launch) {
  const trace::Warps& all = model_.warps;
  Column<uint32_t> warps(launch.warp_count);
  std::iota(warps.begin(), warps.end(), launch.first_warp);
  std::sort(warps.begin(), warps.end(), [&](uint32_t a, uint32_t b) {
    return std::tuple(GpcOf(a), all.sm[a], all.slot[a], all.begin_cycles[a], a) <
           std::tuple(GpcOf(b), all.sm[b], all.slot[b], all.begin_cycles[b], b);
  });

  // Warps of one slot follow each other. Only where records contradict that is there a second lane:
  // overlapping slices on one track would be cut by the reader of the trace.
  std::vector<uint64_t> lane_ends;
  size_t first_row = rows_.size();
  for (size_t i = 0; i < warps.size(); ++i) {
    const uint32_t warp = warps[i];
    if (i == 0 || std::tuple(all.sm[warp], all.slot[warp]) !=
                      std::tuple(all.sm[warps[i - 1]], all.slot[warps[i - 1]])) {
      lane_ends.clear();
      first_row = rows_.size();
    }
    uint64_t end = std::max(all.begin_cycles[warp], all.end_cycles[warp]);
    for (uint32_t e = 0; e < all.event_count[warp]; ++e) {
      end = std::max(end, model_.events.cycles[all.first_event[warp] + e]);
    }
    const auto lane = static_cast<size_t>(
        std::find_if(lane_ends.begin(), lane_ends.end(),
                     [&](uint64_t lane_end) { return lane_end <= all.begin_cycles[warp]; }) -
        lane_ends.begin());
    if (lane == lane_ends.size()) {
      lane_ends.push_back(0);
      rows_.push_back({.warp = warp, .lane = static_cast<uint16_t>(lane), .by_slot = true});
    }
    lane_ends[lane] = end;
    Place(warp, static_cast<uint32_t>(first_row + lane));
  }
}

void TrackTree::Place(uint32_t warp, uint32_t row) {
  const trace::Warps& warps = model_.warps;
  row_of_warp_[warp] = row;
  for (uint32_t i = 0; i < warps.range_count[warp]; ++i) {
    const uint32_t range = warps.first_range[warp] + i;
    if (IsApart(range)) {
      apart_[ApartOf(row, range)] = 0;
    } else {
      rows_[row].has_ranges = true;
    }
  }
  for (uint32_t i = 0; i < warps.mark_count[warp]; ++i) {
    PlaceMark(row, model_.events.declaration[model_.marks.event[warps.first_mark[warp] + i]]);
  }
}

void TrackTree::PlaceMark(uint32_t row, uint32_t declaration) {
  if (HasRow(declaration)) {
    apart_[ApartOfMark(row, declaration)] = 0;
  } else {
    rows_[row].has_marks = true;
  }
}

void TrackTree::NumberRows() {
  for (uint32_t event : model_.unmatched_ends) {
    PlaceMark(row_of_warp_[model_.events.warp[event]], model_.events.declaration[event]);
  }
  for (Row& row : rows_) {
    if (row.has_ranges) row.ranges = next_uuid_++;
  }
  for (Row& row : rows_) {
    if (row.has_marks) row.marks = next_uuid_++;
  }
  for (auto& [where, uuid] : apart_) uuid = next_uuid_++;
  for (Row& row : rows_) row.uuid = next_uuid_++;
}

uint64_t TrackTree::Add(uint64_t parent, uint32_t rank, Kind kind, uint32_t subject) {
  tracks_.push_back({next_uuid_, parent, rank, subject, kind});
  return next_uuid_++;
}

uint64_t TrackTree::AddCurve(std::string name, std::string unit, std::string description) {
  const auto number = static_cast<uint32_t>(curves_.size());
  curves_.push_back({std::move(name), std::move(unit), std::move(description)});
  return Add(root_, kFirstCurveRank + number, Kind::kCurve, number);
}

uint32_t TrackTree::AddRow(uint64_t parent, uint32_t rank, uint32_t row) {
  const Row& it = rows_[row];
  tracks_.push_back({it.uuid, parent, rank++, row, Kind::kWarp});
  if (it.has_ranges) tracks_.push_back({it.ranges, it.uuid, 0, row, Kind::kRanges});
  if (it.has_marks) tracks_.push_back({it.marks, it.uuid, 1, row, Kind::kMarks});
  uint32_t rank_in_row = 2;
  for (auto at = apart_.lower_bound({row, 0, 0, Kind::kRoot, 0, 0});
       at != apart_.end() && at->first.row == row; ++at) {
    const Apart& apart = at->first;
    const bool of_group = apart.group != 0;
    tracks_.push_back({.uuid = at->second,
                       .parent = of_group ? parent : it.uuid,
                       .rank = of_group ? rank++ : rank_in_row++,
                       .subject = apart.depth,
                       .kind = apart.kind,
                       .group = apart.group,
                       .lane = apart.lane,
                       .token = apart.token,
                       .row = row});
  }
  return rank;
}

void TrackTree::GrowTree() {
  const trace::Warps& warps = model_.warps;
  const uint64_t root = root_ = Add(0, 0, Kind::kRoot, 0);
  uint32_t rank_in_root = 0;
  if (!model_.host_marks.empty()) host_ = Add(root, rank_in_root++, Kind::kHost, 0);
  if (HasHostLaunches(model_)) {
    host_launches_ = Add(root, rank_in_root++, Kind::kHostLaunches, 0);
  }
  health_ = Add(root, rank_in_root++, Kind::kHealth, 0);
  rank_in_root = kFirstCurveRank + kMostCurves;
  // Rows stand in the order of launches, GPCs, SMs, and CTAs or slots; a new one of these starts
  // where a row differs from the row before.
  uint32_t row = 0;
  for (uint32_t l = 0; l < model_.launches.size(); ++l) {
    const uint64_t launch = Add(root, rank_in_root + l, Kind::kLaunch, l);
    launches_.push_back(launch);
    uint64_t gpc = 0, sm = 0, cta = 0;
    uint32_t cta_rank = 0, rank = 0;
    for (bool first = true; row < rows_.size() && warps.launch[rows_[row].warp] == l; ++row) {
      const uint32_t warp = rows_[row].warp;
      const uint32_t before = first ? warp : rows_[row - 1].warp;
      if (first || GpcOf(warp) != GpcOf(before)) {
        // Unknown places (-1) have no level of their own.
        const int32_t number = GpcOf(warp);
        const auto gpc_rank = static_cast<uint32_t>(number + 1);
        gpc = number < 0 ? launch : Add(launch, gpc_rank, Kind::kGpc, gpc_rank - 1);
      }
      const bool new_sm = first || warps.sm[warp] != warps.sm[before];
      if (new_sm) {
        sm = Add(gpc, warps.sm[warp], Kind::kSm, warp);
        cta_rank = rank = 0;
      }
      if (rows_[row].by_slot) {
        rank = AddRow(sm, rank, row);
      } else {
        if (new_sm || CtaOf(warps, warp) != CtaOf(warps, before)) {
          cta = Add(sm, cta_rank++, Kind::kCta, warp);
          rank = 0;
        }
        rank = AddRow(cta, rank, row);
      }
      first = false;
    }
  }
}

void TrackTree::ForEachRow(const std::function<void(uint64_t uuid, uint32_t launch,
                                                    const std::string& path)>& visit) const {
  Column<uint32_t> track_of(next_uuid_, 0);
  uint32_t launch = 0;
  for (uint32_t i = 0; i < tracks_.size(); ++i) {  // a launch before what is below it
    const Track& track = tracks_[i];
    track_of[track.uuid] = i;
    if (track.kind == Kind::kLaunch) launch = track.subject;
    if (track.kind < Kind::kWarp || track.kind == Kind::kRanges || track.kind == Kind::kMarks) {
      continue;
    }
    std::vector<std::string> names;
    for (const Track* at = &track; at->kind > Kind::kLaunch; at = &tracks_[track_of[at->parent]]) {
      names.push_back(NameOf(*at));
    }
    std::ranges::reverse(names);
    visit(track.uuid, launch, fmt::format("{}", fmt::join(names, " | ")));
  }
}

std::string TrackTree::NameOf(const Track& track) const {
  const trace::Warps& warps = model_.warps;
  switch (track.kind) {
    case Kind::kRoot:
      for (const trace::Device& device : model_.devices) {
        if (device.simulated) return std::string(kSimulatedRoot);
      }
      return "IKET";
    case Kind::kHost:
      return "host";
    case Kind::kHostLaunches:
      return "host launches";
    case Kind::kHealth:
      return "trace health";
    case Kind::kCurve:
      return curves_[track.subject].name;
    case Kind::kLaunch: {
      const trace::Launch& launch = model_.launches[track.subject];
      return LaunchLabel(model_, launch) +
             (model_.devices[launch.device].simulated ? " (software device)" : "");
    }
    case Kind::kGpc:
      return fmt::format("GPC {}", track.subject);
    case Kind::kSm: {
      const int32_t tpc = PlaceOf(track.subject).tpc;
      if (tpc < 0) return fmt::format("SM {}", warps.sm[track.subject]);
      return fmt::format("TPC {} | SM {}", tpc, warps.sm[track.subject]);
    }
    case Kind::kCta:
      if ((warps.flags[track.subject] & trace::kWarpOrphan) != 0) return "CTA ?";
      return fmt::format("CTA ({}, {}, {})", warps.cta_x[track.subject], warps.cta_y[track.subject],
                         warps.cta_z[track.subject]);
    case Kind::kWarp:
      return NameOfRow(rows_[track.subject]) + RoleOfRow(rows_[track.subject]);
    case Kind::kRanges:
      return "StackedRanges";
    case Kind::kMarks:
      return "Marker";
    case Kind::kLane:
    case Kind::kCrossed:
    case Kind::kToken:
      return NameOfApart(track);
  }
  return {};
}

std::string TrackTree::NameOfRow(const Row& row) const {
  const trace::Warps& warps = model_.warps;
  if (row.by_slot) {
    const uint8_t slot = warps.slot[row.warp];
    const std::string name = slot == trace::kNoSlot ? "warps" : fmt::format("slot {}", slot);
    return row.lane == 0 ? name : fmt::format("{} ({})", name, row.lane + 1);
  }
  if (warps.index[row.warp] == kNoRow) return fmt::format("warp ? (slot {})", warps.slot[row.warp]);
  return fmt::format("warp {}", warps.index[row.warp]);
}

std::string TrackTree::RoleOfRow(const Row& row) const {
  if (row.by_slot) return {};
  const auto& roles = roles_[model_.warps.launch[row.warp]];
  const auto role = roles.find(model_.warps.index[row.warp]);
  return role != roles.end() ? fmt::format(" ({})", role->second) : std::string();
}

// "producer (warp 0): wgmma: load (2)", as much of it as there is.
std::string TrackTree::NameOfApart(const Track& track) const {
  std::string name;
  const auto add = [&name](const std::string& part) { name += (name.empty() ? "" : ": ") + part; };
  if (track.group != 0) {
    add(fmt::format("{} ({})", model_.String(track.group), NameOfRow(rows_[track.row])));
  }
  if (track.lane != 0) add(model_.String(track.lane));
  if (track.kind == Kind::kCrossed) add(fmt::format("Crossed {}", track.subject));
  if (track.kind == Kind::kToken) {
    add(model_.String(track.token));
    if (track.subject != 0) name += fmt::format(" ({})", track.subject + 1);
  }
  return name;
}

std::string TrackTree::DescriptionOf(const Track& track) const {
  switch (track.kind) {
    case Kind::kRoot:
      return fmt::format("In-kernel events of process {} on {}: {}", model_.process_id,
                         model_.String(model_.host), model_.String(model_.command));
    case Kind::kHost:
      for (const trace::Device& device : model_.devices) {
        if (device.simulated) {
          return "What the program said with iket::session::mark; of a software device only the "
                 "order among launches is right.";
        }
      }
      return "What the program said with iket::session::mark, by the host's clock: that is joined "
             "to the GPU's by the launch that began soonest after its call.";
    case Kind::kHostLaunches:
      return fmt::format(
          "When the program launched each kernel, by the host's clock: joined to the GPU's by the "
          "launch that began soonest. Known to {}.",
          trace::UncertaintyOf(model_).Sentence());
    case Kind::kHealth:
      return "What was lost, refused, or is doubtful. Empty: every record is here and understood.";
    case Kind::kLaunch: {
      const trace::Launch& launch = model_.launches[track.subject];
      return fmt::format(
          "{}\nstream {:#x}, context {}, device {}, grid id {}\n{}: {} of {} warps, {} begun, {} "
          "ended, {} suspect; {} events kept, at most {} lost",
          KernelName(model_, launch, &trace::Kernel::demangled), launch.stream, launch.context,
          launch.device, launch.grid_id, CompletenessWord(launch.completeness), launch.warp_count,
          launch.warps_expected == 0 ? "?" : std::to_string(launch.warps_expected),
          launch.warps_begun, launch.warps_ended, launch.warps_suspect, launch.events_kept,
          launch.lost_at_most);
    }
    case Kind::kCurve:
      return curves_[track.subject].description;
    case Kind::kCrossed:
      return "Ranges of one warp that overlap without nesting: lane groups that diverged.";
    default:
      return {};
  }
}

void TrackTree::WriteDescriptor(ProtoWriter& writer, uint32_t sequence, const Track& track) const {
  using Field = perfetto::TrackDescriptor;
  auto packet = writer.Message(perfetto::Trace::kPacket);
  writer.Varint(perfetto::TracePacket::kSequenceId, sequence);
  writer.Varint(perfetto::TracePacket::kSequenceFlags, perfetto::TracePacket::kNeedsState);
  auto descriptor = writer.Message(perfetto::TracePacket::kTrackDescriptor);
  writer.Varint(Field::kUuid, track.uuid);
  writer.Text(Field::kName, NameOf(track));
  if (track.parent != 0) writer.Varint(Field::kParentUuid, track.parent);
  writer.Varint(Field::kChildOrdering, Field::kExplicitOrder);
  writer.Varint(Field::kSiblingOrderRank, track.rank);
  const std::string description = DescriptionOf(track);
  if (!description.empty()) writer.Text(Field::kDescription, description);
  writer.Varint(Field::kSiblingMergeBehavior, Field::kMergeNone);
  if (track.kind == Kind::kCurve) {
    auto counter = writer.Message(Field::kCounter);
    writer.Text(perfetto::CounterDescriptor::kUnitName, curves_[track.subject].unit);
  }
}

}  // namespace iket::exporter
