// page_row.h: the row of its warp in which the timeline page shows a range or a mark. No two ranges
// of a row overlap.
#pragma once

#include <compare>
#include <cstdint>

#include "trace/model.h"

namespace iket::exporter {

// `token` is the name of one.
struct PageRow {
  bool marks = false;
  trace::StringId group = 0, lane = 0, token = 0;
  uint16_t depth = 0;
  auto operator<=>(const PageRow&) const = default;
};

inline PageRow RowOfRange(const trace::Model& model, uint32_t range) {
  const trace::Declaration& declared = model.declarations[model.ranges.declaration[range]];
  const bool token = (model.ranges.flags[range] & trace::kRangeToken) != 0;
  return {.group = declared.group,
          .lane = declared.lane,
          .token = token ? declared.name : 0,
          .depth = model.ranges.depth[range]};
}

inline PageRow RowOfMark(const trace::Model& model, uint32_t event) {
  const trace::Declaration& declared = model.declarations[model.events.declaration[event]];
  return {.marks = true, .group = declared.group, .lane = declared.lane};
}

}  // namespace iket::exporter
