// statistics.h: how long the ranges of a kernel took, by name.
//
// Percentiles are by nearest rank: the smallest duration that at least so many of all do not
// exceed. Cost: a pass over the ranges and one partial sort a row.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/model.h"

namespace iket::trace {

struct StatisticsOptions {
  bool all_launches = false;  // also those that are partial or of unknown completeness
};

// Total, mean, extremes and percentiles of a set of durations.
struct Durations {
  double total = 0;
  double mean = 0;
  double min = 0;
  double median = 0;
  double p99 = 0;
  double max = 0;
};

// The ranges of one name in one kernel.
struct RangeStatistics {
  uint32_t kernel = kNoRow;  // row of Model::kernels; kNoRow not known
  StringId name = 0;
  uint64_t count = 0;     // ranges that were closed: the durations are theirs
  uint64_t unclosed = 0;  // left out of the durations
  uint64_t crossed = 0;   // of `count`, with kRangeCrossed
  Durations cycles = {};
  Durations ns = {};
};

struct MarkStatistics {
  uint32_t kernel = kNoRow;
  StringId name = 0;
  uint64_t count = 0;
};

struct Statistics {
  std::vector<RangeStatistics> ranges;  // by total ns, largest first
  std::vector<MarkStatistics> marks;    // by count, largest first
  uint64_t launches_used = 0;           // of Model::launches
  uint64_t launches_left_out = 0;       // not complete, and not asked for
};

Statistics Summarize(const Model& model, const StatisticsOptions& options = {});

// The launches of a capture in numbers, for summaries.
struct LaunchTotals {
  uint64_t launches = 0;
  uint64_t complete = 0;
  uint64_t partial = 0;
  uint64_t unknown = 0;
  uint64_t by_graphs = 0;      // launched by a known graph
  uint64_t replays_known = 0;  // of these, with a replay's number
  uint64_t warps = 0;
  uint64_t pieces = 0;  // of warps that nobody knows, and are not counted
  uint64_t events = 0;  // of all
};

LaunchTotals CountLaunches(const Model& model);

}  // namespace iket::trace
