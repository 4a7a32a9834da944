#include "trace/statistics.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>

namespace iket::trace {
namespace {

// Sorts `values` in part.
template <typename T>
Durations Describe(std::span<T> values) {
  Durations result;
  if (values.empty()) return result;
  for (T value : values) result.total += static_cast<double>(value);
  result.mean = result.total / static_cast<double>(values.size());
  auto ranked = [&](double share) {
    const double rank = std::ceil(share * static_cast<double>(values.size()));
    const auto at = values.begin() + std::max<ptrdiff_t>(static_cast<ptrdiff_t>(rank) - 1, 0);
    std::ranges::nth_element(values, at);
    return static_cast<double>(*at);
  };
  result.median = ranked(0.5);
  result.p99 = ranked(0.99);
  const auto [min, max] = std::ranges::minmax(values);
  result.min = static_cast<double>(min);
  result.max = static_cast<double>(max);
  return result;
}

// Numbers the pairs (kernel, name) that occur.
class Groups {
 public:
  uint32_t Of(uint32_t kernel, StringId name) {
    const uint64_t key = uint64_t{kernel} << 32 | name;
    if (key == last_key_ && !keys_.empty()) return last_;
    const auto [entry, is_new] = numbers_.try_emplace(key, static_cast<uint32_t>(keys_.size()));
    if (is_new) keys_.push_back(key);
    last_key_ = key;
    last_ = entry->second;
    return last_;
  }
  size_t size() const { return keys_.size(); }
  uint32_t Kernel(size_t group) const { return static_cast<uint32_t>(keys_[group] >> 32); }
  StringId Name(size_t group) const { return static_cast<StringId>(keys_[group]); }

 private:
  std::unordered_map<uint64_t, uint32_t> numbers_;
  std::vector<uint64_t> keys_;
  uint64_t last_key_ = 0;
  uint32_t last_ = 0;
};

void SummarizeRanges(const Model& model, const std::vector<bool>& used, Statistics& statistics) {
  const Ranges& ranges = model.ranges;
  Groups groups;
  Column<uint32_t> group_of_range(ranges.size(), kNoRow);
  std::vector<RangeStatistics>& rows = statistics.ranges;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const uint32_t launch = model.warps.launch[ranges.warp[i]];
    if (!used[launch]) continue;
    const uint32_t group =
        groups.Of(model.launches[launch].kernel, model.declarations[ranges.declaration[i]].name);
    if (group == rows.size()) {
      rows.push_back({.kernel = groups.Kernel(group), .name = groups.Name(group)});
    }
    if ((ranges.flags[i] & kRangeUnclosed) != 0) {
      // A cut one may have been closed among what was lost; it is counted as a fault.
      rows[group].unclosed += (ranges.flags[i] & kRangeCut) == 0 ? 1 : 0;
      continue;
    }
    group_of_range[i] = group;
    ++rows[group].count;
    rows[group].crossed += (ranges.flags[i] & kRangeCrossed) != 0 ? 1 : 0;
  }

  std::vector<size_t> next(rows.size() + 1);
  for (size_t group = 0; group < rows.size(); ++group) {
    next[group + 1] = next[group] + rows[group].count;
  }
  Column<uint64_t> cycles(next.back());
  Column<double> ns(next.back());
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (group_of_range[i] == kNoRow) continue;
    const size_t at = next[group_of_range[i]]++;
    const uint32_t warp = ranges.warp[i];
    cycles[at] = ranges.end_cycles[i] - ranges.begin_cycles[i];
    ns[at] =
        model.NsOfWarp(warp, ranges.end_cycles[i]) - model.NsOfWarp(warp, ranges.begin_cycles[i]);
  }
  size_t first = 0;
  for (RangeStatistics& row : rows) {
    row.cycles = Describe(std::span(cycles).subspan(first, row.count));
    row.ns = Describe(std::span(ns).subspan(first, row.count));
    first += row.count;
  }
  std::ranges::stable_sort(rows, [](const RangeStatistics& a, const RangeStatistics& b) {
    return a.ns.total > b.ns.total;
  });
}

void CountMarks(const Model& model, const std::vector<bool>& used, Statistics& statistics) {
  Groups groups;
  std::vector<MarkStatistics>& rows = statistics.marks;
  for (uint32_t event : model.marks.event) {
    const uint32_t launch = model.warps.launch[model.events.warp[event]];
    if (!used[launch]) continue;
    const uint32_t group = groups.Of(model.launches[launch].kernel,
                                     model.declarations[model.events.declaration[event]].name);
    if (group == rows.size()) {
      rows.push_back({.kernel = groups.Kernel(group), .name = groups.Name(group)});
    }
    ++rows[group].count;
  }
  std::ranges::stable_sort(
      rows, [](const MarkStatistics& a, const MarkStatistics& b) { return a.count > b.count; });
}

}  // namespace

Statistics Summarize(const Model& model, const StatisticsOptions& options) {
  Statistics statistics;
  std::vector<bool> used(model.launches.size());
  for (size_t i = 0; i < used.size(); ++i) {
    used[i] = options.all_launches || model.launches[i].completeness == Completeness::kComplete;
    if (model.launches[i].IsNobodys()) continue;
    ++(used[i] ? statistics.launches_used : statistics.launches_left_out);
  }
  SummarizeRanges(model, used, statistics);
  CountMarks(model, used, statistics);
  return statistics;
}

LaunchTotals CountLaunches(const Model& model) {
  LaunchTotals totals;
  totals.warps = model.warps.size();
  totals.events = model.events.size();
  for (const Launch& launch : model.launches) {
    if (launch.IsNobodys()) {
      totals.warps -= launch.warp_count;
      totals.pieces += launch.warp_count;
      continue;
    }
    ++totals.launches;
    totals.by_graphs += launch.graph != kNoRow ? 1 : 0;
    totals.replays_known += launch.replay != kNoRow ? 1 : 0;
    switch (launch.completeness) {
      case Completeness::kComplete:
        ++totals.complete;
        break;
      case Completeness::kPartial:
        ++totals.partial;
        break;
      case Completeness::kUnknown:
        ++totals.unknown;
        break;
    }
  }
  return totals;
}

}  // namespace iket::trace
