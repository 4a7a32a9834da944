#include "analyze/cta_timeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace iket::analyze {
namespace {

using trace::kNoRow;
using trace::Model;

constexpr uint32_t kMostWarps = 64;  // of a CTA, that a missing one is drawn for

struct Piece {
  uint64_t begin = 0, end = 0;
  Span what;
};

// Spans one behind the other, equal neighbours joined.
class Cover {
 public:
  explicit Cover(uint64_t begin) : at_(begin) {}

  void To(uint64_t end, Moment moment, trace::StringId name = 0) {
    if (end <= at_) return;
    at_ = end;
    const Span span{end, moment, name};
    if (!spans_.empty() && spans_.back().Same(span)) {
      spans_.back().end = end;
    } else {
      spans_.push_back(span);
    }
  }
  uint64_t at() const { return at_; }
  std::vector<Span> Take() { return std::move(spans_); }

 private:
  uint64_t at_;
  std::vector<Span> spans_;
};

class Builder {
 public:
  Builder(const Model& model, const Cta& cta, const TimelineOptions& options)
      : model_(model), cta_(cta), options_(options) {}

  CtaTimeline Make() {
    std::vector<uint32_t> warps;
    for (uint32_t i = 0; i < cta_.warp_count; ++i) {
      const uint32_t warp = cta_.first_warp + i;
      if (cta_.IsOf(model_, warp)) warps.push_back(warp);
    }
    if (warps.empty()) return {};
    timeline_.begin = UINT64_MAX;
    for (const uint32_t warp : warps) {
      timeline_.begin = std::min(timeline_.begin, model_.warps.begin_cycles[warp]);
      timeline_.end = std::max(timeline_.end, model_.warps.end_cycles[warp]);
      // What was recorded at the last moment is inside.
      if (model_.warps.mark_count[warp] != 0) {
        const uint32_t last = model_.warps.first_mark[warp] + model_.warps.mark_count[warp] - 1;
        timeline_.end = std::max(timeline_.end, model_.events.cycles[model_.marks.event[last]] + 1);
      }
      Count(warp);
    }
    timeline_.end = std::max(timeline_.end, timeline_.begin + 1);
    AddRows(warps);
    return std::move(timeline_);
  }

 private:
  bool Has(uint32_t warp, uint8_t flag) const { return (model_.warps.flags[warp] & flag) != 0; }

  void Count(uint32_t warp) {
    timeline_.begin_missing += Has(warp, trace::kWarpBeginMissing);
    timeline_.running += Has(warp, trace::kWarpRunning);
    timeline_.end_missing += !Has(warp, trace::kWarpRunning) && EndUnknown(warp);
    timeline_.holed += Has(warp, trace::kWarpHoled);
    timeline_.suspect += Has(warp, trace::kWarpSuspect);
    timeline_.wrap_gap += Has(warp, trace::kWarpWrapGap);
  }

  bool EndUnknown(uint32_t warp) const {
    return Has(warp, trace::kWarpEndMissing | trace::kWarpRunning);
  }

  // The rows of the warps in their order, and between them those of which nothing is kept.
  void AddRows(const std::vector<uint32_t>& warps) {
    const auto& block = model_.launches[cta_.launch].block;
    const uint64_t threads = uint64_t{block[0]} * block[1] * block[2];
    const auto expected =
        static_cast<uint32_t>(std::min<uint64_t>((threads + 31) / 32, kMostWarps));
    uint32_t next = 0;
    const auto miss_until = [&](uint32_t index) {
      for (; next < index; ++next) AddMissing(next);
    };
    for (const uint32_t warp : warps) {
      const uint32_t index = model_.warps.index[warp];
      if (index != kNoRow) {
        miss_until(std::min(index, expected));
        timeline_.repeated |= index < next;
        next = std::max(next, index + 1);
      }
      AddWarp(warp);
    }
    // A warp whose index is not known may be any of those that seem to be missing.
    const bool all_known = std::ranges::none_of(
        warps, [&](uint32_t warp) { return model_.warps.index[warp] == kNoRow; });
    if (all_known) miss_until(expected);
  }

  void AddMissing(uint32_t index) {
    ++timeline_.missing;
    TimelineRow row{.kind = TimelineRow::Kind::kMissing, .index = index};
    row.spans = {{timeline_.end, Moment::kUnknown, 0}};
    timeline_.rows.push_back(std::move(row));
  }

