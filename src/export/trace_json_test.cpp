#include "export/trace_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "export/synthetic_model.h"

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
