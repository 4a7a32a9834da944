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

uint32_t ZigZag(uint32_t difference) { return difference << 1 ^ (0 - (difference >> 31)); }

}  // namespace

PageBlocks::PageBlocks(const trace::Model& model)
    : model_(model),
      any_links_(model.flows.size() != 0 || !model.edges.empty()),
      last_payload_(model.declarations.size(), 0) {
  if (any_links_) slice_of_event_.assign(model.events.size(), kNoRow);
}

void PageBlocks::Put(Column column, uint64_t value) { PutVarint(columns_[column], value); }

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
  const uint32_t first = warps.first_range[warp];
  for (uint32_t range = first; range < first + warps.range_count[warp]; ++range) {
    const trace::Declaration& declared = model_.declarations[ranges.declaration[range]];
    const bool token = (ranges.flags[range] & trace::kRangeToken) != 0;
    const uint16_t depth = ranges.depth[range];
    uint32_t row = kNoRow;
    if (!token && (declared.group | declared.lane) == 0) {
      if (plain_rows_.size() <= depth) plain_rows_.resize(depth + 1u, kNoRow);
      if (plain_rows_[depth] == kNoRow) plain_rows_[depth] = RowOf({.depth = depth});
      row = plain_rows_[depth];
    } else {
      row = RowOf({.group = declared.group,
                   .lane = declared.lane,
                   .token = token ? declared.name : 0,
                   .depth = depth});
    }
    LocalRow(row).push_back(
        {ranges.begin_cycles[range], ranges.end_cycles[range], range, ranges.begin_event[range]});
  }
  const uint32_t first_mark = warps.first_mark[warp];
  for (uint32_t mark = first_mark; mark < first_mark + warps.mark_count[warp]; ++mark) {
    const uint32_t event = model_.marks.event[mark];
    const trace::Declaration& declared = model_.declarations[model_.events.declaration[event]];
    const uint64_t cycles = model_.events.cycles[event];
    LocalRow(RowOf({.marks = true, .group = declared.group, .lane = declared.lane}))
        .push_back({cycles, cycles, kNoRow, event});
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
  Put(kWarps, warps.cta_x[warp]);
  Put(kWarps, warps.cta_y[warp]);
  Put(kWarps, warps.cta_z[warp]);
  Put(kWarps, warps.index[warp] == kNoRow ? 0 : uint64_t{warps.index[warp]} + 1);
  Put(kWarps, warps.sm[warp]);
  Put(kWarps, warps.slot[warp]);
  Put(kWarps, warps.flags[warp]);
  Put(kWarps, shift);
  const bool back = begin < last_begin_;
  Put(kWarps, (back ? last_begin_ - begin : begin - last_begin_) << 1 | (back ? 1 : 0));
  last_begin_ = begin;
  Put(kWarps, life >> shift);
  Put(kWarps, order.size());
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

void PageBlocks::PutSlice(const Slice& slice, uint64_t& last, unsigned shift, uint64_t origin) {
  const auto since = [&](uint64_t cycles) {
    return std::min<uint64_t>((std::max(cycles, origin) - origin) >> shift, 0xffffffff);
  };
  const uint64_t begin = std::max(since(slice.begin), last);
  const uint64_t end = std::max(since(slice.end), begin);
  if (begin != since(slice.begin) || end != since(slice.end)) ++mended_;
  Put(kGap, begin - last);
  Put(kDuration, end - begin);
  last = end;

  const bool is_range = slice.range != kNoRow;
  const trace::Ranges& ranges = model_.ranges;
  const uint32_t row =
      is_range ? ranges.declaration[slice.range] : model_.events.declaration[slice.event];
  const trace::Declaration& declared = model_.declarations[row];
  Put(kDeclaration, row);
  if (declared.payload != PayloadType::kNone || declared.kind == trace::EventKind::kUnknown) {
    const uint64_t bits =
        is_range ? ranges.payload[slice.range] : model_.events.payload[slice.event];
    Put(kPayload, ZigZag(static_cast<uint32_t>(bits - last_payload_[row])));
    if (trace::IsWide(declared.payload)) Put(kPayload, bits >> 32);
    last_payload_[row] = bits;
  }
  const uint8_t flags = is_range ? ranges.flags[slice.range] & ~trace::kRangeToken : 0;
  if (flags != 0) {
    Put(kFlags, slices_ - last_flagged_);
    Put(kFlags, flags);
    last_flagged_ = slices_;
  }
  if (slice.event != kNoRow) PutValuesOf(slice.event, false);
  if (is_range && ranges.end_event[slice.range] != kNoRow) {
    PutValuesOf(ranges.end_event[slice.range], true);
  }
  if (any_links_) {
    if (slice.event != kNoRow) slice_of_event_[slice.event] = static_cast<uint32_t>(total_);
    if (is_range && ranges.end_event[slice.range] != kNoRow) {
      slice_of_event_[ranges.end_event[slice.range]] = static_cast<uint32_t>(total_);
    }
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
  const auto [first, last] = model_.values.Of(event);
  for (size_t i = first; i < last; ++i) {
    const uint8_t index = model_.values.index[i];
    if (index >= declared.more.size()) continue;  // the payload, again
    PutValue({declared.more[index].name, declared.more[index].type, at_end},
             model_.values.value[i]);
  }
}

void PageBlocks::PutValue(const PageValue& value, uint64_t bits) {
  const auto [at, is_new] = value_index_.try_emplace(value, static_cast<uint32_t>(values_.size()));
  if (is_new) values_.push_back(value);
  Put(kValues, slices_ - last_valued_);
  Put(kValues, at->second);
  Put(kValues, static_cast<uint32_t>(bits));
  Put(kValues, bits >> 32);
  last_valued_ = slices_;
}

std::string PageBlocks::Take() {
  std::string block;
  for (std::string& column : columns_) {
    PutVarint(block, column.size());
    block += column;
    column.clear();
  }
  std::ranges::fill(last_payload_, 0);
  slices_ = last_flagged_ = last_valued_ = last_begin_ = 0;
  return block;
}

}  // namespace iket::exporter
