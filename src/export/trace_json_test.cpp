#include "export/trace_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
