// page_block_check.h: do the columns of a block of the offline page say something that can be
// shown?
//
// Each column ends where the others do; what is named is there; slices of a row follow each other
// and end when their warp does, lie in those above them, and are as many as the head says; so do
// the cells of a summary, and what they count makes, with what is shown one by one, all that the
// head says there is. Private to page_check.cpp and its tests. Memory: a warp's slices and a
// block's flags.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "export/check.h"
#include "export/page_columns.h"
#include "export/page_head.h"

namespace iket::exporter {

// A column: numbers, least significant seven bits first, or bytes.
class PageColumn {
 public:
  PageColumn() = default;
  explicit PageColumn(std::string_view untrusted) : bytes_(untrusted) {}

  bool done() const { return at_ == bytes_.size(); }
  // Nothing at the end, and of a number that is cut or has more than 64 bits.
  std::optional<uint64_t> Next();
  std::optional<std::string_view> Take(uint64_t size);

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

struct PageBlockPart {
  std::string_view bytes;  // unpacked
  uint64_t offset = 0;     // of its element in the page
};
using PageBlockParts = std::array<PageBlockPart, PageColumns::kParts>;

class PageBlockCheck {
 public:
  PageBlockCheck(const PageHead& head, Faults& faults) : head_(head), faults_(faults) {}

  // The block `index` of the head. False if something in it is wrong.
  bool Take(const PageBlockParts& untrusted, size_t index);
  // Once all blocks were taken, and nothing in them was wrong: do their numbers add up? The head
  // stands at `offset`.
  void CheckSums(uint64_t offset);

  // One by one and summed up.
  uint64_t warps() const { return warps_; }
  uint64_t ranges() const { return ranges_; }
  uint64_t marks() const { return marks_; }

 private:
  using enum PageColumns::Column;
  using Column = PageColumns::Column;
  struct Slice {
    uint64_t begin = 0, end = 0;
    bool crossed = false;
  };
  struct Row {
    size_t index = 0;
    std::vector<Slice> slices = {};
  };
  struct Life {
    uint64_t units = 0, shift = 0;
  };
  struct Part {
    uint64_t declaration = 0, count = 0, cycles = 0;
  };

  static PageColumns::Part PartOf(size_t column);
  void Add(std::string_view kind, std::string_view text,
           PageColumns::Part part = PageColumns::kShape);
  bool SplitColumns(const PageBlockParts& untrusted);
  // False, and said, if the sum has more bits than a number.
  bool AddTo(uint64_t& sum, uint64_t number);
  // The next number; of a column that has none it says so, once for the block.
  bool Next(Column column, uint64_t& number);
  bool NextTime(Column low, Column high, uint64_t& units);
  // The next number of a difference to `last`, which it becomes.
  bool NextFrom(Column column, uint64_t& last);
  bool NextDeclaration(Column column, uint64_t& declaration);
  bool TakeFlags(uint64_t slices);
  bool TakeWarp();
  bool TakeLane(const Life& life);
  bool TakeRow(const Life& life);
  bool TakeSlice(bool mark, const Life& life, uint64_t& last, std::vector<Slice>& slices);
  bool TakePayload(trace::PayloadType type);
  bool TakeCell(bool mark, const Life& life, uint64_t& last);
  bool TakePart(bool mark);
  void CheckRows();
  void CheckNesting(const Row& row);
  bool TakeValues(uint64_t slices);

  const PageHead& head_;
  Faults& faults_;
  PageBlockParts parts_;
  size_t block_ = 0;
  bool sound_ = true;                               // the block at hand, so far
  bool lanes_ = false;                              // what it has instead of warps
  uint64_t warp_ = 0, slice_ = 0, slice_rows_ = 0;  // in the block
  uint64_t cta_x_ = 0, begin_ = 0, life_ = 0;       // of the warp before
  std::array<PageColumn, kColumns> columns_;
  std::map<uint64_t, uint64_t> flags_;                        // by slice
  std::vector<Row> rows_;                                     // of the warp at hand
  std::vector<Part> cell_;                                    // the cell at hand
  uint64_t warps_ = 0, ranges_ = 0, marks_ = 0, slices_ = 0;  // one by one and summed up
  uint64_t detail_warps_ = 0, detail_slices_ = 0, cell_parts_ = 0;
};

}  // namespace iket::exporter
