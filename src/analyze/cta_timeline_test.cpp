#include "analyze/cta_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "trace/decode.h"
#include "trace/synthetic.h"

namespace iket::analyze {
namespace {

using trace::Model;
using trace::SyntheticGpu;

Model Decoded(SyntheticGpu& gpu) {
  trace::Decoder decoder(gpu.facts());
  decoder.Add(gpu.Read());
  return decoder.Finish().value();
}

// A CTA of warps that push, pop and mark at random; with small rings their beginnings are lost.
Model RandomCta(uint32_t seed, uint32_t ring_bytes) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  SyntheticGpu gpu({.ring_bytes = ring_bytes});
  const uint32_t kernel = gpu.AddKernel("k");
  std::vector<uint32_t> pushes;
  for (const char* name : {"load", "mma", "store"}) {
    pushes.push_back(gpu.Declare(capture::EventKind::kPush, name));
  }
  const uint32_t pop = gpu.Declare(capture::EventKind::kPop, "");
  const uint32_t mark = gpu.Declare(capture::EventKind::kMark, "tick");
  const uint32_t grid = gpu.Launch(kernel, {1, 1, 1}, {128, 1, 1});
  std::vector<SyntheticGpu::WarpId> warps;
  std::vector<uint32_t> depths(3);
  for (uint32_t i = 0; i < 3; ++i) {  // of four: one is missing
    warps.push_back(gpu.Begin(grid, 0, i, 1, i));
    gpu.Pass(below(50));
  }
  for (int step = 0; step < 400; ++step) {
    gpu.Pass(below(4) == 0 ? 0 : below(40));
    const uint32_t warp = below(3);
    if (below(4) == 0) {
      gpu.Event(warps[warp], mark);
    } else if (depths[warp] > 0 && (depths[warp] == 3 || below(2) == 0)) {
      --depths[warp];
      gpu.Event(warps[warp], pop);
    } else {
      ++depths[warp];
      gpu.Event(warps[warp], pushes[below(3)]);
    }
  }
  for (const auto warp : warps) {
    gpu.Pass(below(100));
    gpu.Exit(warp);
  }
  return Decoded(gpu);
}

// What a warp's row shows at a cycle, by the model's ranges alone.
std::pair<Moment, trace::StringId> At(const Model& model, uint32_t warp, uint64_t cycle) {
  uint32_t found = trace::kNoRow;
  const uint32_t first = model.warps.first_range[warp];
  for (uint32_t range = first; range < first + model.warps.range_count[warp]; ++range) {
    if (model.ranges.begin_cycles[range] > cycle || model.ranges.end_cycles[range] <= cycle) {
      continue;
    }
    if (found == trace::kNoRow || model.ranges.depth[range] >= model.ranges.depth[found]) {
      found = range;
    }
  }
  if (found != trace::kNoRow) {
    return {Moment::kRange, model.declarations[model.ranges.declaration[found]].name};
  }
  const bool lives =
      model.warps.begin_cycles[warp] <= cycle && cycle < model.warps.end_cycles[warp];
  return {lives ? Moment::kNoRange : Moment::kAbsent, 0};
}

TEST(CtaTimeline, CellsAreWhatCoversMostOfThem) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Model model = RandomCta(seed, 32 << 10);
    const std::vector<Cta> ctas = CtasOf(model, 0);
    ASSERT_EQ(ctas.size(), 1u);
    const CtaTimeline timeline = TimelineOf(model, ctas[0], {});
    EXPECT_EQ(timeline.missing, 1u);
    std::mt19937 random(seed);
    const uint64_t length = timeline.end - timeline.begin;
    const uint64_t from = timeline.begin + random() % (length / 2);
    const Columns columns{.from = from,
                          .to = from + 1 + random() % (length / 2),
                          .count = 1 + static_cast<uint32_t>(random() % 60)};
    if (columns.count > columns.to - columns.from) continue;
    uint32_t warps = 0;
    for (const TimelineRow& row : timeline.rows) {
      if (row.kind != TimelineRow::Kind::kWarp) continue;
      ++warps;
      const std::vector<Span> cells = CellsOf(row, timeline, columns);
      ASSERT_EQ(cells.size(), columns.count);
      for (uint32_t column = 0; column < columns.count; ++column) {
        std::map<std::pair<Moment, trace::StringId>, uint64_t> covered;
        for (uint64_t at = columns.Begin(column); at < columns.Begin(column + 1); ++at) {
          ++covered[At(model, row.warp, at)];
          EXPECT_EQ(columns.Of(at), column);
        }
        uint64_t most = 0;
        for (const auto& [what, cycles] : covered) most = std::max(most, cycles);
        const auto found = covered.find({cells[column].moment, cells[column].name});
        ASSERT_NE(found, covered.end()) << "seed " << seed << " column " << column;
        EXPECT_EQ(found->second, most);
      }
    }
    EXPECT_EQ(warps, 3u);
  }
}

