// page_head.h: what the head of an offline page says that the rest of the page is held to.
//
// Private to page_check.cpp and its tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "export/check.h"
#include "trace/model.h"

namespace iket::exporter {

struct PageHead {
  static constexpr size_t kNone = ~size_t{0};
  struct Row {
    bool marks = false;
    size_t parent = kNone;  // the row whose slices those of this one lie in
  };
  struct Block {
    uint64_t launch = 0, warps = 0, slices = 0, rows = 0;
  };
  // How much is shown one by one, how much there is, and in which blocks the rest is.
  struct Summary {
    uint64_t first_block = 0;
    uint64_t parts = 0;  // of all cells
    uint64_t detail_warps = 0, warps = 0, detail_slices = 0, slices = 0;
  };

  uint32_t shell = 0;
  bool simulated = false;
  bool excerpt = false;                   // ranges may lie in others that were not asked for
  std::vector<size_t> sms_of_launch;      // SMs that the launch's device has
  std::vector<trace::PayloadType> types;  // by declaration
  std::vector<Row> rows;
  std::vector<Block> blocks;
  std::optional<Summary> summary;
  size_t values = 0, edges = 0;

  // Whether a block has lanes of the summary, and no warps.
  bool HasLanes(size_t block) const { return summary && block >= summary->first_block; }
};

// Adds what is wrong to `faults`, all at `offset`. Nothing if it says too little to go on.
std::optional<PageHead> ReadPageHead(std::string_view untrusted_json, uint64_t offset,
                                     Faults& faults);

}  // namespace iket::exporter
