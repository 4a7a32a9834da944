#include "export/page_summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <tuple>

#include "export/page.h"
#include "export/synthetic_model.h"

namespace iket::exporter {
namespace {

using trace::kNoRow;

// A range or mark of a model, with where a summary has to have it.
struct Slice {
  uint32_t launch, warp, declaration;
  PageRow row;
  uint64_t begin, end;
};

// Those that are not in detail, each asked by itself.
std::vector<Slice> RestOf(const trace::Model& model, const PageDetail& detail) {
  std::vector<Slice> rest;
  for (uint32_t range = 0; range < model.ranges.size(); ++range) {
    const uint32_t warp = model.ranges.warp[range];
    if (detail.HasRange(warp, range)) continue;
    rest.push_back({model.warps.launch[warp], warp, model.ranges.declaration[range],
                    RowOfRange(model, range), model.ranges.begin_cycles[range],
                    model.ranges.end_cycles[range]});
  }
  for (const uint32_t event : model.marks.event) {
    const uint32_t warp = model.events.warp[event];
    if (detail.HasMark(warp, event)) continue;
    rest.push_back({model.warps.launch[warp], warp, model.events.declaration[event],
                    RowOfMark(model, event), model.events.cycles[event],
                    model.events.cycles[event]});
  }
  return rest;
}

// Every part of every cell is what a walk over all slices finds there, and no slice is elsewhere.
void ExpectExact(const trace::Model& model, const PageDetail& detail) {
  const std::vector<Slice> rest = RestOf(model, detail);
  PageSummary summary(model, detail);
  uint64_t counted = 0, cycles = 0, warps = 0;
  for (uint32_t launch = 0; launch < model.launches.size(); ++launch) {
    summary.EachLane(launch, [&](const SummaryLane& lane) {
      warps += lane.warps;
      for (const SummaryRow& row : lane.rows) {
        uint64_t last = lane.begin;
        for (const SummaryCell& cell : row.cells) {
          EXPECT_GE(cell.begin, last);
          EXPECT_LT(cell.begin, cell.end);
          last = cell.end;
          std::map<uint32_t, std::pair<uint64_t, uint64_t>> expected, found;
          for (const Slice& slice : rest) {
            if (slice.launch != launch || model.warps.sm[slice.warp] != lane.sm ||
                model.warps.index[slice.warp] != lane.index || slice.row != row.row) {
              continue;
            }
            const uint64_t from = std::max(slice.begin, cell.begin);
            const uint64_t to = std::min(slice.end, cell.end);
            const bool begins = cell.begin <= slice.begin && slice.begin < cell.end;
            if (!begins && from >= to) continue;
            expected[slice.declaration].first += begins ? 1 : 0;
            expected[slice.declaration].second += from < to ? to - from : 0;
          }
          for (const SummaryPart& part : cell.parts) {
            found[part.declaration] = {part.count, part.cycles};
            counted += part.count;
            cycles += part.cycles;
          }
          EXPECT_EQ(found, expected);
          EXPECT_EQ(found.size(), cell.parts.size());
          for (const auto& [declaration, sums] : found) {
            EXPECT_LE(sums.second, found.at(cell.Dominant()).second);
          }
        }
      }
    });
  }
  uint64_t all_cycles = 0;
  for (const Slice& slice : rest) all_cycles += slice.end - slice.begin;
  EXPECT_EQ(counted, rest.size());
  EXPECT_EQ(cycles, all_cycles);
  EXPECT_EQ(warps, model.warps.size() - detail.warps());
  EXPECT_EQ(detail.slices(), model.ranges.size() + model.marks.size() - rest.size());
}

TEST(PageSummary, IsExactWhateverIsInDetail) {
  std::mt19937 random(1);
  for (uint32_t seed = 1; seed < 30; ++seed) {
    const trace::Model model = MakeSyntheticModel({.seed = seed, .events_per_warp = 120});
    trace::ExcerptOf of;
    if (seed % 2 == 0) of.sms = {{0, static_cast<uint32_t>(random() % 3)}};
    if (seed % 3 == 0) {
      const double length = model.launches.front().last_ns;
      of.window = {length / 4, length / 2};
    }
    if (seed % 5 == 0) {
      for (size_t i = 0; i < model.declarations.size(); ++i) of.declarations.push_back(i % 2 == 0);
    }
    const uint64_t most = seed % 4 == 0 ? 500 : ~uint64_t{0};
    const PageDetail detail(model, most, seed % 7 == 0 ? nullptr : &of);
    ExpectExact(model, detail);
  }
}

TEST(PageSummary, ThereIsNoneOfAllAndNothingElseOfNone) {
  const trace::Model model = MakeSyntheticModel({});
  const uint64_t slices = model.ranges.size() + model.marks.size();
  EXPECT_TRUE(PageDetail(model, slices, nullptr).all());
  const PageDetail fewer(model, slices - 1, nullptr);
  EXPECT_FALSE(fewer.all());
  EXPECT_TRUE(fewer.cut());
  const trace::ExcerptOf of{.sms = {{0, 0}}};
  EXPECT_FALSE(PageDetail(model, slices, &of).cut());
  EXPECT_EQ(fewer.warps(), model.warps.size() - 1);
  const PageDetail none(model, 0, nullptr);
  EXPECT_EQ(none.slices(), 0u);
  ExpectExact(model, none);
}

TEST(PageSummary, IsMuchSmallerThanWhatItSums) {
  const trace::Model model = MakeSyntheticModel(
      {.launches = 1, .ctas = 400, .events_per_warp = 400, .sms = 4, .faults = false});
  const PageDetail detail(model, 0, nullptr);
  PageSummary summary(model, detail);
  uint64_t lanes = 0, cells = 0;
  summary.EachLane(0, [&](const SummaryLane& lane) {
    ++lanes;
    for (const SummaryRow& row : lane.rows) {
      EXPECT_LE(row.cells.size(), PageSummary::kMostPieces);
      cells += row.cells.size();
    }
  });
  EXPECT_EQ(lanes, 16u);  // 4 SMs, 4 warps of a CTA
  EXPECT_LT(cells * 4, model.ranges.size());
}

TEST(PageSummary, ALaneLongerThanAColumnHoldsIsInCoarserUnits) {
  trace::Model model = MakeSyntheticModel({.launches = 1, .faults = false});
  model.warps.end_cycles[0] = model.warps.begin_cycles[0] + (uint64_t{5} << 33);
  const PageDetail detail(model, 0, nullptr);
  ExpectExact(model, detail);
  PageSummary summary(model, detail);
  unsigned most = 0;
  summary.EachLane(0, [&](const SummaryLane& lane) {
    most = std::max(most, lane.shift);
    EXPECT_EQ((lane.end - lane.begin) >> lane.shift >> 32, 0u);
    for (const SummaryRow& row : lane.rows) {
      for (const SummaryCell& cell : row.cells) {
        EXPECT_EQ((cell.begin - lane.begin) % (uint64_t{1} << lane.shift), 0u);
        EXPECT_EQ((cell.end - lane.begin) % (uint64_t{1} << lane.shift), 0u);
      }
    }
  });
  EXPECT_GT(most, 0u);
}

}  // namespace
}  // namespace iket::exporter