  void AddWarp(uint32_t warp) {
    // Group, lane, name of a token, depth.
    std::map<std::tuple<trace::StringId, trace::StringId, trace::StringId, uint32_t>,
             std::vector<uint32_t>>
        rows = {{{0, 0, 0, 0}, {}}};
    const uint32_t first = model_.warps.first_range[warp];
    for (uint32_t range = first; range < first + model_.warps.range_count[warp]; ++range) {
      const trace::Declaration& declaration = model_.declarations[model_.ranges.declaration[range]];
      const bool token = (model_.ranges.flags[range] & trace::kRangeToken) != 0;
      const bool apart = token || declaration.group != 0 || declaration.lane != 0;
      const uint32_t depth = options_.depths && !apart ? model_.ranges.depth[range] : 0;
      rows[{declaration.group, declaration.lane, token ? declaration.name : 0, depth}].push_back(
          range);
    }
    const std::vector<Piece> base = BaseOf(warp);
    for (const auto& [key, ranges] : rows) {
      const auto& [group, lane, token, depth] = key;
      using Kind = TimelineRow::Kind;
      const bool apart = group != 0 || lane != 0 || token != 0;
      TimelineRow row{.kind = apart        ? Kind::kApart
                              : depth != 0 ? Kind::kDepth
                                           : Kind::kWarp,
                      .warp = warp,
                      .index = model_.warps.index[warp],
                      .group = group,
                      .lane = lane,
                      .token = token,
                      .depth = depth};
      row.spans = Lay(base, InnermostOf(ranges));
      timeline_.rows.push_back(std::move(row));
    }
    if (options_.marks && model_.warps.mark_count[warp] != 0) AddMarks(warp);
  }

  void AddMarks(uint32_t warp) {
    TimelineRow row{
        .kind = TimelineRow::Kind::kMarks, .warp = warp, .index = model_.warps.index[warp]};
    const uint32_t first = model_.warps.first_mark[warp];
    for (uint32_t mark = first; mark < first + model_.warps.mark_count[warp]; ++mark) {
      const uint32_t event = model_.marks.event[mark];
      row.instants.push_back({model_.events.cycles[event], model_.events.declaration[event]});
    }
    std::ranges::stable_sort(row.instants, {}, &Instant::cycles);
    timeline_.rows.push_back(std::move(row));
  }

  // When which of these ranges was the innermost; nothing where none was open.
  std::vector<Piece> InnermostOf(const std::vector<uint32_t>& ranges) const {
    struct Edge {
      uint64_t cycles;
      bool begins;
      std::pair<uint32_t, uint32_t> range;  // depth, row
    };
    std::vector<Edge> edges;
    edges.reserve(2 * ranges.size());
    for (const uint32_t range : ranges) {
      const uint64_t begin = model_.ranges.begin_cycles[range];
      const uint64_t end = model_.ranges.end_cycles[range];
      if (end <= begin) continue;  // covers nothing
      const std::pair<uint32_t, uint32_t> key{model_.ranges.depth[range], range};
      edges.push_back({begin, true, key});
      edges.push_back({end, false, key});
    }
    std::ranges::stable_sort(edges, {}, &Edge::cycles);
    std::set<std::pair<uint32_t, uint32_t>> open;
    std::vector<Piece> pieces;
    for (size_t i = 0; i < edges.size(); ++i) {
      if (edges[i].begins) {
        open.insert(edges[i].range);
      } else {
        open.erase(edges[i].range);
      }
      if (open.empty() || edges[i + 1].cycles == edges[i].cycles) continue;
      const uint32_t declaration = model_.ranges.declaration[open.rbegin()->second];
      pieces.push_back({edges[i].cycles,
                        edges[i + 1].cycles,
                        {0, Moment::kRange, model_.declarations[declaration].name}});
    }
    return pieces;
  }

