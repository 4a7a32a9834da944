#include "export/page_block.h"

#include <algorithm>
#include <bit>

namespace iket::exporter {
namespace {

using trace::kNoRow;
using trace::PayloadType;

void PutVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

// Small where two numbers are close, whichever is the larger.
uint32_t ZigZag(uint32_t difference) { return difference << 1 ^ (0 - (difference >> 31)); }
uint64_t Difference(uint64_t value, uint64_t last) {
  const uint64_t difference = value - last;
  return difference << 1 ^ (0 - (difference >> 63));
}

}  // namespace

PageBlocks::PageBlocks(const trace::Model& model, const PageDetail& detail)
    : model_(model),
      detail_(detail),
      any_links_(model.flows.size() != 0 || !model.edges.empty()),
      last_payload_(model.declarations.size(), 0) {
  for (const trace::Declaration& row : model.declarations) carries_.push_back(WhatItCarries(row));
  if (any_links_) slice_of_event_.assign(model.events.size(), kNoRow);
}

uint8_t PageBlocks::WhatItCarries(const trace::Declaration& declared) {
  uint8_t carries = 0;
  if (declared.payload != PayloadType::kNone) carries |= kPayload | kAtEnd;
  if (declared.kind == trace::EventKind::kUnknown) carries |= kPayload;  // the event's id
  if (trace::IsWide(declared.payload)) carries |= kWide;
  if (!declared.more.empty()) carries |= kMore;
  return carries;
}

inline void PageBlocks::Put(Column column, uint64_t value) {
  if (value < 0x80) {
    columns_[column] += static_cast<char>(value);
  } else {
    PutVarint(columns_[column], value);
  }
}

void PageBlocks::PutTime(Column low, Column high, uint64_t value) {
  columns_[low] += static_cast<char>(value);
  Put(high, value >> 8);
}

uint32_t PageBlocks::RowOf(const PageRow& row) {
  const auto [at, is_new] = row_index_.try_emplace(row, static_cast<uint32_t>(rows_.size()));
  if (is_new) rows_.push_back(row);
  return at->second;
}

std::vector<PageBlocks::Slice>& PageBlocks::LocalRow(uint32_t row) {
  if (local_of_.size() <= row) local_of_.resize(row + 1, kNoRow);
  if (local_of_[row] == kNoRow) {
    local_of_[row] = static_cast<uint32_t>(used_.size());
    used_.push_back(row);
    if (local_.size() < used_.size()) local_.emplace_back();
  }
  return local_[local_of_[row]];
}

void PageBlocks::Add(uint32_t warp) {
  const trace::Warps& warps = model_.warps;
  const trace::Ranges& ranges = model_.ranges;
  const iket::Column<uint32_t>& valued = model_.values.event;
  const uint32_t first_event = warps.first_event[warp];
  const auto values = std::ranges::lower_bound(valued, first_event);
  const auto values_end =
      std::lower_bound(values, valued.end(), first_event + warps.event_count[warp]);
  first_value_ = static_cast<size_t>(values - valued.begin());
  last_value_ = static_cast<size_t>(values_end - valued.begin());
  const uint32_t first = warps.first_range[warp];
  for (uint32_t range = first; range < first + warps.range_count[warp]; ++range) {
    if (!detail_.HasRange(warp, range)) continue;
    const PageRow place = RowOfRange(model_, range);
    uint32_t row = kNoRow;
    if (place == PageRow{.depth = place.depth}) {
      if (plain_rows_.size() <= place.depth) plain_rows_.resize(place.depth + 1u, kNoRow);
      if (plain_rows_[place.depth] == kNoRow) plain_rows_[place.depth] = RowOf(place);
      row = plain_rows_[place.depth];
    } else {
      row = RowOf(place);
    }
    LocalRow(row).push_back(
        {ranges.begin_cycles[range], ranges.end_cycles[range], range, ranges.begin_event[range]});
  }
  const uint32_t first_mark = warps.first_mark[warp];
  for (uint32_t mark = first_mark; mark < first_mark + warps.mark_count[warp]; ++mark) {
    const uint32_t event = model_.marks.event[mark];
    if (!detail_.HasMark(warp, event)) continue;
    const uint64_t cycles = model_.events.cycles[event];
    LocalRow(RowOf(RowOfMark(model_, event))).push_back({cycles, cycles, kNoRow, event});
  }
  // Top to bottom as they are drawn: nested ones, lanes, tokens, marks.
  std::vector<uint32_t> order = used_;
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    const auto key = [&](uint32_t row) {
      const PageRow& it = rows_[row];
      return std::tuple(it.group, it.lane, it.marks, it.token, it.depth);
    };
    return key(a) < key(b);
  });

  const uint64_t begin = warps.begin_cycles[warp];
  const uint64_t life = std::max(begin, warps.end_cycles[warp]) - begin;
  const unsigned shift = life >> 32 == 0 ? 0 : static_cast<unsigned>(std::bit_width(life) - 32);
  PutHead({.cta_x = warps.cta_x[warp],
           .cta_y = warps.cta_y[warp],
           .cta_z = warps.cta_z[warp],
           .index = warps.index[warp],
           .sm = warps.sm[warp],
           .slot = warps.slot[warp],
           .flags = warps.flags[warp],
           .shift = shift,
           .begin = begin,
           .life = life >> shift,
           .rows = order.size()});
  for (const uint32_t row : order) {
    std::vector<Slice>& slices = local_[local_of_[row]];
    Put(kRows, row);
    Put(kRows, slices.size());
    uint64_t last = 0;
    for (const Slice& slice : slices) PutSlice(slice, last, shift, begin);
    slices.clear();
    local_of_[row] = kNoRow;
  }
  used_.clear();
}

