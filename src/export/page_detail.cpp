#include "export/page_detail.h"

namespace iket::exporter {

PageDetail::PageDetail(const trace::Model& model, uint64_t most_slices,
                       const trace::ExcerptOf* wanted)
    : model_(model),
      wanted_(wanted),
      rows_(model, wanted ? *wanted : everything_),
      all_(!wanted && model.ranges.size() + model.marks.size() <= most_slices),
      warp_count_(all_ ? model.warps.size() : 0),
      slice_count_(all_ ? model.ranges.size() + model.marks.size() : 0) {
  if (all_) return;
  warps_.assign(model.warps.size(), false);
  for (uint32_t warp = 0; warp < model.warps.size(); ++warp) {
    if (!rows_.HasLaunch(model.warps.launch[warp]) || !rows_.HasWarp(warp)) continue;
    const uint64_t slices = SlicesOf(warp);
    cut_ = slice_count_ + slices > most_slices;
    if (cut_) break;
    warps_[warp] = true;
    ++warp_count_;
    slice_count_ += slices;
  }
}

uint64_t PageDetail::SlicesOf(uint32_t warp) const {
  const trace::Warps& warps = model_.warps;
  if (!wanted_) return uint64_t{warps.range_count[warp]} + warps.mark_count[warp];
  uint64_t slices = 0;
  for (uint32_t i = 0; i < warps.range_count[warp]; ++i) {
    slices += rows_.HasRange(warp, warps.first_range[warp] + i) ? 1 : 0;
  }
  for (uint32_t i = 0; i < warps.mark_count[warp]; ++i) {
    slices += rows_.HasPoint(warp, model_.marks.event[warps.first_mark[warp] + i]) ? 1 : 0;
  }
  return slices;
}

}  // namespace iket::exporter