  // The life of a warp as it is where no range is open.
  std::vector<Piece> BaseOf(uint32_t warp) const {
    const uint64_t begin = model_.warps.begin_cycles[warp];
    const uint64_t end = std::max(begin, model_.warps.end_cycles[warp]);
    Cover cover(timeline_.begin);
    cover.To(begin, Has(warp, trace::kWarpBeginMissing) ? Moment::kUnknown : Moment::kAbsent);
    for (const auto& [from, to] : UnknownOf(warp)) {
      cover.To(std::min(from, end), Moment::kNoRange);
      cover.To(std::min(to, end), Moment::kUnknown);
    }
    cover.To(end, Moment::kNoRange);
    cover.To(timeline_.end, EndUnknown(warp) ? Moment::kUnknown : Moment::kAbsent);
    std::vector<Piece> pieces;
    uint64_t at = timeline_.begin;
    for (const Span& span : cover.Take()) {
      pieces.push_back({at, span.end, span});
      at = span.end;
    }
    return pieces;
  }

  // Parts of its life, ascending, in which more may have been open than is known: the holes, and
  // from a loss to the last close of what nobody opened, or to the next loss.
  std::vector<std::pair<uint64_t, uint64_t>> UnknownOf(uint32_t warp) const {
    std::vector<std::pair<uint64_t, uint64_t>> unknown;
    const uint32_t first = model_.warps.first_event[warp];
    const uint32_t end = first + model_.warps.event_count[warp];
    const auto cycles = [&](uint32_t event) { return model_.events.cycles[event]; };
    bool behind_loss = Has(warp, trace::kWarpBeginMissing);
    uint32_t from_event = first;
    uint64_t from = model_.warps.begin_cycles[warp];
    auto hole = std::ranges::lower_bound(model_.holes, first);
    for (; hole != model_.holes.end() && *hole < end; ++hole) {
      const uint64_t last = *hole == first ? from : cycles(*hole - 1);
      if (behind_loss) unknown.emplace_back(from, last);
      unknown.emplace_back(last, cycles(*hole));
      behind_loss = true;
      from_event = *hole;
      from = cycles(*hole);
    }
    if (!behind_loss) return unknown;
    if (EndUnknown(warp)) {
      unknown.emplace_back(from, model_.warps.end_cycles[warp]);
    } else if (const uint32_t close = LastUnmatched(from_event, end); close != kNoRow) {
      unknown.emplace_back(from, cycles(close));
    }
    return unknown;
  }

  // The last of these events that closes what nobody opened.
  uint32_t LastUnmatched(uint32_t first, uint32_t end) const {
    const auto& ends = model_.unmatched_ends;
    uint32_t last = kNoRow;
    if (std::ranges::is_sorted(ends)) {
      const auto found = std::ranges::lower_bound(ends, end);
      if (found != ends.begin() && *(found - 1) >= first) last = *(found - 1);
      return last;
    }
    for (const uint32_t event : ends) {
      if (event >= first && event < end && (last == kNoRow || event > last)) last = event;
    }
    return last;
  }

  // `tops`, and `base` where they leave room.
  std::vector<Span> Lay(const std::vector<Piece>& base, const std::vector<Piece>& tops) const {
    Cover cover(timeline_.begin);
    size_t next = 0;
    const auto base_to = [&](uint64_t end) {
      while (next < base.size() && cover.at() < end) {
        cover.To(std::min(base[next].end, end), base[next].what.moment);
        if (base[next].end <= end) ++next;
      }
    };
    for (const Piece& top : tops) {
      base_to(std::min(top.begin, timeline_.end));
      cover.To(std::min(top.end, timeline_.end), Moment::kRange, top.what.name);
      while (next < base.size() && base[next].end <= cover.at()) ++next;
    }
    base_to(timeline_.end);
    return cover.Take();
  }

  const Model& model_;
  const Cta& cta_;
  const TimelineOptions options_;
  CtaTimeline timeline_;
};

}  // namespace

CtaTimeline TimelineOf(const Model& model, const Cta& cta, const TimelineOptions& options) {
  return Builder(model, cta, options).Make();
}

uint64_t Columns::Begin(uint32_t column) const {
  using Wide = unsigned __int128;
  return from + static_cast<uint64_t>(Wide{to - from} * column / count);
}

uint32_t Columns::Of(uint64_t cycles) const {
  using Wide = unsigned __int128;
  auto column = static_cast<uint32_t>(Wide{cycles - from} * count / (to - from));
  while (column + 1 < count && Begin(column + 1) <= cycles) ++column;
  return column;
}