void PageBlocks::PutHead(const WarpHead& head) {
  Put(kCtaX, Difference(head.cta_x, last_cta_x_));
  Put(kCtaY, head.cta_y);
  Put(kCtaZ, head.cta_z);
  Put(kIndex, head.index == kNoRow ? 0 : uint64_t{head.index} + 1);
  Put(kSm, head.sm);
  Put(kSlot, head.slot);
  Put(kWarpFlags, head.flags);
  Put(kShift, head.shift);
  Put(kBegin, Difference(head.begin, last_begin_));
  Put(kLife, Difference(head.life, last_life_));
  Put(kRowCount, head.rows);
  slice_rows_ += head.rows;
  last_cta_x_ = head.cta_x;
  last_begin_ = head.begin;
  last_life_ = head.life;
}

void PageBlocks::AddLane(const SummaryLane& lane) {
  PutHead({.index = lane.index,
           .sm = lane.sm,
           .shift = lane.shift,
           .begin = lane.begin,
           .life = (lane.end - lane.begin) >> lane.shift,
           .rows = lane.rows.size()});
  Put(kMembers, lane.warps);
  Put(kMembers, lane.alive_cycles);
  for (const SummaryRow& row : lane.rows) {
    Put(kRows, RowOf(row.row));
    Put(kRows, row.cells.size());
    uint64_t last = lane.begin;
    for (const SummaryCell& cell : row.cells) {
      PutTime(kGapLow, kGapHigh, (cell.begin - last) >> lane.shift);
      PutTime(kDurationLow, kDurationHigh, (cell.end - cell.begin) >> lane.shift);
      last = cell.end;
      Put(kDeclarations, cell.Dominant());
      Put(kCells, cell.parts.size());
      for (const SummaryPart& part : cell.parts) {
        Put(kCells, part.declaration);
        Put(kCells, part.count);
        Put(kCells, part.cycles);
      }
      parts_ += cell.parts.size();
      ++slices_;
      ++total_;
    }
  }
}

