// Random lives of a small GPU, decoded, against the log of what truly happened. The reference is as
// plain as can be: the newest records of each ring's log, taken warp by warp.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <random>

#include "trace/decode.h"
#include "trace/synthetic.h"

namespace iket::trace {
namespace {

using Truth = SyntheticGpu::Truth;
using WarpId = SyntheticGpu::WarpId;

struct Life {
  SyntheticGpu gpu;
  std::vector<uint32_t> ids;
};

struct LifeOptions {
  uint32_t steps = 20'000;
  bool partial_exits = true;
  bool leave_running = true;
};

// Warps begin, record and end in random order on few slots, so that rings lap many times.
Life RandomLife(uint64_t seed, const LifeOptions& options) {
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t bound) { return random() % bound; };
  Life life{SyntheticGpu({.sms = 3, .ring_bytes = 4096}), {}};
  SyntheticGpu& gpu = life.gpu;
  for (uint32_t sm = 0; sm < 3; ++sm) gpu.SetDrift(sm, 1e-6 * static_cast<double>(below(20)));
  const uint32_t kernel = gpu.AddKernel("chaos");
  using Kind = capture::EventKind;
  for (const char* name : {"a", "b", "c"}) {
    life.ids.push_back(gpu.Declare(Kind::kMark, name, capture::PayloadType::kU32));
    life.ids.push_back(gpu.Declare(Kind::kPush, name, capture::PayloadType::kU64));
    life.ids.push_back(gpu.Declare(Kind::kRangeBegin, name));
    life.ids.push_back(gpu.Declare(Kind::kRangeEnd, name));
  }
  life.ids.push_back(gpu.Declare(Kind::kPop, ""));

