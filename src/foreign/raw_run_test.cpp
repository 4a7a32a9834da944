#include "foreign/raw_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

namespace iket::foreign {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

std::string TextOf(const std::string& folder) {
  std::ifstream file(IKET_SOURCE_DIR "/tests/data/run-iket/" + folder + "/iket.data.json");
  return std::string(std::istreambuf_iterator<char>(file), {});
}
std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// What is said of the run of `ranges` after such a change.
std::string FaultAfter(const std::function<void(Json&)>& change) {
  Json json = Json::parse(TextOf("ranges"));
  change(json);
  const auto run = ParseRawRun(Bytes(json.dump()), "f");
  return run ? "" : run.error().message;
}

TEST(RawRun, LooksLikeOne) {
  for (const char* folder : {"cpp", "ranges", "tilelang-payload", "types", "warp-trace"}) {
    EXPECT_TRUE(LooksLikeRawRun(Bytes(TextOf(folder)))) << folder;
  }
  EXPECT_TRUE(LooksLikeRawRun(Bytes(" \n{\n \"meta\": {}, \"decodeContexts\": {}}")));
  EXPECT_FALSE(LooksLikeRawRun(Bytes(R"({"graphLaunches":{},"launches":[]})")));
  EXPECT_FALSE(LooksLikeRawRun(Bytes(R"(x"decodeContexts")")));
  EXPECT_FALSE(LooksLikeRawRun({}));
}

TEST(RawRun, Reads) {
  const std::string text = TextOf("ranges");
  const auto run = ParseRawRun(Bytes(text), "f");
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->modules.size(), 1u);
  const RawContext& module = run->modules[0];
  EXPECT_EQ(module.architecture, 90u);
  EXPECT_EQ(module.events.size(), 12u);
  EXPECT_EQ(module.events[3].name, "tile");
  EXPECT_EQ(module.events[3].position, Position::kRangeStartEnd);
  EXPECT_EQ(module.events[3].payload, 5);
  EXPECT_EQ(module.ranges[0].name, "mma");
  EXPECT_EQ(module.kernels.begin()->second.sites, 18u);
  ASSERT_EQ(run->launches.size(), 2u);
  EXPECT_FALSE(run->launches[0].recorded);
  const RawLaunch& launch = run->launches[1];
  EXPECT_TRUE(launch.recorded);
  EXPECT_EQ(launch.bytes, 4352u);
  EXPECT_EQ(launch.warp_bytes, 272u);
  EXPECT_EQ(launch.cluster[0], 2u);
  EXPECT_FALSE(launch.only_cluster);
  EXPECT_EQ(run->topology.at(1).size(), 132u);
}

TEST(RawRun, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(FaultAfter([](Json&) {}), "");
  EXPECT_EQ(FaultAfter([](Json& json) { json.erase("launches"); }),
            "f: not as run-iket writes it: the file has no launches");
  EXPECT_THAT(FaultAfter([](Json& json) { json["launches"][1].erase("gridDimX"); }),
              HasSubstr("launch 1 has no gridDimX"));
  EXPECT_THAT(FaultAfter([](Json& json) { json["launches"][1]["gridDimX"] = "4"; }),
              HasSubstr("gridDimX of launch 1 is string"));
  EXPECT_THAT(FaultAfter([](Json& json) { json["launches"][1]["gridDimX"] = -4; }),
              HasSubstr("gridDimX of launch 1 is number"));
  EXPECT_THAT(FaultAfter([](Json& json) { json["launches"][1]["gridDimX"] = 1ull << 32; }),
              HasSubstr("gridDimX of launch 1 is 4294967296, more than 4294967295"));
  EXPECT_THAT(FaultAfter([](Json& json) { json["launches"][1]["decodeContextId"] = "x"; }),
              HasSubstr("launch 1 refers to decodeContexts[x], which is not there"));
  EXPECT_THAT(FaultAfter([](Json& json) {
                json["launches"][1]["dataRef"]["filename"] = "../../etc/passwd";
              }),
              HasSubstr("outside of this folder"));
  EXPECT_THAT(
      FaultAfter([](Json& json) { json["launches"][1]["patchOptions"]["timerSource"] = 1; }),
      HasSubstr("launch 1 has timerSource 1; only 0"));
  EXPECT_THAT(FaultAfter([](Json& json) {
                json["decodeContexts"].front()["events"][0]["payloadType"] = 9;
              }),
              HasSubstr("event life has payloadType 9"));
  EXPECT_THAT(
      FaultAfter([](Json& json) { json["decodeContexts"].front()["events"][0]["eventId"] = 5000; }),
      HasSubstr("5000, more than 4095"));
  EXPECT_THAT(FaultAfter([](Json& json) { json["meta"]["version"] = 2; }),
              HasSubstr("it is of version 2"));
  EXPECT_THAT(ParseRawRun(Bytes(R"({"decodeContexts":)"), "f").error().message,
              HasSubstr("f: no JSON, or cut"));
}

TEST(RawRun, WhatWasNotRecordedNeedsNoBuffers) {
  EXPECT_EQ(FaultAfter([](Json& json) { json["launches"][0]["decodeContextId"] = "gone"; }), "");
}

TEST(RawRun, ReplaysAndOneCluster) {
  Json json = Json::parse(TextOf("ranges"));
  Json launch = json["launches"][1];
  launch["singleClusterActive"] = 1;
  launch["enabledCluster"] = {{"x", 1}, {"y", 0}, {"z", 0}};
  json["graphLaunches"]["graph_exec_3:12"] = Json::array({launch});
  const auto run = ParseRawRun(Bytes(json.dump()), "f");
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->launches.size(), 3u);
  EXPECT_THAT(run->launches[2].replay.value(), ::testing::ElementsAre(3, 12));
  EXPECT_THAT(run->launches[2].only_cluster.value(), ::testing::ElementsAre(1, 0, 0));
  for (const char* key :
       {"graph", "graph_exec_", "graph_exec_1", "graph_exec_1:", "graph_exec_1:2x"}) {
    EXPECT_THAT(FaultAfter([&](Json& changed) { changed["graphLaunches"][key] = Json::array(); }),
                HasSubstr("is not the list of launches"))
        << key;
  }
}

TEST(RawRun, AnSmWhosePlaceIsNotKnown) {
  Json json = Json::parse(TextOf("ranges"));
  json["topology"][0]["sms"][0]["tpcId"] = -1;
  const auto run = ParseRawRun(Bytes(json.dump()), "f");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->topology.at(1)[0].tpc, -1);
}

}  // namespace
}  // namespace iket::foreign
