// page_detail.h: which warps, ranges and marks a page shows one by one. Of the rest it has a
// summary (page_summary.h).
//
// All, where they are not more than the page may have and nothing else is asked for. Otherwise
// those that are asked for, or of all, warp after warp while they fit. Cost: nothing for all, else
// a step a warp, and one a slice of those that are asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/excerpt.h"
#include "trace/model.h"

namespace iket::exporter {

class PageDetail {
 public:
  // `wanted` may be null; neither it nor the model may go.
  PageDetail(const trace::Model& model, uint64_t most_slices, const trace::ExcerptOf* wanted);

  bool all() const { return all_; }
  // Not all of what is wanted fits.
  bool cut() const { return cut_; }
  bool HasWarp(uint32_t warp) const { return all_ || warps_[warp]; }
  // Of any warp; an event that is a mark.
  bool HasRange(uint32_t warp, uint32_t range) const {
    return HasWarp(warp) && (!wanted_ || rows_.HasRange(warp, range));
  }
  bool HasMark(uint32_t warp, uint32_t event) const {
    return HasWarp(warp) && (!wanted_ || rows_.HasPoint(warp, event));
  }
  // How many of them it has.
  uint64_t warps() const { return warp_count_; }
  uint64_t slices() const { return slice_count_; }

 private:
  uint64_t SlicesOf(uint32_t warp) const;

  const trace::Model& model_;
  const trace::ExcerptOf* wanted_;
  trace::ExcerptOf everything_;
  trace::ExcerptRows rows_;
  bool all_, cut_ = false;
  std::vector<bool> warps_;  // empty: all
  uint64_t warp_count_ = 0, slice_count_ = 0;
};

}  // namespace iket::exporter
