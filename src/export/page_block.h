// page_block.h: warps with their ranges and marks as the columns that the offline page reads.
//
// A block holds whole warps. Ranges of a warp are cut into rows in which none overlaps another: by
// depth, and apart from each other those of tokens and of lanes; its marks are a row more. Times
// are cycles since the warp's begin: exact, but for a warp that lives for more than 2^32 cycles,
// whose times are in units of 2^shift. docs/timeline.md has the columns; src/viewer/trace.ts reads
// them.
//
// What is alike stands together, since that packs best (docs/benchmarks/viewer.md): each field of
// warps is a column, and of times the low bytes are one column and what is above them another.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "export/page_columns.h"
#include "export/page_detail.h"
#include "export/page_row.h"
#include "export/page_summary.h"
#include "trace/model.h"

namespace iket::exporter {

// A value beside the payload that opens a range: of its name, and of either end.
struct PageValue {
  trace::StringId name = 0;
  trace::PayloadType type = trace::PayloadType::kNone;
  bool at_end = false;
  auto operator<=>(const PageValue&) const = default;
};

class PageBlocks {
 public:
  // Neither may go.
  PageBlocks(const trace::Model& model, const PageDetail& detail);

  // Appends a warp to the block at hand: what of it is in detail.
  void Add(uint32_t warp);
  // Appends a lane of the summary, whose slices are its cells. A block has warps or lanes.
  void AddLane(const SummaryLane& lane);
  // In the block at hand.
  uint64_t slices() const { return slices_; }
  uint64_t slice_rows() const { return slice_rows_; }
  // A part of the block: its columns, each behind its length. Valid until the next call.
  std::string_view Columns(PageColumns::Part part);
  void End();  // the next block starts empty

  // Of all blocks so far. Rows and values are named by their index.
  const std::vector<PageRow>& rows() const { return rows_; }
  const std::vector<PageValue>& values() const { return values_; }
  uint64_t total_slices() const { return total_; }
  uint64_t parts() const { return parts_; }    // of all cells
  uint64_t mended() const { return mended_; }  // slices that overlapped, which must not be
  // Number of the slice, over all blocks, that an event opens, closes, or is.
  uint32_t SliceOf(uint32_t event) const { return slice_of_event_[event]; }

 private:
  struct Slice {
    uint64_t begin = 0, end = 0;
    uint32_t range = trace::kNoRow;  // kNoRow: a mark
    uint32_t event = trace::kNoRow;
  };
  using enum PageColumns::Column;
  using Column = PageColumns::Column;

  uint32_t RowOf(const PageRow& row);
  std::vector<Slice>& LocalRow(uint32_t row);
  void Put(Column column, uint64_t value);
  void PutTime(Column low, Column high, uint64_t value);
  // What warps and lanes have.
  struct WarpHead {
    uint32_t cta_x = 0, cta_y = 0, cta_z = 0, index = trace::kNoRow, sm = 0;
    uint8_t slot = trace::kNoSlot, flags = 0;
    unsigned shift = 0;
    uint64_t begin = 0, life = 0;  // life in units of 2^shift cycles
    size_t rows = 0;
  };
  void PutHead(const WarpHead& head);
  void PutSlice(const Slice& slice, uint64_t& last, unsigned shift, uint64_t origin);
  void PutValue(const PageValue& value, uint64_t bits);
  void PutValuesOf(uint32_t event, bool at_end);

  // What a slice asks of its declaration, or of that of its end, in a byte: there are millions.
  enum Carries : uint8_t { kPayload = 1, kWide = 2, kMore = 4, kAtEnd = 8 };
  static uint8_t WhatItCarries(const trace::Declaration& declared);

  const trace::Model& model_;
  const PageDetail& detail_;
  bool any_links_ = false;
  std::vector<uint8_t> carries_;  // by declaration
  std::string columns_[kColumns];
  std::string joined_;
  std::vector<PageRow> rows_;
  std::map<PageRow, uint32_t> row_index_;
  std::vector<uint32_t> plain_rows_;  // by depth
  std::vector<PageValue> values_;
  std::map<PageValue, uint32_t> value_index_;
  std::vector<uint64_t> last_payload_;  // by declaration
  std::vector<std::vector<Slice>> local_;
  std::vector<uint32_t> local_of_;           // by row: its index in `used_`, or kNoRow
  std::vector<uint32_t> used_;               // rows of the warp at hand
  size_t first_value_ = 0, last_value_ = 0;  // of the warp at hand: rows of Model::values
  uint64_t slices_ = 0, slice_rows_ = 0, total_ = 0, mended_ = 0, parts_ = 0;
  uint64_t last_flagged_ = 0, last_valued_ = 0;
  uint64_t last_cta_x_ = 0, last_begin_ = 0, last_life_ = 0;  // of the warp before
  iket::Column<uint32_t> slice_of_event_;
};

}  // namespace iket::exporter
