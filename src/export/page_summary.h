// page_summary.h: what a page does not show one by one, as sums over pieces of time.
//
// A lane is what ran on an SM as one number of warp, of all CTAs of a launch one after the other
// and beside each other: of a kernel that keeps its CTAs it is a warp, and a grid of a million CTAs
// has no more lanes than SMs times warps of a CTA. It has the rows of its warps, and a row has
// cells. Nothing is lost by adding up: each slice is counted in the cell in which it begins, and
// each of its cycles is in the cell in which it passed.
//
// Memory is that of a lane. Cost: a step a slice, and one a cell that it passes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "export/page_detail.h"
#include "export/page_row.h"
#include "trace/model.h"

namespace iket::exporter {

struct SummaryPart {
  uint32_t declaration = 0;
  uint64_t count = 0;   // of slices that begin in the cell
  uint64_t cycles = 0;  // within the cell, of all slices
};

struct SummaryCell {
  uint64_t begin = 0, end = 0;  // cycles of the SM
  std::vector<SummaryPart> parts;
  // Of what takes most of it.
  uint32_t Dominant() const;
};

struct SummaryRow {
  PageRow row;
  std::vector<SummaryCell> cells;  // in order, none empty; they do not overlap
};

struct SummaryLane {
  uint32_t sm = 0;
  uint32_t index = trace::kNoRow;  // of the warps in their CTA
  uint64_t warps = 0;              // that nothing of is shown one by one
  uint64_t alive_cycles = 0;       // of these, added up
  uint64_t begin = 0, end = 0;     // cycles of the SM
  unsigned shift = 0;              // all times are multiples of 2^shift cycles after the begin
  std::vector<SummaryRow> rows{};
};

class PageSummary {
 public:
  static constexpr uint64_t kMostPieces = 512;    // of a lane
  static constexpr uint64_t kAllCells = 1 << 18;  // of all lanes: some megabytes of a page
  static constexpr uint64_t kSlicesInPiece = 8;   // no fewer, or it would not be shorter

  PageSummary(const trace::Model& model, const PageDetail& detail);

  // The lanes of a launch, by SM and warp.
  void EachLane(uint32_t launch, const std::function<void(const SummaryLane&)>& take);

  // Over all launches so far: ranges that were never closed, or overlap another.
  uint64_t doubtful() const { return doubtful_; }

 private:
  struct Member {
    uint32_t sm, index, warp;
    auto operator<=>(const Member&) const = default;
  };
  std::vector<Member> MembersOf(uint32_t launch) const;
  bool HasRest(uint32_t warp) const;
  SummaryLane LaneOf(std::span<const Member> members);

  const trace::Model& model_;
  const PageDetail& detail_;
  uint64_t lanes_ = 0;
  uint64_t doubtful_ = 0;
};

}  // namespace iket::exporter