std::vector<Span> CellsOf(const TimelineRow& row, const CtaTimeline& timeline,
                          const Columns& columns) {
  std::vector<Span> cells(columns.count);
  size_t span = static_cast<size_t>(
      std::ranges::upper_bound(row.spans, columns.from, {}, &Span::end) - row.spans.begin());
  // What covers the column, and how much; the order in which they came decides between equals.
  std::map<std::pair<Moment, trace::StringId>, std::pair<uint64_t, size_t>> covered;
  for (uint32_t column = 0; column < columns.count; ++column) {
    const uint64_t end = columns.Begin(column + 1);
    uint64_t at = columns.Begin(column);
    covered.clear();
    while (at < end) {
      Span here = span < row.spans.size() ? row.spans[span] : Span{.end = UINT64_MAX};
      if (at < timeline.begin) here = {.end = timeline.begin};
      const uint64_t to = std::min(here.end, end);
      auto& [cycles, order] =
          covered.try_emplace({here.moment, here.name}, 0, covered.size()).first->second;
      cycles += to - at;
      at = to;
      if (span < row.spans.size() && row.spans[span].end <= at) ++span;
    }
    const auto most = std::ranges::max_element(covered, [](const auto& a, const auto& b) {
      return std::pair(a.second.first, b.second.second) <
             std::pair(b.second.first, a.second.second);
    });
    if (most != covered.end()) cells[column] = {end, most->first.first, most->first.second};
  }
  return cells;
}

std::vector<InstantCell> InstantCellsOf(const Model& model, const TimelineRow& row,
                                        const Columns& columns) {
  std::vector<InstantCell> cells(columns.count);
  auto instant = std::ranges::lower_bound(row.instants, columns.from, {}, &Instant::cycles);
  for (; instant != row.instants.end() && instant->cycles < columns.to; ++instant) {
    InstantCell& cell = cells[columns.Of(instant->cycles)];
    if (cell.count++ == 0) cell.declaration = instant->declaration;
    cell.several |=
        model.declarations[cell.declaration].name != model.declarations[instant->declaration].name;
  }
  return cells;
}

WindowTotals TotalsOf(const Model& model, const Cta& cta, const CtaTimeline& timeline,
                      uint64_t from, uint64_t to) {
  WindowTotals totals;
  std::unordered_map<trace::StringId, NameTotal> ranges, marks;
  for (uint32_t i = 0; i < cta.warp_count; ++i) {
    const uint32_t warp = cta.first_warp + i;
    if (!cta.IsOf(model, warp)) continue;
    const uint32_t first = model.warps.first_range[warp];
    for (uint32_t range = first; range < first + model.warps.range_count[warp]; ++range) {
      const uint64_t begin = std::max(model.ranges.begin_cycles[range], from);
      const uint64_t end = std::min(model.ranges.end_cycles[range], to);
      if (begin > end || begin >= to) continue;
      NameTotal& total = ranges[model.declarations[model.ranges.declaration[range]].name];
      ++total.count;
      total.cycles += end - begin;
    }
    const uint32_t first_mark = model.warps.first_mark[warp];
    for (uint32_t mark = first_mark; mark < first_mark + model.warps.mark_count[warp]; ++mark) {
      const uint32_t event = model.marks.event[mark];
      if (model.events.cycles[event] < from || model.events.cycles[event] >= to) continue;
      ++marks[model.declarations[model.events.declaration[event]].name].count;
    }
  }
  for (const TimelineRow& row : timeline.rows) {
    if (row.kind != TimelineRow::Kind::kWarp && row.kind != TimelineRow::Kind::kMissing) continue;
    uint64_t at = timeline.begin;
    for (const Span& span : row.spans) {
      const uint64_t begin = std::max(at, from), end = std::min(span.end, to);
      at = span.end;
      if (begin >= end) continue;
      if (span.moment == Moment::kNoRange) totals.no_range += end - begin;
      if (span.moment == Moment::kUnknown) totals.unknown += end - begin;
    }
  }
  const auto take = [](auto& by_name, std::vector<NameTotal>& into) {
    for (auto& [name, total] : by_name) {
      total.name = name;
      into.push_back(total);
    }
    std::ranges::sort(into, [](const NameTotal& a, const NameTotal& b) {
      return std::tuple(b.cycles, b.count, a.name) < std::tuple(a.cycles, a.count, b.name);
    });
  };
  take(ranges, totals.ranges);
  take(marks, totals.marks);
  return totals;
}

}  // namespace iket::analyze