void PageBlocks::PutSlice(const Slice& slice, uint64_t& last, unsigned shift, uint64_t origin) {
  const auto since = [&](uint64_t cycles) {
    return std::min<uint64_t>((std::max(cycles, origin) - origin) >> shift, 0xffffffff);
  };
  const uint64_t begin = std::max(since(slice.begin), last);
  const uint64_t end = std::max(since(slice.end), begin);
  if (begin != since(slice.begin) || end != since(slice.end)) ++mended_;
  PutTime(kGapLow, kGapHigh, begin - last);
  const bool is_range = slice.range != kNoRow;
  if (is_range) PutTime(kDurationLow, kDurationHigh, end - begin);
  last = end;

  const trace::Ranges& ranges = model_.ranges;
  const uint32_t row =
      is_range ? ranges.declaration[slice.range] : model_.events.declaration[slice.event];
  const uint8_t carries = carries_[row];
  Put(kDeclarations, row);
  if ((carries & kPayload) != 0) {
    const uint64_t bits =
        is_range ? ranges.payload[slice.range] : model_.events.payload[slice.event];
    Put(kPayloads, ZigZag(static_cast<uint32_t>(bits - last_payload_[row])));
    if ((carries & kWide) != 0) Put(kPayloads, bits >> 32);
    last_payload_[row] = bits;
  }
  const uint8_t flags = is_range ? ranges.flags[slice.range] & ~trace::kRangeToken : 0;
  if (flags != 0) {
    Put(kFlags, slices_ - last_flagged_);
    Put(kFlags, flags);
    last_flagged_ = slices_;
  }
  const uint32_t end_event = is_range ? ranges.end_event[slice.range] : kNoRow;
  if ((carries & kMore) != 0 && slice.event != kNoRow) PutValuesOf(slice.event, false);
  if (end_event != kNoRow &&
      (carries_[model_.events.declaration[end_event]] & (kMore | kAtEnd)) != 0) {
    PutValuesOf(end_event, true);
  }
  if (any_links_) {
    if (slice.event != kNoRow) slice_of_event_[slice.event] = static_cast<uint32_t>(total_);
    if (end_event != kNoRow) slice_of_event_[end_event] = static_cast<uint32_t>(total_);
  }
  ++slices_;
  ++total_;
}

void PageBlocks::PutValuesOf(uint32_t event, bool at_end) {
  const trace::Declaration& declared = model_.declarations[model_.events.declaration[event]];
  if (at_end && declared.payload != PayloadType::kNone && model_.HasPayload(event)) {
    PutValue({declared.payload_name, declared.payload, true}, model_.events.payload[event]);
  }
  if (declared.more.empty()) return;
  const iket::Column<uint32_t>& of = model_.values.event;
  const auto end = of.begin() + static_cast<ptrdiff_t>(last_value_);
  const auto at = std::lower_bound(of.begin() + static_cast<ptrdiff_t>(first_value_), end, event);
  for (auto i = static_cast<size_t>(at - of.begin()); i < last_value_ && of[i] == event; ++i) {
    const uint8_t index = model_.values.index[i];
    if (index >= declared.more.size()) continue;  // the payload, again
    PutValue({declared.more[index].name, declared.more[index].type, at_end},
             model_.values.value[i]);
  }
}

void PageBlocks::PutValue(const PageValue& value, uint64_t bits) {
  const auto [at, is_new] = value_index_.try_emplace(value, static_cast<uint32_t>(values_.size()));
  if (is_new) values_.push_back(value);
  Put(kFurther, slices_ - last_valued_);
  Put(kFurther, at->second);
  Put(kFurther, static_cast<uint32_t>(bits));
  Put(kFurther, bits >> 32);
  last_valued_ = slices_;
}

std::string_view PageBlocks::Columns(PageColumns::Part part) {
  joined_.clear();
  for (size_t column = PageColumns::kFirst[part]; column < PageColumns::kFirst[part + 1];
       ++column) {
    PutVarint(joined_, columns_[column].size());
    joined_ += columns_[column];
  }
  return joined_;
}

void PageBlocks::End() {
  for (std::string& column : columns_) column.clear();
  std::ranges::fill(last_payload_, 0);
  slices_ = slice_rows_ = last_flagged_ = last_valued_ = 0;
  last_cta_x_ = last_begin_ = last_life_ = 0;
}

}  // namespace iket::exporter
