#include "export/trace_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "export/synthetic_model.h"
#include "trace/pair.h"

// That the text says what the model says is tested in tests/export, with Python's reader.
namespace iket::exporter {
namespace {

TEST(TraceJson, StreamsInBlocksAndTellsHowFar) {
  const trace::Model model =
      MakeSyntheticModel({.ctas = 200, .events_per_warp = 200, .faults = false});
  size_t largest = 0, bytes = 0;
  uint64_t last = 0;
  const auto written = WriteTraceJson(
      model,
      [&](std::string_view block) {
        largest = std::max(largest, block.size());
        bytes += block.size();
        return Result<void>();
      },
      [&](uint64_t done, uint64_t total) {
        EXPECT_LE(last, done);
        last = done;
        EXPECT_EQ(total, model.warps.size());
      });
  ASSERT_TRUE(written);
  EXPECT_EQ(last, model.warps.size());
  EXPECT_GT(bytes, 4u << 20);
  EXPECT_LT(largest, (1u << 20) + 4096);
}

TEST(TraceJson, StopsWhenTheSinkFails) {
  const trace::Model model = MakeSyntheticModel({.ctas = 200, .events_per_warp = 200});
  int calls = 0;
  const auto written = WriteTraceJson(model, [&](std::string_view) -> Result<void> {
    ++calls;
    return Fail(ErrorKind::kSystem, "no space");
  });
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "no space");
  EXPECT_EQ(calls, 1);
}

TEST(TraceJson, ReplaysStandByGraphAndNumber) {
  trace::Model model = MakeSyntheticModel({.launches = 6, .faults = false});
  const auto replay = [&](uint32_t launch, uint32_t graph, uint32_t node, uint32_t number) {
    model.launches[launch].graph = graph;
    model.launches[launch].node = node;
    model.launches[launch].replay = number;
  };
  replay(1, 2, 0, 10);
  replay(2, 2, trace::kNoRow, 10);
  replay(3, 2, 0, 9);
  replay(4, 2, 0, trace::kNoRow);  // which replay is not known
  std::string text;
  uint64_t last = 0;
  ASSERT_TRUE(WriteTraceJson(
      model,
      [&](std::string_view block) {
        text += block;
        return Result<void>();
      },
      [&](uint64_t done, uint64_t) {
        EXPECT_EQ(done, last + 1);
        last = done;
      }));
  const auto json = nlohmann::json::parse(text);
  const auto grids = [](const nlohmann::json& launches) {
    std::vector<uint32_t> ids;
    for (const auto& launch : launches) ids.push_back(launch["gridId"]);
    return ids;
  };
  const auto id = [&](uint32_t launch) { return model.launches[launch].grid_id; };
  EXPECT_EQ(json["graphLaunches"].size(), 2u);
  EXPECT_THAT(grids(json["graphLaunches"]["graph_exec_2:10"]),
              ::testing::ElementsAre(id(1), id(2)));
  EXPECT_THAT(grids(json["graphLaunches"]["graph_exec_2:9"]), ::testing::ElementsAre(id(3)));
  EXPECT_THAT(grids(json["launches"]), ::testing::ElementsAre(id(0), id(4), id(5)));
  EXPECT_EQ(json["meta"]["iket"]["graphNodes"]["graph_exec_2:10"], nlohmann::json({0, -1}));
}

nlohmann::json JsonOf(const trace::Model& model) {
  std::string text;
  EXPECT_TRUE(WriteTraceJson(model, [&](std::string_view block) {
    text += block;
    return Result<void>();
  }));
  return nlohmann::json::parse(text);
}

// A model of one warp, to which declarations and events are added.
class OneWarp {
 public:
  OneWarp() {
    model_.devices.emplace_back().clock_count = 1;
    model_.clocks.push_back({.knots = {{.cycles = 0, .ns = 0, .slope = 1}}});
    model_.launches.push_back({.first_warp = 0, .warp_count = 1});
    trace::Warps& warps = model_.warps;
    warps.launch = {0};
    warps.cta_x = {0};
    warps.cta_y = warps.cta_z = {0};
    warps.index = {0};
    warps.sm = {0};
    warps.slot = {0};
    warps.flags = {0};
    warps.begin_cycles = {0};
    warps.end_cycles = {1000};
    warps.begin_ns = {0};
    warps.end_ns = {1000};
    warps.first_event = {0};
    warps.tid_x = warps.tid_y = warps.tid_z = {0};
  }
  uint32_t Declare(trace::Declaration declaration, const std::string& name) {
    declaration.name = String(name);
    model_.declarations.push_back(declaration);
    return static_cast<uint32_t>(model_.declarations.size() - 1);
  }
  trace::StringId String(const std::string& text) {
    const auto found = std::ranges::find(model_.strings, text);
    if (found == model_.strings.end()) {
      model_.strings.push_back(text);
      return static_cast<trace::StringId>(model_.strings.size() - 1);
    }
    return static_cast<trace::StringId>(found - model_.strings.begin());
  }
  uint32_t Event(uint32_t declaration, uint64_t payload = 0) {
    model_.events.warp.push_back(0);
    model_.events.declaration.push_back(declaration);
    model_.events.cycles.push_back(10 * (model_.events.cycles.size() + 1));
    model_.events.payload.push_back(payload);
    return static_cast<uint32_t>(model_.events.size() - 1);
  }
  trace::Model& model() { return model_; }
  nlohmann::json Json() {
    model_.warps.event_count = {static_cast<uint32_t>(model_.events.size())};
    trace::PairRanges(model_);
    return JsonOf(model_);
  }

