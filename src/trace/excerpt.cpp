#include "trace/excerpt.h"

#include <fmt/format.h>

#include <algorithm>

namespace iket::trace {
namespace {

class Maker {
 public:
  Maker(const Model& model, const ExcerptOf& of)
      : model_(model),
        of_(of),
        rows_(model, of),
        new_warp_(model.warps.size(), kNoRow),
        unmatched_ends_(model.unmatched_ends) {
    std::ranges::sort(unmatched_ends_);
  }

  Model Make() {
    CopyFacts();
    for (uint32_t row = 0; row < model_.launches.size(); ++row) {
      if (rows_.HasLaunch(row)) AddLaunch(row);
    }
    AddFlows();
    std::ranges::sort(part_.holes);
    return std::move(part_);
  }

 private:
  // Whatever is no row of a warp.
  void CopyFacts() {
    part_.strings = model_.strings;
    part_.devices = model_.devices;
    part_.kernels = model_.kernels;
    part_.declarations = model_.declarations;
    part_.edges = model_.edges;
    part_.rings = model_.rings;
    part_.clocks = model_.clocks;
    part_.counters = model_.counters;
    part_.origin_ns = model_.origin_ns;
    part_.host_clock = model_.host_clock;
    part_.read_ns = model_.read_ns;
    part_.process_id = model_.process_id;
    part_.command = model_.command;
    part_.host = model_.host;
    part_.damage = model_.damage;
    for (const HostMark& mark : model_.host_marks) {
      if (!of_.window || (mark.ns && rows_.Overlaps(*mark.ns, *mark.ns)))
        part_.host_marks.push_back(mark);
    }
  }

  void AddLaunch(uint32_t row) {
    Launch launch = model_.launches[row];
    const uint32_t first = launch.first_warp, count = launch.warp_count;
    launch.first_warp = static_cast<uint32_t>(part_.warps.size());
    launch.warp_count = launch.warps_begun = launch.warps_ended = 0;
    launch.warps_suspect = launch.warps_holed = launch.warps_orphan = 0;
    launch.events_kept = 0;
    for (uint32_t warp = first; warp < first + count; ++warp) {
      if (!rows_.HasWarp(warp)) continue;
      AddWarp(warp);
      const uint8_t flags = model_.warps.flags[warp];
      ++launch.warp_count;
      launch.warps_begun += (flags & kWarpBeginMissing) == 0 ? 1 : 0;
      launch.warps_ended += (flags & kWarpEndMissing) == 0 ? 1 : 0;
      launch.warps_suspect += (flags & kWarpSuspect) != 0 ? 1 : 0;
      launch.warps_holed += (flags & kWarpHoled) != 0 ? 1 : 0;
      launch.warps_orphan += (flags & kWarpOrphan) != 0 ? 1 : 0;
      launch.events_kept += part_.warps.event_count.back();
    }
    if (launch.warp_count == 0) return;
    // Of a complete launch all that were asked for are here; of others nobody knows how many of
    // those that are missing would have been.
    if (launch.warp_count != count) {
      launch.warps_expected =
          launch.completeness == Completeness::kComplete ? launch.warp_count : 0;
    }
    part_.launches.push_back(launch);
  }

  void AddWarp(uint32_t warp) {
    const Warps& from = model_.warps;
    Warps& to = part_.warps;
    new_warp_[warp] = static_cast<uint32_t>(to.size());
    to.launch.push_back(static_cast<uint32_t>(part_.launches.size()));
    to.cta_x.push_back(from.cta_x[warp]);
    to.cta_y.push_back(from.cta_y[warp]);
    to.cta_z.push_back(from.cta_z[warp]);
    to.index.push_back(from.index[warp]);
    to.tid_x.push_back(from.tid_x[warp]);
    to.tid_y.push_back(from.tid_y[warp]);
    to.tid_z.push_back(from.tid_z[warp]);
    to.sm.push_back(from.sm[warp]);
    to.slot.push_back(from.slot[warp]);
    to.flags.push_back(from.flags[warp]);
    to.begin_cycles.push_back(from.begin_cycles[warp]);
    to.end_cycles.push_back(from.end_cycles[warp]);
    to.begin_ns.push_back(from.begin_ns[warp]);
    to.end_ns.push_back(from.end_ns[warp]);
    ChooseEvents(warp);
    AddEvents(warp);
    AddRangesAndPoints(warp);
  }

