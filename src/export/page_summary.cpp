#include "export/page_summary.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

namespace iket::exporter {
namespace {

using trace::kNoRow;

// The cells of a row while they are added up, also those in which nothing is.
class Sums {
 public:
  // Of `pieces` of `width` cycles, the last of them shorter.
  Sums(uint64_t begin, uint64_t end, uint64_t width, uint64_t pieces)
      : begin_(begin), end_(end), width_(width), cells_(pieces) {}

  void Add(uint32_t declaration, uint64_t begin, uint64_t end) {
    uint64_t piece = PieceOf(begin);
    ++PartOf(piece, declaration).count;
    for (uint64_t at = begin; at < end; ++piece) {
      const uint64_t stop = std::min(end, begin_ + (piece + 1) * width_);
      PartOf(piece, declaration).cycles += stop - at;
      at = stop;
    }
  }

  std::vector<SummaryCell> Cells() && {
    std::vector<SummaryCell> cells;
    for (uint64_t piece = 0; piece < cells_.size(); ++piece) {
      if (cells_[piece].empty()) continue;
      const uint64_t begin = begin_ + piece * width_;
      cells.push_back({begin, std::min(begin + width_, end_), std::move(cells_[piece])});
    }
    return cells;
  }

 private:
  uint64_t PieceOf(uint64_t cycles) const { return (cycles - begin_) / width_; }
  SummaryPart& PartOf(uint64_t piece, uint32_t declaration) {
    std::vector<SummaryPart>& parts = cells_[piece];  // few: a row of a warp has few names
    const auto at = std::ranges::find(parts, declaration, &SummaryPart::declaration);
    if (at != parts.end()) return *at;
    return parts.emplace_back(SummaryPart{.declaration = declaration});
  }

  uint64_t begin_, end_, width_;
  std::vector<std::vector<SummaryPart>> cells_;
};

}  // namespace

uint32_t SummaryCell::Dominant() const {
  return std::ranges::max(parts, {},
                          [](const SummaryPart& part) {
                            return std::tuple(part.cycles, part.count, ~part.declaration);
                          })
      .declaration;
}

PageSummary::PageSummary(const trace::Model& model, const PageDetail& detail)
    : model_(model), detail_(detail) {
  if (detail.all()) return;
  for (uint32_t launch = 0; launch < model.launches.size(); ++launch) {
    const std::vector<Member> members = MembersOf(launch);
    for (size_t i = 0; i < members.size(); ++i) {
      const bool same =
          i > 0 && members[i].sm == members[i - 1].sm && members[i].index == members[i - 1].index;
      lanes_ += same ? 0 : 1;
    }
  }
}

bool PageSummary::HasRest(uint32_t warp) const {
  if (!detail_.HasWarp(warp)) return true;
  const trace::Warps& warps = model_.warps;
  for (uint32_t i = 0; i < warps.range_count[warp]; ++i) {
    if (!detail_.HasRange(warp, warps.first_range[warp] + i)) return true;
  }
  for (uint32_t i = 0; i < warps.mark_count[warp]; ++i) {
    if (!detail_.HasMark(warp, model_.marks.event[warps.first_mark[warp] + i])) return true;
  }
  return false;
}

std::vector<PageSummary::Member> PageSummary::MembersOf(uint32_t launch) const {
  std::vector<Member> members;
  const uint32_t first = model_.launches[launch].first_warp;
  for (uint32_t warp = first; warp < first + model_.launches[launch].warp_count; ++warp) {
    if (HasRest(warp)) members.push_back({model_.warps.sm[warp], model_.warps.index[warp], warp});
  }
  std::ranges::sort(members);
  return members;
}

void PageSummary::EachLane(uint32_t launch, const std::function<void(const SummaryLane&)>& take) {
  if (detail_.all()) return;
  const std::vector<Member> members = MembersOf(launch);
  for (size_t first = 0, end = 0; first < members.size(); first = end) {
    while (end < members.size() && members[end].sm == members[first].sm &&
           members[end].index == members[first].index) {
      ++end;
    }
    take(LaneOf(std::span(members).subspan(first, end - first)));
  }
}

SummaryLane PageSummary::LaneOf(std::span<const Member> members) {
  const trace::Warps& warps = model_.warps;
  const trace::Ranges& ranges = model_.ranges;
  struct Slice {
    PageRow row;
    uint32_t declaration;
    uint64_t begin, end;
  };
  std::vector<Slice> slices;
  SummaryLane lane{.sm = members.front().sm, .index = members.front().index, .begin = ~uint64_t{0}};
  const auto reach = [&lane](uint64_t begin, uint64_t end) {
    lane.begin = std::min(lane.begin, begin);
    lane.end = std::max(lane.end, std::max(begin, end));
  };
  for (const Member& member : members) {
    const uint32_t warp = member.warp;
    const uint64_t begin = warps.begin_cycles[warp], end = std::max(begin, warps.end_cycles[warp]);
    reach(begin, end);
    if (!detail_.HasWarp(warp)) {
      ++lane.warps;
      lane.alive_cycles += end - begin;
    }
    for (uint32_t i = 0; i < warps.range_count[warp]; ++i) {
      const uint32_t range = warps.first_range[warp] + i;
      if (detail_.HasRange(warp, range)) continue;
      slices.push_back({RowOfRange(model_, range), ranges.declaration[range],
                        ranges.begin_cycles[range], ranges.end_cycles[range]});
      doubtful_ += (ranges.flags[range] & ~trace::kRangeToken) != 0 ? 1 : 0;
      reach(ranges.begin_cycles[range], ranges.end_cycles[range]);
    }
    for (uint32_t i = 0; i < warps.mark_count[warp]; ++i) {
      const uint32_t event = model_.marks.event[warps.first_mark[warp] + i];
      if (detail_.HasMark(warp, event)) continue;
      const uint64_t cycles = model_.events.cycles[event];
      slices.push_back(
          {RowOfMark(model_, event), model_.events.declaration[event], cycles, cycles});
      reach(cycles, cycles);
    }
  }
  std::set<PageRow> places;
  for (const Slice& slice : slices) places.insert(slice.row);
  const uint64_t rows_of_all = std::max<uint64_t>(lanes_ * places.size(), 1);
  const uint64_t pieces = std::clamp(
      std::min(slices.size() / kSlicesInPiece, kAllCells / rows_of_all), uint64_t{1}, kMostPieces);
  // One more than the last moment, so that what begins there has a piece, too.
  const uint64_t span = lane.end - lane.begin + 1;
  lane.shift = span >> 32 == 0 ? 0 : static_cast<unsigned>(std::bit_width(span) - 31);
  const uint64_t unit = uint64_t{1} << lane.shift;
  const uint64_t width = ((span + pieces - 1) / pieces + unit - 1) / unit * unit;
  const uint64_t end = lane.begin + (span + unit - 1) / unit * unit;
  std::map<PageRow, Sums> rows;
  for (const Slice& slice : slices) {
    rows.try_emplace(slice.row, lane.begin, end, width, pieces)
        .first->second.Add(slice.declaration, slice.begin, slice.end);
  }
  for (auto& [row, sums] : rows) lane.rows.push_back({row, std::move(sums).Cells()});
  return lane;
}

}  // namespace iket::exporter