TEST(CtaTimeline, SpansCoverTheWholeWithoutAGap) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    for (const bool depths : {false, true}) {
      const Model model = RandomCta(seed, seed % 2 == 0 ? 1024 : 32 << 10);
      for (const Cta& cta : CtasOf(model, 0)) {
        const CtaTimeline timeline = TimelineOf(model, cta, {.depths = depths});
        for (const TimelineRow& row : timeline.rows) {
          if (row.kind == TimelineRow::Kind::kMarks) continue;
          uint64_t at = timeline.begin;
          for (const Span& span : row.spans) {
            EXPECT_GT(span.end, at);
            at = span.end;
          }
          EXPECT_EQ(at, timeline.end);
        }
      }
    }
  }
}

// Behind a loss nothing is called idle in which a range may have been open.
TEST(CtaTimeline, WhatIsLostIsNotIdle) {
  uint64_t unknown = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Model model = RandomCta(seed, 1024);
    for (const Cta& cta : CtasOf(model, 0)) {
      const CtaTimeline timeline = TimelineOf(model, cta, {});
      const WindowTotals totals = TotalsOf(model, cta, timeline, timeline.begin, timeline.end);
      unknown += totals.unknown;
      for (const TimelineRow& row : timeline.rows) {
        if (row.kind != TimelineRow::Kind::kWarp) continue;
        const bool lost = (model.warps.flags[row.warp] & trace::kWarpBeginMissing) != 0;
        const uint64_t close = [&] {  // the last close of what nobody opened
          uint64_t last = 0;
          for (const uint32_t event : model.unmatched_ends) {
            if (model.events.warp[event] == row.warp) {
              last = std::max(last, model.events.cycles[event]);
            }
          }
          return last;
        }();
        uint64_t at = timeline.begin;
        for (const Span& span : row.spans) {
          if (lost && at < close) {
            EXPECT_TRUE(span.moment == Moment::kUnknown || span.moment == Moment::kRange);
          }
          at = span.end;
        }
      }
    }
  }
  EXPECT_GT(unknown, 0u);
}

TEST(CtaTimeline, TotalsAreThoseOfRanges) {
  const Model model = RandomCta(3, 32 << 10);
  const Cta cta = CtasOf(model, 0)[0];
  const CtaTimeline timeline = TimelineOf(model, cta, {});
  const uint64_t from = timeline.begin + 100, to = timeline.end - 200;
  const WindowTotals totals = TotalsOf(model, cta, timeline, from, to);
  std::map<trace::StringId, uint64_t> cycles;
  for (uint32_t range = 0; range < model.ranges.size(); ++range) {
    const uint64_t begin = std::max(from, model.ranges.begin_cycles[range]);
    const uint64_t end = std::min(to, model.ranges.end_cycles[range]);
    if (begin < end) {
      cycles[model.declarations[model.ranges.declaration[range]].name] += end - begin;
    }
  }
  ASSERT_EQ(totals.ranges.size(), cycles.size());
  uint64_t before = UINT64_MAX;
  for (const NameTotal& total : totals.ranges) {
    EXPECT_EQ(total.cycles, cycles[total.name]);
    EXPECT_LE(total.cycles, before);
    before = total.cycles;
  }
  ASSERT_EQ(totals.marks.size(), 1u);
  uint64_t marks = 0;
  for (const TimelineRow& row : timeline.rows) {
    for (const Instant& instant : row.instants)
      marks += instant.cycles >= from && instant.cycles < to;
  }
  EXPECT_EQ(totals.marks[0].count, marks);
}

}  // namespace
}  // namespace iket::analyze