  // Of each event of the warp, whether it is kept: a range decides for both of its ends.
  void ChooseEvents(uint32_t warp) {
    const Warps& warps = model_.warps;
    const uint32_t first = warps.first_event[warp], count = warps.event_count[warp];
    keep_.assign(count, false);
    for (uint32_t event = first; event < first + count; ++event) {
      keep_[event - first] = rows_.HasPoint(warp, event);
    }
    for (uint32_t i = 0; i < warps.range_count[warp]; ++i) {
      const uint32_t range = warps.first_range[warp] + i;
      const bool kept = rows_.HasRange(warp, range);
      for (const uint32_t event :
           {model_.ranges.begin_event[range], model_.ranges.end_event[range]}) {
        if (event != kNoRow) keep_[event - first] = kept;
      }
    }
  }

  void AddEvents(uint32_t warp) {
    const Events& from = model_.events;
    const uint32_t first = model_.warps.first_event[warp];
    const auto first_new = static_cast<uint32_t>(part_.events.size());
    new_event_.assign(keep_.size() + 1, 0);
    for (uint32_t i = 0; i < keep_.size(); ++i) {
      new_event_[i] = static_cast<uint32_t>(part_.events.size());
      if (!keep_[i]) continue;
      part_.events.warp.push_back(new_warp_[warp]);
      part_.events.declaration.push_back(from.declaration[first + i]);
      part_.events.cycles.push_back(from.cycles[first + i]);
      part_.events.payload.push_back(from.payload[first + i]);
      old_event_.push_back(first + i);
    }
    const auto end_new = static_cast<uint32_t>(part_.events.size());
    new_event_.back() = end_new;
    part_.warps.first_event.push_back(first_new);
    part_.warps.event_count.push_back(end_new - first_new);

    const auto last = static_cast<uint32_t>(first + keep_.size());
    const auto& valued = model_.values.event;
    for (auto at = std::ranges::lower_bound(valued, first); at != valued.end() && *at < last;
         ++at) {
      if (!keep_[*at - first]) continue;
      const auto value = at - valued.begin();
      part_.values.event.push_back(new_event_[*at - first]);
      part_.values.index.push_back(model_.values.index[value]);
      part_.values.value.push_back(model_.values.value[value]);
    }
    // A hole moves to the next event that is kept; without one there is nothing left to part.
    uint32_t before = kNoRow;
    const auto& holes = model_.holes;
    for (auto at = std::ranges::lower_bound(holes, first); at != holes.end() && *at < last; ++at) {
      const uint32_t event = new_event_[*at - first];
      if (event != end_new && event != before) part_.holes.push_back(event);
      before = event;
    }
  }

  void AddRangesAndPoints(uint32_t warp) {
    const Warps& warps = model_.warps;
    const Ranges& from = model_.ranges;
    Ranges& to = part_.ranges;
    const uint32_t first = warps.first_event[warp];
    const auto moved = [&](uint32_t event) {
      return event == kNoRow ? kNoRow : new_event_[event - first];
    };
    part_.warps.first_range.push_back(static_cast<uint32_t>(to.size()));
    for (uint32_t i = 0; i < warps.range_count[warp]; ++i) {
      const uint32_t range = warps.first_range[warp] + i;
      if (!rows_.HasRange(warp, range)) continue;
      to.warp.push_back(new_warp_[warp]);
      to.declaration.push_back(from.declaration[range]);
      to.begin_cycles.push_back(from.begin_cycles[range]);
      to.end_cycles.push_back(from.end_cycles[range]);
      to.payload.push_back(from.payload[range]);
      to.depth.push_back(from.depth[range]);
      to.flags.push_back(from.flags[range]);
      to.begin_event.push_back(moved(from.begin_event[range]));
      to.end_event.push_back(moved(from.end_event[range]));
    }
    part_.warps.range_count.push_back(static_cast<uint32_t>(to.size()) -
                                      part_.warps.first_range.back());
    part_.warps.first_mark.push_back(static_cast<uint32_t>(part_.marks.size()));
    for (uint32_t i = 0; i < warps.mark_count[warp]; ++i) {
      const uint32_t event = model_.marks.event[warps.first_mark[warp] + i];
      if (keep_[event - first]) part_.marks.event.push_back(moved(event));
    }
    part_.warps.mark_count.push_back(static_cast<uint32_t>(part_.marks.size()) -
                                     part_.warps.first_mark.back());
    for (auto at = std::ranges::lower_bound(unmatched_ends_, first);
         at != unmatched_ends_.end() && *at < first + keep_.size(); ++at) {
      if (keep_[*at - first]) part_.unmatched_ends.push_back(moved(*at));
    }
  }

