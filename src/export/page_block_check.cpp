#include "export/page_block_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "trace/model.h"

namespace iket::exporter {
namespace {

constexpr uint64_t kMost32 = 0xffffffff;
constexpr uint64_t kMostCycles = std::numeric_limits<int64_t>::max();

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

PageColumns::Part PageBlockCheck::PartOf(size_t column) {
  if (column < PageColumns::kFirst[PageColumns::kLowBytes]) return PageColumns::kShape;
  if (column < PageColumns::kFirst[PageColumns::kValues]) return PageColumns::kLowBytes;
  return PageColumns::kValues;
}

void PageBlockCheck::Add(std::string_view kind, std::string_view text, PageColumns::Part part) {
  sound_ = false;
  faults_.Add(parts_[part].offset, kind,
              fmt::format("{}{}, {} {}: {}", PageColumns::kIds[part], block_,
                          lanes_ ? "lane" : "warp", warp_, text));
}

bool PageBlockCheck::AddTo(uint64_t& sum, uint64_t number) {
  sum += number;
  if (sum >= number) return true;
  Add("count", "more than there can be");
  return false;
}

bool PageBlockCheck::Next(Column column, uint64_t& number) {
  const auto next = columns_[column].Next();
  if (next) {
    number = *next;
    return true;
  }
  Add("column", fmt::format("the column of {} ends too soon", PageColumns::kNames[column]),
      PartOf(column));
  return false;
}

bool PageBlockCheck::NextTime(Column low, Column high, uint64_t& units) {
  if (!Next(high, units)) return false;
  const auto byte = columns_[low].Take(1);
  if (!byte) {
    Add("column", fmt::format("the column of {} ends too soon", PageColumns::kNames[low]),
        PartOf(low));
    return false;
  }
  if (units > kMost32 >> 8) {
    Add("time", fmt::format("slice {} has more than 32 bits of a time", slice_));
    return false;
  }
  units = units << 8 | static_cast<uint8_t>(byte->front());
  return true;
}

bool PageBlockCheck::NextFrom(Column column, uint64_t& last) {
  uint64_t code = 0;
  if (!Next(column, code)) return false;
  last += code >> 1 ^ (0 - (code & 1));
  return true;
}

bool PageBlockCheck::NextDeclaration(Column column, uint64_t& declaration) {
  if (!Next(column, declaration)) return false;
  if (declaration < head_.types.size()) return true;
  Add("row",
      fmt::format("slice {}: declaration {} of {}", slice_, declaration, head_.types.size()));
  return false;
}

bool PageBlockCheck::SplitColumns(const PageBlockParts& untrusted) {
  for (const auto part : {PageColumns::kShape, PageColumns::kLowBytes, PageColumns::kValues}) {
    PageColumn all(untrusted[part].bytes);
    const size_t first = PageColumns::kFirst[part], end = PageColumns::kFirst[part + 1];
    for (size_t column = first; column < end; ++column) {
      const auto size = all.Next();
      const auto bytes = size ? all.Take(*size) : std::nullopt;
      if (!bytes) {
        Add("column", fmt::format("not {} columns behind their lengths", end - first), part);
        return false;
      }
      columns_[column] = PageColumn(*bytes);
    }
    if (!all.done()) Add("column", "bytes behind the last column", part);
  }
  return true;
}

bool PageBlockCheck::Take(const PageBlockParts& untrusted, size_t index) {
  parts_ = untrusted;
  block_ = index;
  sound_ = true;
  lanes_ = head_.HasLanes(index);
  warp_ = slice_ = slice_rows_ = cta_x_ = begin_ = life_ = 0;
  const PageHead::Block& said = head_.blocks[block_];
  // Cells have neither flags nor values.
  const uint64_t slices = lanes_ ? 0 : said.slices;
  if (!SplitColumns(untrusted) || !TakeFlags(slices)) return false;
  for (; warp_ < said.warps; ++warp_) {
    if (!TakeWarp()) return false;
  }
  if (!TakeValues(slices)) return false;
  if (slice_ != said.slices || slice_rows_ != said.rows) {
    Add("count", fmt::format("{} slices in {} rows were read; head says {} in {}", slice_,
                             slice_rows_, said.slices, said.rows));
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].done()) continue;
    Add("column", fmt::format("the column of {} goes on behind the last", PageColumns::kNames[i]),
        PartOf(i));
  }
  return sound_;
}

