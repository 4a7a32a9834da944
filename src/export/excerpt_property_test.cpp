// Excerpts of random models against a slow, obvious reference: each thing of the whole is asked by
// itself whether it is wanted. And every format of an excerpt is sound.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "export/check.h"
#include "export/formats.h"
#include "export/synthetic_model.h"
#include "trace/excerpt.h"

namespace iket::exporter {
namespace {

using trace::kNoRow;
using Rows = std::multiset<std::string>;

std::string WarpText(const trace::Model& model, uint32_t warp) {
  const trace::Warps& warps = model.warps;
  const trace::Launch& launch = model.launches[warps.launch[warp]];
  return fmt::format("{}/{} cta {} sm {} slot {} {}-{}", launch.grid_id, launch.first_ns,
                     warps.cta_x[warp], warps.sm[warp], warps.slot[warp], warps.begin_cycles[warp],
                     warps.end_cycles[warp]);
}

std::string EventText(const trace::Model& model, uint32_t event) {
  if (event == kNoRow) return "none";
  std::string text = fmt::format("{} at {} carries {}", model.events.declaration[event],
                                 model.events.cycles[event], model.events.payload[event]);
  for (size_t i = 0; i < model.values.size(); ++i) {
    if (model.values.event[i] != event) continue;
    text += fmt::format(", {}: {}", model.values.index[i], model.values.value[i]);
  }
  return text;
}

bool InWindow(const trace::ExcerptOf& of, double begin, double end) {
  if (!of.window) return true;
  const auto [from, to] = *of.window;
  return begin == end ? from <= begin && begin < to : begin < to && end > from;
}

bool Wanted(const trace::Model& model, const trace::ExcerptOf& of, uint32_t warp) {
  const trace::Warps& warps = model.warps;
  if (!of.launches.empty() && !of.launches[warps.launch[warp]]) return false;
  const std::array<uint32_t, 3> cta = {warps.cta_x[warp], warps.cta_y[warp], warps.cta_z[warp]};
  if (of.cta && *of.cta != cta) return false;
  const uint32_t width = std::max(model.launches[warps.launch[warp]].cluster[0], 1u);
  if (of.cluster && *of.cluster != std::array{cta[0] / width, cta[1], cta[2]}) return false;
  bool on_sm = of.sms.empty();
  for (const auto& range : of.sms) {
    for (uint32_t sm = range.first; sm <= range.last; ++sm) on_sm |= sm == warps.sm[warp];
  }
  return on_sm && InWindow(of, warps.begin_ns[warp], warps.end_ns[warp]);
}

// All that a model has of what is asked for, as texts that know no row of it.
Rows RowsOf(const trace::Model& model, const trace::ExcerptOf& of) {
  Rows rows;
  const auto wants = [&](uint32_t declaration) {
    return of.declarations.empty() || of.declarations[declaration];
  };
  const auto ns = [&](uint32_t warp, uint64_t cycles) { return model.NsOfWarp(warp, cycles); };
  for (uint32_t warp = 0; warp < model.warps.size(); ++warp) {
    if (Wanted(model, of, warp)) rows.insert(WarpText(model, warp));
  }
  for (uint32_t row = 0; row < model.ranges.size(); ++row) {
    const trace::Ranges& ranges = model.ranges;
    const uint32_t warp = ranges.warp[row];
    if (!Wanted(model, of, warp) || !wants(ranges.declaration[row]) ||
        !InWindow(of, ns(warp, ranges.begin_cycles[row]), ns(warp, ranges.end_cycles[row]))) {
      continue;
    }
    rows.insert(fmt::format("{}: range {} {} {}-{} depth {} flags {}: {} to {}",
                            WarpText(model, warp), ranges.declaration[row], ranges.payload[row],
                            ranges.begin_cycles[row], ranges.end_cycles[row], ranges.depth[row],
                            ranges.flags[row], EventText(model, ranges.begin_event[row]),
                            EventText(model, ranges.end_event[row])));
  }
  const auto is_in = [&](uint32_t event) {
    const uint32_t warp = model.events.warp[event];
    const double at = ns(warp, model.events.cycles[event]);
    return Wanted(model, of, warp) && wants(model.events.declaration[event]) &&
           InWindow(of, at, at);
  };
  const auto point = [&](std::string_view what, uint32_t event) {
    if (!is_in(event)) return;
    rows.insert(fmt::format("{}: {} {}", WarpText(model, model.events.warp[event]), what,
                            EventText(model, event)));
  };
  for (const uint32_t event : model.marks.event) point("mark", event);
  for (const uint32_t event : model.unmatched_ends) point("unmatched end", event);
  for (size_t i = 0; i < model.flows.size(); ++i) {
    const uint32_t from = model.flows.from[i], to = model.flows.to[i];
    if (!is_in(from) || !is_in(to)) continue;
    rows.insert(fmt::format("flow {} {} to {} {}", WarpText(model, model.events.warp[from]),
                            EventText(model, from), WarpText(model, model.events.warp[to]),
                            EventText(model, to)));
  }
  return rows;
}

trace::ExcerptOf RandomChoice(const trace::Model& model, std::mt19937& random) {
  trace::ExcerptOf of;
  const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  if (below(2) == 0) {
    for (size_t i = 0; i < model.launches.size(); ++i) of.launches.push_back(below(2) == 0);
  }
  if (below(2) == 0) {
    for (size_t i = 0; i < model.declarations.size(); ++i) of.declarations.push_back(below(3) != 0);
  }
  if (below(4) == 0) of.cta = {below(8), 0, 0};
  if (below(4) == 0) of.cluster = {below(5), 0, 0};
  if (below(3) == 0) of.sms = {{below(4), 3}, {0, 0}};
  if (below(2) == 0) {
    // Edges are moments of the model too: that is where one is off.
    const auto moment = [&] {
      const uint32_t event = below(static_cast<uint32_t>(model.events.size()));
      return model.NsOfWarp(model.events.warp[event], model.events.cycles[event]);
    };
    const double a = moment(), b = moment();
    of.window = std::minmax(a, b);
  }
  return of;
}

std::string Export(std::string_view format, const trace::Model& model) {
  std::string file;
  EXPECT_TRUE(WriteAs(format, model, [&](std::string_view block) {
    file += block;
    return Result<void>();
  }));
  return file;
}

void ExpectSound(const trace::Model& part) {
  for (const char* format : {"pftrace", "trace.json", "chrome.json", "csv", "sqlite"}) {
    const std::string file = Export(format, part);
    const auto checked = CheckExport(std::as_bytes(std::span(file)), "test");
    ASSERT_TRUE(checked);
    ASSERT_EQ(checked->faults.count(), 0u) << format << checked->faults.first().front().text;
    EXPECT_NE(file.find("only what the test asks"), file.npos) << format << " does not say it";
  }
}

TEST(Excerpt, EqualsASlowReference) {
  std::mt19937 random(7);
  size_t with_something = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    trace::Model model = MakeSyntheticModel({.seed = seed, .events_per_warp = 25});
    for (trace::Launch& launch : model.launches) launch.cluster = {1 + seed % 3, 1, 1};
    const trace::ExcerptOf of = RandomChoice(model, random);
    const trace::Model part = trace::Excerpt(model, of, "what the test asks");
    SCOPED_TRACE(part.String(part.filter));
    ASSERT_EQ(RowsOf(part, {}), RowsOf(model, of));
    EXPECT_TRUE(std::ranges::is_sorted(part.values.event));
    EXPECT_TRUE(std::ranges::is_sorted(part.flows.to));
    uint64_t events = 0, warps = 0;
    for (const trace::Launch& launch : part.launches) {
      EXPECT_EQ(launch.first_warp, warps);
      warps += launch.warp_count;
      events += launch.events_kept;
    }
    EXPECT_EQ(warps, part.warps.size());
    EXPECT_EQ(events, part.events.size());
    if (part.warps.size() == 0) continue;
    ++with_something;
    if (seed % 5 == 0) ExpectSound(part);
    // Once more it is the same.
    trace::ExcerptOf again = of;
    again.launches.clear();
    EXPECT_EQ(RowsOf(trace::Excerpt(part, again, ""), {}), RowsOf(part, {}));
  }
  EXPECT_GT(with_something, 30u);
}

TEST(Excerpt, OfEverythingIsTheWhole) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    trace::Model model = MakeSyntheticModel({.seed = seed});
    for (trace::Launch& launch : model.launches) {  // which the maker of models does not count
      launch.warps_begun = 0;
      for (uint32_t i = 0; i < launch.warp_count; ++i) {
        const uint8_t flags = model.warps.flags[launch.first_warp + i];
        launch.warps_begun += (flags & trace::kWarpBeginMissing) == 0 ? 1 : 0;
      }
    }
    trace::Model part = trace::Excerpt(model, {}, "x");
    part.filter = 0;
    for (const char* format : {"pftrace", "trace.json", "chrome.json", "csv", "sqlite"}) {
      EXPECT_EQ(Export(format, part), Export(format, model)) << format;
    }
  }
}

TEST(Excerpt, HolesMoveToWhatIsLeft) {
  trace::Model model =
      MakeSyntheticModel({.seed = 1, .launches = 1, .ctas = 1, .warps_per_cta = 2});
  const uint32_t last = model.warps.event_count[0] - 1;
  model.holes = {1, 2, last};
  const trace::Model all = trace::Excerpt(model, {}, "x");
  EXPECT_EQ(all.holes, model.holes);
  // Without the events at 1 and 2 both of their holes are one, before what comes next.
  trace::ExcerptOf of;
  of.declarations.assign(model.declarations.size(), true);
  of.declarations[model.events.declaration[1]] = false;
  const trace::Model part = trace::Excerpt(model, of, "x");
  EXPECT_LE(part.holes.size(), 3u);
  EXPECT_TRUE(std::ranges::is_sorted(part.holes));
  for (const uint32_t hole : part.holes) EXPECT_LT(hole, part.warps.event_count[0]);
}

}  // namespace
}  // namespace iket::exporter
