// The oracle's kernels, patched: they log what they mark, and the rings must hold just that.
#include <gtest/gtest.h>

#include "sim/testing.h"
#include "sim/testing_patched.h"

namespace iket::sim::testing {
namespace {

struct Entry {
  uint32_t before, after, event, payload;
};
struct WarpHeader {
  uint32_t count, sm, grid_id, start, cta[3], warp;
};
// The kernels take their log by value.
struct Log {
  uint64_t warps, entries;
  uint64_t capacity;
};

struct Case {
  const char* kernel;
  Dim3 grid, block;
  uint32_t capacity;
  int n;
  uint32_t pause = 0;
  bool has_pause = false;
};

class Oracle : public ::testing::TestWithParam<Case> {};

TEST_P(Oracle, RingsHoldWhatTheKernelLogged) {
  const Case& c = GetParam();
  std::string printed;
  std::mutex mutex;
  Device device({.print = [&](std::string_view text) {
    const std::lock_guard lock(mutex);
    printed += text;
  }});
  const PatchedImage patched = LoadPatched(device, "oracle.cubin", 1 << 16);
  const uint32_t warps = static_cast<uint32_t>(c.grid.count() * ((c.block.count() + 31) / 32));
  const Log log{device.Upload(std::vector<WarpHeader>(warps)),
                device.Upload(std::vector<Entry>(size_t{warps} * c.capacity)), c.capacity};
  if (c.has_pause) {
    EXPECT_RUNS(device.Launch(*patched.image, c.kernel, c.grid, c.block, 0, log.warps, log.entries,
                              log.capacity, c.n, c.pause));
  } else {
    EXPECT_RUNS(device.Launch(*patched.image, c.kernel, c.grid, c.block, 0, log.warps, log.entries,
                              log.capacity, c.n));
  }
  uint32_t events = 0;
  uint32_t bad_clocks = 0;
  const auto headers = device.Download<WarpHeader>(log.warps, warps);
  for (uint32_t w = 0; w < warps; ++w) {
    ASSERT_LE(headers[w].count, c.capacity);
    events += headers[w].count;
    const auto entries = device.Download<Entry>(
        log.entries + uint64_t{w} * c.capacity * sizeof(Entry), headers[w].count);
    for (const Entry& entry : entries) bad_clocks += entry.after < entry.before;
  }
  const Records records = ReadRecords(device, patched);
  EXPECT_GT(events, 0u);
  EXPECT_EQ(records.events, events);
  EXPECT_EQ(records.begins, warps);
  EXPECT_EQ(records.identities, warps);
  EXPECT_EQ(bad_clocks, 0u);
  EXPECT_EQ(printed.find('\n') != std::string::npos, std::string(c.kernel) == "Driver");
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, Oracle,
    ::testing::Values(Case{"Full", {32}, {1024}, 24, 8}, Case{"Divergent", {32}, {128}, 96, 16},
                      Case{"Loops", {32}, {128}, 256, 9}, Case{"Calls", {32}, {128}, 64, 10},
                      Case{"Exits", {64}, {128}, 64, 6},
                      Case{"Grid3d", {3, 5, 4}, {8, 4, 6}, 16, 5},
                      Case{"Grid3d", {1, 1, 9}, {1, 64, 1}, 16, 5},
                      Case{"Payloads", {32}, {128}, 160, 16}, Case{"Driver", {8}, {64}, 32, 6},
                      Case{"Ranges", {32}, {128}, 128, 8},
                      Case{"Long", {20}, {96}, 200, 200, 100, true}));

}  // namespace
}  // namespace iket::sim::testing