  // The new row of any event of the model; kNoRow if it is not kept.
  uint32_t NewEvent(uint32_t event) const {
    const uint32_t warp = new_warp_[model_.events.warp[event]];
    if (warp == kNoRow) return kNoRow;
    const auto begin = old_event_.begin() + part_.warps.first_event[warp];
    const auto end = begin + part_.warps.event_count[warp];
    const auto at = std::lower_bound(begin, end, event);
    return at != end && *at == event ? static_cast<uint32_t>(at - old_event_.begin()) : kNoRow;
  }
  void AddFlows() {
    Column<std::pair<uint32_t, uint32_t>> flows;  // target and source
    for (size_t i = 0; i < model_.flows.size(); ++i) {
      const uint32_t from = NewEvent(model_.flows.from[i]), to = NewEvent(model_.flows.to[i]);
      if (from != kNoRow && to != kNoRow) flows.emplace_back(to, from);
    }
    std::ranges::stable_sort(flows);
    for (const auto& [to, from] : flows) {
      part_.flows.to.push_back(to);
      part_.flows.from.push_back(from);
    }
  }

  const Model& model_;
  const ExcerptOf& of_;
  ExcerptRows rows_;
  Model part_;
  Column<uint32_t> new_warp_;        // by the model's rows
  Column<uint32_t> unmatched_ends_;  // ascending
  Column<uint32_t> old_event_;       // by the part's rows
  std::vector<bool> keep_;           // of the warp at hand, by event
  std::vector<uint32_t> new_event_;  // likewise, and one more: where they end
};

}  // namespace

bool ExcerptRows::HasWarp(uint32_t warp) const {
  const Warps& warps = model_.warps;
  // Where a warp without identity was nobody knows.
  if ((of_.cluster || of_.cta) && (warps.flags[warp] & kWarpOrphan) != 0) return false;
  if (of_.cluster && model_.ClusterOf(warp) != *of_.cluster) return false;
  if (of_.cta && std::array<uint32_t, 3>{warps.cta_x[warp], warps.cta_y[warp], warps.cta_z[warp]} !=
                     *of_.cta) {
    return false;
  }
  const uint32_t sm = warps.sm[warp];
  if (!of_.sms.empty() && std::ranges::none_of(of_.sms, [sm](const ring::SmRange& range) {
        return range.first <= sm && sm <= range.last;
      })) {
    return false;
  }
  return Overlaps(warps.begin_ns[warp], warps.end_ns[warp]);
}

bool ExcerptRows::HasRange(uint32_t warp, uint32_t range) const {
  return HasDeclaration(model_.ranges.declaration[range]) &&
         Overlaps(model_.NsOfWarp(warp, model_.ranges.begin_cycles[range]),
                  model_.NsOfWarp(warp, model_.ranges.end_cycles[range]));
}

bool ExcerptRows::HasPoint(uint32_t warp, uint32_t event) const {
  const double ns = model_.NsOfWarp(warp, model_.events.cycles[event]);
  return HasDeclaration(model_.events.declaration[event]) && Overlaps(ns, ns);
}

bool ExcerptRows::Overlaps(double begin, double end) const {
  if (!of_.window) return true;
  const auto [from, to] = *of_.window;
  return begin < to && (end > from || begin >= from);
}

Model Rearranged(const Model& model) {
  const ExcerptOf all;
  return Maker(model, all).Make();
}

Model Excerpt(const Model& model, const ExcerptOf& of, const std::string& words) {
  Model part = Maker(model, of).Make();
  part.strings.push_back(fmt::format(
      "only {}: {} of {} launches, {} of {} warps, {} of {} events{}", words, part.launches.size(),
      model.launches.size(), part.warps.size(), model.warps.size(), part.events.size(),
      model.events.size(), of.window ? "; what crosses an edge of the window is whole" : ""));
  part.filter = static_cast<StringId>(part.strings.size() - 1);
  return part;
}

}  // namespace iket::trace