  const uint32_t grid = gpu.Launch(kernel, {100'000, 1, 1}, {64, 1, 1});
  struct Running {
    WarpId warp;
    uint64_t left;
    bool lanes_left = false;  // some lanes have gone: the last word is an end
  };
  std::map<uint32_t, Running> running;  // by sm * 8 + slot
  uint32_t next_cta = 0;
  for (uint32_t step = 0; step < options.steps; ++step) {
    gpu.Pass(static_cast<double>(20 + below(400)));
    const uint32_t place = static_cast<uint32_t>(below(3 * 3));
    auto found = running.find(place);
    if (found == running.end()) {
      const uint64_t length = below(4) == 0 ? below(3) : below(600);
      const WarpId warp = gpu.Begin(grid, next_cta / 2, next_cta % 2, place / 3, place % 3);
      ++next_cta;
      running.emplace(place, Running{warp, length});
      continue;
    }
    Running& warp = found->second;
    if (warp.left-- == 0) {
      gpu.Exit(warp.warp);
      running.erase(found);
    } else if (options.partial_exits && below(50) == 0) {
      gpu.Exit(warp.warp, false);
      gpu.Pass(10);
      gpu.Event(warp.warp, life.ids[below(life.ids.size())], random());  // the others go on
    } else {
      gpu.Event(warp.warp, life.ids[below(life.ids.size())], random());
    }
  }
  for (auto& [place, warp] : running) {
    if (options.leave_running && below(3) == 0) continue;
    gpu.Pass(25);
    gpu.Exit(warp.warp);
  }
  return life;
}

// What must be in the model, warp by warp.
struct ExpectedWarp {
  std::vector<Truth> events;
  bool begin = false;
  bool identity = false;
};

std::map<WarpId, ExpectedWarp> Expect(const SyntheticGpu& gpu) {
  std::map<WarpId, ExpectedWarp> expected;
  for (uint32_t ring = 0; ring < gpu.ring_count(); ++ring) {
    const std::vector<Truth>& log = gpu.Log(ring);
    const size_t first = log.size() - std::min<size_t>(log.size(), gpu.records_per_ring());
    for (size_t i = first; i < log.size(); ++i) {
      ExpectedWarp& warp = expected[log[i].warp];
      if (log[i].kind == ring::RecordKind::kEvent) warp.events.push_back(log[i]);
      if (log[i].kind == ring::RecordKind::kBegin) warp.begin = true;
      warp.identity |= log[i].kind != ring::RecordKind::kEvent;
    }
    if (!log.empty()) expected[log.back().warp].identity = true;  // in the ring's header
  }
  return expected;
}

Model DecodeNow(SyntheticGpu& gpu) {
  Decoder decoder(gpu.facts());
  decoder.Add(gpu.Read());
  Result<Model> model = decoder.Finish();
  EXPECT_TRUE(model.has_value());
  return std::move(*model);
}

// Finds rows of the model's warps: by CTA and index, or by ring for the one that is anonymous.
class WarpRows {
 public:
  explicit WarpRows(const Model& model) {
    for (uint32_t i = 0; i < model.warps.size(); ++i) {
      const uint32_t ring = model.warps.sm[i] * ring::kSlotsPerSm + model.warps.slot[i];
      if ((model.warps.flags[i] & kWarpOrphan) != 0) {
        EXPECT_TRUE(orphans_.emplace(ring, i).second) << "two anonymous warps on ring " << ring;
      } else {
        const auto key = std::pair(model.warps.cta_x[i], model.warps.index[i]);
        EXPECT_TRUE(rows_.emplace(key, i).second) << "CTA " << key.first << " warp " << key.second;
      }
    }
  }
  std::optional<uint32_t> Find(const SyntheticGpu::Warp& warp, bool has_identity) const {
    if (!has_identity) {
      const auto row = orphans_.find(warp.ring);
      return row == orphans_.end() ? std::nullopt : std::optional(row->second);
    }
    const auto row = rows_.find({warp.identity.cta_x, warp.index});
    return row == rows_.end() ? std::nullopt : std::optional(row->second);
  }

 private:
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> rows_;
  std::map<uint32_t, uint32_t> orphans_;
};

void ExpectSameEvents(const Model& model, uint32_t row, const ExpectedWarp& expected,
                      const std::string& what) {
  ASSERT_EQ(model.warps.event_count[row], expected.events.size()) << what;
  const uint32_t first = model.warps.first_event[row];
  for (uint32_t i = 0; i < expected.events.size(); ++i) {
    const Truth& truth = expected.events[i];
    const uint32_t event = first + i;
    const Declaration& declaration = model.declarations[model.events.declaration[event]];
    ASSERT_EQ(declaration.id, truth.id) << what << " event " << i;
    ASSERT_EQ(model.events.warp[event], row) << what;
    const uint64_t mask = declaration.payload == PayloadType::kNone  ? 0
                          : declaration.payload == PayloadType::kU32 ? 0xffffffffu
                                                                     : ~uint64_t{0};
    ASSERT_EQ(model.events.payload[event], truth.payload & mask) << what << " event " << i;
    if (i > 0) {
      ASSERT_EQ(model.events.cycles[event] - model.events.cycles[event - 1],
                truth.cycles - expected.events[i - 1].cycles)
          << what << " event " << i;
    }
    ASSERT_EQ(static_cast<uint32_t>(model.events.cycles[event]),
              static_cast<uint32_t>(truth.cycles));
  }
}

class DecodeProperty : public testing::TestWithParam<uint64_t> {};

TEST_P(DecodeProperty, EverythingThatTheRingsStillHoldIsInTheModel) {
  Life life = RandomLife(GetParam(), {});
  SyntheticGpu& gpu = life.gpu;
  const std::map<WarpId, ExpectedWarp> expected = Expect(gpu);
  const Model model = DecodeNow(gpu);
  const WarpRows rows(model);

  uint64_t written = 0, kept = 0;
  for (uint32_t ring = 0; ring < gpu.ring_count(); ++ring) {
    written += gpu.Log(ring).size();
    kept += std::min<size_t>(gpu.Log(ring).size(), gpu.records_per_ring());
  }
  EXPECT_GT(written, 10 * kept / 2) << "the story should lap its rings";
  EXPECT_EQ(model.counters.records_kept, kept);
  if (model.counters.lost_is_lower_bound == 0) {
    EXPECT_EQ(model.counters.records_written, written);
    EXPECT_EQ(model.counters.records_lost, written - kept);
  } else {
    EXPECT_LE(model.counters.records_written, written);
  }
  EXPECT_EQ(model.counters.suspect_rings, 0u);

  EXPECT_EQ(model.counters.backward_clocks, 0u);
  EXPECT_EQ(model.counters.unknown_ids, 0u);

  size_t found = 0;
  for (const auto& [id, warp] : expected) {
    const SyntheticGpu::Warp& truth = gpu.warps()[id];
    const std::optional<uint32_t> row = rows.Find(truth, warp.identity);
    if (!row) {
      // Nothing but its identity is left, and that is no moment in time.
      EXPECT_TRUE(warp.events.empty() && !warp.begin);
      continue;
    }
    ++found;
    const std::string what = "seed " + std::to_string(GetParam()) + " warp " + std::to_string(id) +
                             " flags " + std::to_string(model.warps.flags[*row]);
    ExpectSameEvents(model, *row, warp, what);
    const uint8_t flags = model.warps.flags[*row];
    EXPECT_EQ((flags & kWarpBeginMissing) == 0, warp.begin) << what;
    EXPECT_EQ((flags & kWarpEndMissing) == 0, truth.ended) << what;
    if (truth.ended && !warp.events.empty()) {
      const uint32_t last = model.warps.first_event[*row] + model.warps.event_count[*row] - 1;
      EXPECT_EQ(model.warps.end_cycles[*row] - model.events.cycles[last],
                truth.end_cycles - warp.events.back().cycles)
          << what;
    }
    EXPECT_EQ((flags & kWarpRunning) != 0, !truth.ended) << what;
    EXPECT_GE(model.warps.begin_ns[*row], 0) << what;
    if ((flags & kWarpWrapGap) != 0) continue;
    for (uint32_t i = 0; i < warp.events.size(); ++i) {
      const double ns =
          model.NsOfWarp(*row, model.events.cycles[model.warps.first_event[*row] + i]);
      const double truly =
          warp.events[i].ns - static_cast<double>(model.origin_ns - 1'780'000'000'000'000'000u);
      ASSERT_NEAR(ns, truly, 200) << what << " event " << i;
    }
  }
  EXPECT_EQ(found, model.warps.size());
}

INSTANTIATE_TEST_SUITE_P(Seeds, DecodeProperty, testing::Range<uint64_t>(1, 40));

}  // namespace
}  // namespace iket::trace
