// standstill.h: what every warp was doing that had not ended when its rings were read.
//
// For a kernel that hangs, that faulted, or whose process was killed: each warp's last event and
// the ranges that it had open, with warps in an equal state put together, so that thousands of them
// read as a few lines. Whatever was recorded is all there is to go by: a warp may have gone on
// since.
//
// Cost: a pass over the warps, and over the ranges and the last event of those that had not ended.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/model.h"

namespace iket::analyze {

// Warps of one launch with the same ranges open and the same last event.
struct StandstillGroup {
  std::vector<uint32_t> open;  // rows of Model::declarations, outermost first
  // The last event: the row in Model::declarations of a mark, or of what opened the range that the
  // event opened or (`last_closes`) closed. kNoRow: none since the warp's begin.
  uint32_t last_event = trace::kNoRow;
  bool last_closes = false;
  std::vector<uint32_t> warps;  // rows of Model::warps, ascending: by CTA, then warp

  // Some of these warps overwrote their begin or records behind it: they may have further ranges
  // open, around these.
  bool may_be_deeper = false;
  // The payload of `last_event`, if its declaration has one: a value a warp, in their order.
  std::vector<uint64_t> payloads;
  // When the last event happened (the begin, where there is none), trace time.
  double first_ns = 0;
  double last_ns = 0;
};

struct StandstillLaunch {
  uint32_t launch = 0;   // row of Model::launches
  uint64_t running = 0;  // warps that had not ended
  uint64_t ended = 0;    // warps that had, and of which something is kept
  // The rest of the grid: not started, or overwritten. 0 where the grid is not known.
  uint64_t not_seen = 0;
  double newest_ns = 0;                 // the newest moment of any of its warps, trace time
  std::vector<StandstillGroup> groups;  // most warps first
};

// The launches that have such warps, in the order of the model. Empty: all had ended.
std::vector<StandstillLaunch> FindStandstill(const trace::Model& model);

}  // namespace iket::analyze