void PageBlockCheck::CheckSums(uint64_t offset) {
  if (!head_.summary) return;
  const PageHead::Summary& said = *head_.summary;
  const std::tuple<std::string_view, uint64_t, uint64_t> sums[] = {
      {"warps one by one", detail_warps_, said.detail_warps},
      {"slices one by one", detail_slices_, said.detail_slices},
      {"warps", warps_, said.warps},
      {"slices", slices_, said.slices},
      {"parts of cells", cell_parts_, said.parts}};
  for (const auto& [what, found, expected] : sums) {
    if (found == expected) continue;
    faults_.Add(offset, "count",
                fmt::format("summary: it says {} {}; {} are there", expected, what, found));
  }
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

bool PageBlockCheck::TakeWarp() {
  uint64_t y = 0, z = 0, index = 0, sm = 0, slot = 0, flags = 0, rows = 0;
  Life life;
  const bool there = NextFrom(kCtaX, cta_x_) && Next(kCtaY, y) && Next(kCtaZ, z) &&
                     Next(kIndex, index) && Next(kSm, sm) && Next(kSlot, slot) &&
                     Next(kWarpFlags, flags) && Next(kShift, life.shift) &&
                     NextFrom(kBegin, begin_) && NextFrom(kLife, life_) && Next(kRowCount, rows);
  if (!there) return false;
  life.units = life_;
  if (std::max({cta_x_, y, z}) > kMost32 || index > kMost32 || slot > 0xff || flags > 0xff) {
    Add("count", "a number of its place or state that none has");
  }
  const size_t sms = head_.sms_of_launch[head_.blocks[block_].launch];
  if (sm >= sms) Add("row", fmt::format("it ran on SM {} of {}", sm, sms));
  const uint64_t most_shift = lanes_ ? 33 : 32;
  if (life.shift > most_shift || life.units > kMost32 || begin_ > kMostCycles) {
    Add("time", fmt::format("it began at {} and lived for {} times 2^{} cycles", begin_, life.units,
                            life.shift));
    return false;
  }
  if (lanes_) {
    if (!TakeLane(life)) return false;
  } else {
    ++detail_warps_, ++warps_;
  }
  rows_.clear();
  for (; rows > 0; --rows) {
    if (!TakeRow(life)) return false;
  }
  CheckRows();
  return true;
}

bool PageBlockCheck::TakeLane(const Life& life) {
  uint64_t warps = 0, cycles = 0;
  if (!Next(kMembers, warps) || !Next(kMembers, cycles) || !AddTo(warps_, warps)) return false;
  if (warps == 0 ? cycles != 0 : cycles / warps >> life.shift > life.units) {
    Add("time", fmt::format("{} warps lived for {} cycles in it", warps, cycles));
  }
  return true;
}

bool PageBlockCheck::TakeRow(const Life& life) {
  uint64_t index = 0, count = 0;
  if (!Next(kRows, index) || !Next(kRows, count)) return false;
  if (index >= head_.rows.size()) {
    Add("row", fmt::format("row {} of {}", index, head_.rows.size()));
    return false;
  }
  ++slice_rows_;
  Row row{.index = index};
  const bool mark = head_.rows[index].marks;
  uint64_t last = 0;
  for (; count > 0; --count) {
    if (lanes_ ? !TakeCell(mark, life, last) : !TakeSlice(mark, life, last, row.slices)) {
      return false;
    }
    ++slice_;
  }
  rows_.push_back(std::move(row));
  return true;
}

bool PageBlockCheck::TakeSlice(bool mark, const Life& life, uint64_t& last,
                               std::vector<Slice>& slices) {
  uint64_t gap = 0, duration = 0, declaration = 0;
  if (!NextTime(kGapLow, kGapHigh, gap)) return false;
  if (!mark && !NextTime(kDurationLow, kDurationHigh, duration)) return false;
  if (!NextDeclaration(kDeclarations, declaration)) return false;
  if (last + gap + duration > life.units) {
    Add("time", fmt::format("slice {} ends after the warp", slice_));
    return false;
  }
  if (!TakePayload(head_.types[declaration])) return false;
  const auto flags = flags_.find(slice_);
  last += gap + duration;
  slices.push_back(
      {.begin = last - duration,
       .end = last,
       .crossed = flags != flags_.end() && (flags->second & trace::kRangeCrossed) != 0});
  ++detail_slices_, ++slices_;
  ++(mark ? marks_ : ranges_);
  return true;
}

bool PageBlockCheck::TakePayload(trace::PayloadType type) {
  if (type == trace::PayloadType::kNone) return true;
  uint64_t difference = 0, high = 0;
  if (!Next(kPayloads, difference)) return false;
  if (trace::IsWide(type) && !Next(kPayloads, high)) return false;
  if (difference > kMost32 || high > kMost32) {
    Add("count", fmt::format("slice {}: a payload of too many bits", slice_), PageColumns::kValues);
  }
  return true;
}

bool PageBlockCheck::TakeCell(bool mark, const Life& life, uint64_t& last) {
  uint64_t gap = 0, duration = 0, dominant = 0, parts = 0;
  if (!NextTime(kGapLow, kGapHigh, gap) || !NextTime(kDurationLow, kDurationHigh, duration) ||
      !NextDeclaration(kDeclarations, dominant) || !Next(kCells, parts)) {
    return false;
  }
  last += gap + duration;
  // What begins at the lane's last moment has a unit, too.
  if (duration == 0 || last > life.units + 1) {
    Add("time", fmt::format("cell {} lasts for nothing, or ends after the lane", slice_));
    return false;
  }
  cell_.clear();
  for (; parts > 0; --parts) {
    if (!TakePart(mark)) return false;
  }
  const auto most = std::ranges::max_element(cell_, {}, [](const Part& part) {
    return std::tuple(part.cycles, part.count, ~part.declaration);
  });
  if (most == cell_.end() || most->declaration != dominant) {
    Add("count", fmt::format("cell {} is of another name than takes most of it", slice_));
  }
  std::ranges::sort(cell_, {}, &Part::declaration);
  if (std::ranges::adjacent_find(cell_, {}, &Part::declaration) != cell_.end()) {
    Add("row", fmt::format("cell {} has a name twice", slice_));
  }
  return true;
}

bool PageBlockCheck::TakePart(bool mark) {
  Part part;
  if (!NextDeclaration(kCells, part.declaration) || !Next(kCells, part.count) ||
      !Next(kCells, part.cycles)) {
    return false;
  }
  if (part.count == 0 && part.cycles == 0) {
    Add("count", fmt::format("cell {} has a part that is nothing", slice_));
  }
  if (mark && part.cycles != 0) {
    Add("time", fmt::format("cell {}, of marks, has a duration", slice_));
  }
  cell_.push_back(part);
  ++cell_parts_;
  return AddTo(slices_, part.count) && AddTo(mark ? marks_ : ranges_, part.count);
}

void PageBlockCheck::CheckRows() {
  std::ranges::sort(rows_, {}, &Row::index);
  for (size_t i = 1; i < rows_.size(); ++i) {
    if (rows_[i].index == rows_[i - 1].index) {
      Add("row", fmt::format("row {} is there twice", rows_[i].index));
    }
  }
  if (lanes_) return;
  for (const Row& row : rows_) CheckNesting(row);
}

void PageBlockCheck::CheckNesting(const Row& row) {
  const size_t parent = head_.rows[row.index].parent;
  if (parent == PageHead::kNone) return;
  const auto at = std::ranges::lower_bound(rows_, parent, {}, &Row::index);
  static const std::vector<Slice> kNothing;
  const auto& above = at != rows_.end() && at->index == parent ? at->slices : kNothing;
  size_t next = 0;  // of those above, the first that begins later
  for (const Slice& slice : row.slices) {
    if (slice.crossed) continue;
    while (next < above.size() && above[next].begin <= slice.begin) ++next;
    if (next != 0 && slice.end <= above[next - 1].end) continue;
    const bool beside = (next == 0 || above[next - 1].end <= slice.begin) &&
                        (next == above.size() || slice.end <= above[next].begin);
    if (head_.excerpt && beside) continue;  // what it lay in was not asked for
    Add("nesting", fmt::format("a slice of row {} at {} does not lie in one of row {}", row.index,
                               slice.begin, parent));
    break;
  }
}

bool PageBlockCheck::TakeValues(uint64_t slices) {
  for (uint64_t at = 0; !columns_[kFurther].done();) {
    uint64_t distance = 0, value = 0, low = 0, high = 0;
    for (uint64_t* number : {&distance, &value, &low, &high}) {
      if (!Next(kFurther, *number)) return false;
    }
    if (distance >= slices - at) {
      Add("row", "a value of a slice that is not there", PageColumns::kValues);
      return false;
    }
    at += distance;
    if (value >= head_.values) {
      Add("row", fmt::format("value {} of {}", value, head_.values), PageColumns::kValues);
    }
    if (low > kMost32 || high > kMost32) {
      Add("count", "a value of too many bits", PageColumns::kValues);
    }
  }
  return true;
}

}  // namespace iket::exporter
