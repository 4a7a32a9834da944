// page_block_check.h: do the columns of a block of the offline page say something that can be
// shown?
//
// Each column ends where the others do; what is named is there; slices of a row follow each other
// and end when their warp does, lie in those above them, and are as many as the head says. Private
// to page_check.cpp and its tests. Memory: a warp's slices and a block's flags.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "export/check.h"
#include "export/page_head.h"

namespace iket::exporter {

// A column: numbers, least significant seven bits first.
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

class PageBlockCheck {
 public:
  PageBlockCheck(const PageHead& head, Faults& faults) : head_(head), faults_(faults) {}

  // The block `index` of the head, whose element stands at `offset`.
  void Take(std::string_view untrusted, size_t index, uint64_t offset);

  uint64_t warps() const { return warps_; }
  uint64_t ranges() const { return ranges_; }
  uint64_t marks() const { return marks_; }

 private:
  enum Column { kWarps, kRows, kGap, kDuration, kDeclaration, kPayload, kFlags, kValues, kColumns };
  struct Slice {
    uint64_t begin = 0, end = 0;
    bool crossed = false;
  };
  struct Row {
    size_t index = 0;
    std::vector<Slice> slices = {};
  };

  void Add(std::string_view kind, std::string_view text);
  // The next number; of a column that has none it says so, once for the block.
  bool Next(Column column, uint64_t& number);
  bool TakeFlags(uint64_t slices);
  bool TakeWarp(uint64_t launch);
  bool TakeRow(uint64_t life);
  bool TakeSlice(bool mark, uint64_t life, uint64_t& last, std::vector<Slice>& slices);
  bool TakePayload(trace::PayloadType type);
  void CheckNesting();
  bool TakeValues(uint64_t slices);

  const PageHead& head_;
  Faults& faults_;
  uint64_t offset_ = 0;
  size_t block_ = 0;
  uint64_t warp_ = 0, slice_ = 0;  // in the block
  std::array<PageColumn, kColumns> columns_;
  std::map<uint64_t, uint64_t> flags_;  // by slice
  std::vector<Row> rows_;               // of the warp at hand
  uint64_t warps_ = 0, ranges_ = 0, marks_ = 0;
};

}  // namespace iket::exporter
