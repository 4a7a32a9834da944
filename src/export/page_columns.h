// page_columns.h: what a block of the offline page is made of (docs/timeline.md), for whoever
// writes one (page_block.h) and whoever looks into one (page_block_check.h).
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace iket::exporter {

struct PageColumns {
  // Each an element of its own: `id`, and the block's number.
  enum Part : size_t { kShape, kLowBytes, kValues, kParts };
  static constexpr std::array<std::string_view, kParts> kIds = {"block", "low", "values"};

  // In the order in which they stand, each behind its length.
  enum Column : size_t {
    kCtaX,
    kCtaY,
    kCtaZ,
    kIndex,
    kSm,
    kSlot,
    kWarpFlags,
    kShift,
    kBegin,
    kLife,
    kRowCount,
    kRows,
    kGapHigh,
    kDurationHigh,
    kDeclarations,
    kFlags,
    kMembers,  // of lanes of the summary
    kCells,
    kGapLow,  // of kLowBytes
    kDurationLow,
    kPayloads,  // of kValues
    kFurther,
    kColumns
  };
  static constexpr std::array<std::string_view, kColumns> kNames = {
      "CTA x",
      "CTA y",
      "CTA z",
      "indices",
      "SMs",
      "slots",
      "flags of warps",
      "shifts",
      "begins",
      "lives",
      "numbers of rows",
      "rows",
      "gaps",
      "durations",
      "declarations",
      "flags",
      "warps of lanes",
      "cells",
      "low bytes of gaps",
      "low bytes of durations",
      "payloads",
      "values",
  };
  // By part, its first column; behind them the end.
  static constexpr std::array<size_t, kParts + 1> kFirst = {kCtaX, kGapLow, kPayloads, kColumns};
};

}  // namespace iket::exporter