 private:
  trace::Model model_;
};

TEST(TraceJson, PayloadsAreOfTheDeclaredTypeAndUnsigned) {
  using trace::PayloadType;
  OneWarp warp;
  struct Case {
    PayloadType reads;
    uint8_t declared;
    uint64_t bits;
    int code;
    uint64_t value;
  };
  // bool is u8, as TVM declares it; bfloat16 is a float in the model.
  const Case cases[] = {{PayloadType::kS32, 1, 0xfffffff8, 1, 0xf8},
                        {PayloadType::kU32, 2, 200, 2, 200},
                        {PayloadType::kS32, 3, 0xfffff9c0, 3, 0xf9c0},
                        {PayloadType::kU32, 4, 60000, 4, 60000},
                        {PayloadType::kS32, 5, 0xfffffff9, 5, 0xfffffff9},
                        {PayloadType::kS64, 7, ~uint64_t{0}, 7, ~uint64_t{0}},
                        {PayloadType::kU64, 15, 0x7fff00000000, 15, 0x7fff00000000},
                        {PayloadType::kU64, 16, uint64_t{1} << 63, 16, uint64_t{1} << 63},
                        {PayloadType::kU32, 64, 1, 2, 1},
                        {PayloadType::kF32, 66, 0x3fc00000, 13, 0x3fc00000},
                        {PayloadType::kF64, 0, 0x401a000000000000, 14, 0x401a000000000000}};
  for (const Case& one : cases) {
    const uint32_t row =
        warp.Declare({.payload = one.reads, .payload_declared = one.declared}, "m");
    warp.model().declarations[row].kind = trace::EventKind::kMark;
    warp.Event(row, one.bits);
  }
  const auto markers = warp.Json()["launches"][0]["markers"];
  ASSERT_EQ(markers.size(), std::size(cases));
  for (size_t i = 0; i < std::size(cases); ++i) {
    EXPECT_EQ(markers[i]["payloadType"], cases[i].code) << i;
    EXPECT_EQ(markers[i]["payloadVal"], cases[i].value) << i;
    EXPECT_TRUE(markers[i]["payloadVal"].is_number_unsigned()) << i;
  }
}

TEST(TraceJson, MarksOfAnotherToolKeepItsIds) {
  using trace::EventKind;
  OneWarp warp;
  const uint32_t push =
      warp.Declare({.kind = EventKind::kPush, .foreign_event = 5, .foreign_range = 77}, "pushed");
  const uint32_t pop = warp.Declare({.kind = EventKind::kPop, .foreign_event = 31}, "");
  const uint32_t begin = warp.Declare(
      {.kind = EventKind::kTokenBegin, .foreign_event = 6, .foreign_range = 78}, "token");
  const uint32_t end = warp.Declare(
      {.kind = EventKind::kTokenEnd, .foreign_event = 6, .foreign_range = 78}, "token");
  const uint32_t own = warp.Declare({.kind = EventKind::kPush}, "own");
  warp.Event(push);
  warp.Event(pop);
  warp.Event(begin);
  warp.Event(end, uint64_t{30} << 32);
  warp.Event(own);
  warp.Event(pop);
  const auto ranges = warp.Json()["launches"][0]["ranges"];
  ASSERT_EQ(ranges.size(), 3u);
  const auto ids = [](const nlohmann::json& range) {
    return std::pair(range["internalEvents"][0]["eventId"].get<int>(),
                     range["internalEvents"][1]["eventId"].get<int>());
  };
  EXPECT_EQ(ids(ranges[0]), std::pair(5, 31));
  EXPECT_EQ(ids(ranges[1]), std::pair(6, 6));
  EXPECT_EQ(ids(ranges[2]), std::pair(5, 31));  // ours count from 1
  EXPECT_EQ(ranges[0]["rangeId"], 77);
  EXPECT_EQ(ranges[1]["rangeId"], 78);
  EXPECT_EQ(ranges[2]["rangeId"], 0xa515afbf);  // FNV-1a-32 of "own"
  EXPECT_EQ(ranges[0]["rangeType"], 2);
  EXPECT_EQ(ranges[1]["rangeType"], 1);
}

TEST(TraceJson, OfSeveralValuesTheFirstIsThePayload) {
  OneWarp warp;
  const uint32_t row =
      warp.Declare({.kind = trace::EventKind::kMark, .payload = trace::PayloadType::kS32}, "many");
  warp.model().declarations[row].more = {{warp.String("n"), trace::PayloadType::kF64},
                                         {warp.String("k"), trace::PayloadType::kU32}};
  const uint32_t event = warp.Event(row, 3);
  warp.Event(row, 4);
  warp.model().values = {.event = {event, event}, .index = {0, 1}, .value = {1ull << 62, 9}};
  const nlohmann::json json = warp.Json();
  const auto& marker = json["launches"][0]["markers"][0];
  EXPECT_EQ(marker["payloadVal"], 3);
  ASSERT_EQ(marker["iketValues"].size(), 2u);
  const auto& first = marker["iketValues"][0];
  EXPECT_EQ(json["stringTable"][first["nameIdx"].get<size_t>()], "n");
  EXPECT_EQ(first["payloadType"], 14);
  EXPECT_EQ(first["payloadVal"], 1ull << 62);
  EXPECT_EQ(marker["iketValues"][1]["payloadVal"], 9);
  EXPECT_FALSE(json["launches"][0]["markers"][1].contains("iketValues"));
}

TEST(TraceJson, RangesWithoutEndStandApart) {
  OneWarp warp;
  warp.Event(warp.Declare({.kind = trace::EventKind::kPush}, "open"));
  const nlohmann::json json = warp.Json();
  EXPECT_TRUE(json["launches"][0]["ranges"].empty());
  const auto& open = json["meta"]["iket"]["unclosedRanges"];
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0]["internalEvents"].size(), 1u);
  EXPECT_EQ(open[0]["endTs"], 1000);
}

TEST(TraceJson, OneClusterAlone) {
  OneWarp warp;
  EXPECT_EQ(warp.Json()["launches"][0]["singleClusterActive"], 0);
  warp.model().launches[0].only_cluster = {{2, 0, 1}};
  const auto launch = warp.Json()["launches"][0];
  EXPECT_EQ(launch["singleClusterActive"], 1);
  EXPECT_EQ(launch["enabledCluster"], nlohmann::json({{"x", 2}, {"y", 0}, {"z", 1}}));
}

TEST(TraceJson, EmptyModel) {
  std::string text;
  ASSERT_TRUE(WriteTraceJson(trace::Model(), [&](std::string_view block) {
    text += block;
    return Result<void>();
  }));
  EXPECT_THAT(text,
              ::testing::StartsWith(R"({"graphLaunches":{},"launches":[],"locationTable":[],)"));
  EXPECT_THAT(text, ::testing::EndsWith(R"("version":1},"stringTable":[]})"));
}

}  // namespace
}  // namespace iket::exporter
