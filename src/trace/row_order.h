// row_order.h: from the order in which rings were scanned to that of the model's warps. Private to
// the room.
//
// Whoever reads a model goes through it warp by warp, launch by launch; a ring tells of many
// launches. So events are moved once, and from then on all go through memory, or through files,
// from one end to the other.
//
// Cost: one copy of 20 bytes an event. Columns in files are gone through as they lie, and written
// where they belong; else warp by warp, so that the events of one are in the cache for what is done
// with them next.
#pragma once

#include <cstdint>
#include <span>

#include "base/column.h"
#include "trace/model.h"
#include "trace/warp_scan.h"

namespace iket::trace {

class RowOrder {
 public:
  // `span_of_warp`: for each row of Model::warps. Numbers the warps' events anew (first_event) and
  // moves values and holes. All must outlive it.
  RowOrder(std::span<const WarpSpan> spans, std::span<const uint32_t> span_of_warp, Model& model);

  // Of all events, as they lie. Nothing after TakeAll().
  std::span<const uint32_t> declarations() const { return from_.declaration; }

  // Moves the events of a warp and puts them on its SM's axis. Each warp once.
  void Take(uint32_t warp);
  // All of them, in the order in which they lie.
  void TakeAll();

 private:
  void AdviseUse(ColumnUse use);
  void MoveValues(const Values& from);
  void MoveHoles(std::span<const uint32_t> from);

  std::span<const WarpSpan> spans_;
  std::span<const uint32_t> span_of_warp_;
  Model& model_;
  Events from_;
};

}  // namespace iket::trace
