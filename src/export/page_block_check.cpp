#include "export/page_block_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/model.h"

namespace iket::exporter {
namespace {

constexpr uint64_t kMost32 = 0xffffffff;
constexpr std::array kColumnNames = {"warps",        "rows",     "gaps",  "durations",
                                     "declarations", "payloads", "flags", "values"};

}  // namespace

std::optional<uint64_t> PageColumn::Next() {
  uint64_t value = 0;
  for (unsigned shift = 0; at_ < bytes_.size() && shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes_[at_++]);
    if (shift == 63 && byte > 1) return std::nullopt;
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> PageColumn::Take(uint64_t size) {
  if (size > bytes_.size() - at_) return std::nullopt;
  at_ += size;
  return bytes_.substr(at_ - size, size);
}

void PageBlockCheck::Add(std::string_view kind, std::string_view text) {
  faults_.Add(offset_, kind, fmt::format("block{}, warp {}: {}", block_, warp_, text));
}

bool PageBlockCheck::Next(Column column, uint64_t& number) {
  const auto next = columns_[column].Next();
  if (next) {
    number = *next;
    return true;
  }
  Add("column", fmt::format("the column of {} ends too soon", kColumnNames[column]));
  return false;
}

void PageBlockCheck::Take(std::string_view untrusted, size_t index, uint64_t offset) {
  offset_ = offset;
  block_ = index;
  warp_ = slice_ = 0;
  PageColumn all(untrusted);
  for (PageColumn& column : columns_) {
    const auto size = all.Next();
    const auto bytes = size ? all.Take(*size) : std::nullopt;
    if (!bytes) {
      return faults_.Add(
          offset_, "column",
          fmt::format("block{}: not {} columns behind their lengths", block_, columns_.size()));
    }
    column = PageColumn(*bytes);
  }
  const PageHead::Block& said = head_.blocks[block_];
  if (!TakeFlags(said.slices)) return;
  for (; warp_ < said.warps; ++warp_, ++warps_) {
    if (!TakeWarp(said.launch)) return;
  }
  if (!TakeValues(said.slices)) return;
  if (slice_ != said.slices) {
    Add("count", fmt::format("{} slices were read; head says {}", slice_, said.slices));
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].done()) continue;
    Add("column", fmt::format("the column of {} goes on behind the last warp", kColumnNames[i]));
  }
  if (!all.done()) Add("column", "bytes behind the last column");
}

bool PageBlockCheck::TakeFlags(uint64_t slices) {
  flags_.clear();
  for (uint64_t at = 0; !columns_[kFlags].done();) {
    uint64_t distance = 0, flags = 0;
    if (!Next(kFlags, distance) || !Next(kFlags, flags)) return false;
    if (distance >= slices - at || (distance == 0 && !flags_.empty())) {
      Add("row", "flags of a slice that is not there");
      return false;
    }
    at += distance;
    flags_[at] = flags;
  }
  return true;
}

bool PageBlockCheck::TakeWarp(uint64_t launch) {
  uint64_t x = 0, y = 0, z = 0, index = 0, sm = 0, slot = 0, flags = 0, shift = 0, begin = 0;
  uint64_t life = 0, rows = 0;
  for (uint64_t* number : {&x, &y, &z, &index, &sm, &slot, &flags, &shift, &begin, &life, &rows}) {
    if (!Next(kWarps, *number)) return false;
  }
  if (std::ranges::max({x, y, z}) > kMost32 || index > kMost32 || slot > 0xff || flags > 0xff) {
    Add("count", "a number of its place or state that none has");
  }
  if (sm >= head_.sms_of_launch[launch]) {
    Add("row", fmt::format("it ran on SM {} of {}", sm, head_.sms_of_launch[launch]));
  }
  constexpr uint64_t kMostShift = 32;
  if (shift > kMostShift || life > kMost32) {
    Add("time", fmt::format("it lived for {} times 2^{} cycles", life, shift));
  }
  rows_.clear();
  for (; rows > 0; --rows) {
    if (!TakeRow(life)) return false;
  }
  CheckNesting();
  return true;
}

bool PageBlockCheck::TakeRow(uint64_t life) {
  uint64_t index = 0, count = 0;
  if (!Next(kRows, index) || !Next(kRows, count)) return false;
  if (index >= head_.rows.size()) {
    Add("row", fmt::format("row {} of {}", index, head_.rows.size()));
    return false;
  }
  Row row{.index = index};
  uint64_t last = 0;
  for (; count > 0; --count) {
    if (!TakeSlice(head_.rows[index].marks, life, last, row.slices)) return false;
  }
  rows_.push_back(std::move(row));
  return true;
}

bool PageBlockCheck::TakeSlice(bool mark, uint64_t life, uint64_t& last,
                               std::vector<Slice>& slices) {
  uint64_t gap = 0, duration = 0, declaration = 0;
  if (!Next(kGap, gap) || !Next(kDuration, duration) || !Next(kDeclaration, declaration)) {
    return false;
  }
  if (gap > kMost32 || duration > kMost32 || last + gap + duration > life) {
    Add("time", fmt::format("slice {} ends after the warp", slice_));
    return false;
  }
  if (mark && duration != 0) Add("time", fmt::format("slice {}, a mark, has a duration", slice_));
  if (declaration >= head_.types.size()) {
    Add("row",
        fmt::format("slice {}: declaration {} of {}", slice_, declaration, head_.types.size()));
    return false;
  }
  if (!TakePayload(head_.types[declaration])) return false;
  const auto flags = flags_.find(slice_);
  last += gap + duration;
  slices.push_back(
      {.begin = last - duration,
       .end = last,
       .crossed = flags != flags_.end() && (flags->second & trace::kRangeCrossed) != 0});
  ++slice_;
  ++(mark ? marks_ : ranges_);
  return true;
}

bool PageBlockCheck::TakePayload(trace::PayloadType type) {
  if (type == trace::PayloadType::kNone) return true;
  uint64_t difference = 0, high = 0;
  if (!Next(kPayload, difference)) return false;
  if (trace::IsWide(type) && !Next(kPayload, high)) return false;
  if (difference > kMost32 || high > kMost32) {
    Add("count", fmt::format("slice {}: a payload of too many bits", slice_));
  }
  return true;
}

void PageBlockCheck::CheckNesting() {
  std::ranges::sort(rows_, {}, &Row::index);
  for (size_t i = 1; i < rows_.size(); ++i) {
    if (rows_[i].index == rows_[i - 1].index) {
      Add("row", fmt::format("row {} is there twice", rows_[i].index));
    }
  }
  for (const Row& row : rows_) {
    const size_t parent = head_.rows[row.index].parent;
    if (parent == PageHead::kNone) continue;
    const auto above = std::ranges::lower_bound(rows_, parent, {}, &Row::index);
    const bool there = above != rows_.end() && above->index == parent;
    size_t next = 0;  // of those above, the first that begins later
    for (const Slice& slice : row.slices) {
      if (slice.crossed) continue;
      while (there && next < above->slices.size() && above->slices[next].begin <= slice.begin) {
        ++next;
      }
      if (next != 0 && slice.end <= above->slices[next - 1].end) continue;
      Add("nesting", fmt::format("a slice of row {} at {} does not lie in one of row {}", row.index,
                                 slice.begin, parent));
      break;
    }
  }
}

bool PageBlockCheck::TakeValues(uint64_t slices) {
  for (uint64_t at = 0; !columns_[kValues].done();) {
    uint64_t distance = 0, value = 0, low = 0, high = 0;
    for (uint64_t* number : {&distance, &value, &low, &high}) {
      if (!Next(kValues, *number)) return false;
    }
    if (distance >= slices - at) {
      Add("row", "a value of a slice that is not there");
      return false;
    }
    at += distance;
    if (value >= head_.values) Add("row", fmt::format("value {} of {}", value, head_.values));
    if (low > kMost32 || high > kMost32) Add("count", "a value of too many bits");
  }
  return true;
}

}  // namespace iket::exporter
