// The truth is what run-iket made of the same buffers: the trace.json beside them.
#include "foreign/read_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace iket::foreign {
namespace {

using Json = nlohmann::json;
using Lines = std::vector<std::string>;

std::string Folder(const std::string& name) {
  return std::string(IKET_SOURCE_DIR "/tests/data/run-iket/") + name;
}

trace::Model ModelOf(const std::string& name) {
  auto run = ReadRun(Folder(name) + "/iket.data.json");
  EXPECT_TRUE(run) << run.error().message;
  return run ? std::move(run->model) : trace::Model();
}

std::string Payload(uint64_t type, uint64_t bits) { return fmt::format("{}:{}", type, bits); }

// Everything that is said of each launch, sorted.
Lines LinesOfTrace(const std::string& name) {
  std::ifstream file(Folder(name) + "/trace.json");
  const Json trace = Json::parse(file);
  const Json& names = trace["stringTable"];
  const auto place = [&](const Json& row) {
    const Json& at = trace["locationTable"][row.get<size_t>()];
    return fmt::format("({},{},{}) warp {} on {}/{}/{}", at["ctaId"][0].get<int>(),
                       at["ctaId"][1].get<int>(), at["ctaId"][2].get<int>(),
                       at["warpId"].get<int>(), at["gpcId"].get<int>(), at["tpcId"].get<int>(),
                       at["smId"].get<int>());
  };
  const auto payload = [](const Json& event) {
    return event.contains("payloadType") ? Payload(event["payloadType"], event["payloadVal"]) : "";
  };
  Lines lines;
  for (const Json& launch : trace["launches"]) {
    const std::string head = fmt::format("{} grid {}: ", launch["kernelName"].get<std::string>(),
                                         launch["gridId"].get<int>());
    for (const Json& range : launch["ranges"]) {
      const Json& first = range["internalEvents"][0];
      const Json& last = range["internalEvents"][1];
      lines.push_back(head +
                      fmt::format("{} {} id {} colour {} [{} {} {}, {} {} {}] type {}",
                                  place(range["warpLocIdxs"][0]),
                                  names[range["rangeNameIdx"].get<size_t>()].get<std::string>(),
                                  range["rangeId"].get<uint64_t>(),
                                  range["rangeColor"].get<uint64_t>(), first["eventId"].get<int>(),
                                  first["timestamp"].get<uint64_t>(), payload(first),
                                  last["eventId"].get<int>(), last["timestamp"].get<uint64_t>(),
                                  payload(last), range["rangeType"].get<int>()));
    }
    for (const Json& mark : launch["markers"]) {
      lines.push_back(head +
                      fmt::format("{} mark {} at {} {}", place(mark["locIdx"]),
                                  names[mark["markerNameIdx"].get<size_t>()].get<std::string>(),
                                  mark["timestamp"].get<uint64_t>(), payload(mark)));
    }
    for (const Json& life : launch["warpLifetimes"]) {
      lines.push_back(head + fmt::format("{} lives {} to {}", place(life["locIdx"]),
                                         life["startTs"].get<uint64_t>(),
                                         life["endTs"].get<uint64_t>()));
    }
  }
  std::ranges::sort(lines);
  return lines;
}

Lines LinesOfModel(const trace::Model& model) {
  const auto launch_of = [&](uint32_t warp) -> const trace::Launch& {
    return model.launches[model.warps.launch[warp]];
  };
  const auto place = [&](uint32_t warp) {
    const trace::Launch& launch = launch_of(warp);
    const uint32_t sm = model.warps.sm[warp];
    const trace::SmPlace at = model.devices[launch.device].places.at(sm);
    return fmt::format("{} grid {}: ({},{},{}) warp {} on {}/{}/{}",
                       model.String(model.kernels[launch.kernel].mangled), launch.grid_id,
                       model.warps.cta_x[warp], model.warps.cta_y[warp], model.warps.cta_z[warp],
                       model.warps.index[warp], at.gpc, at.tpc, sm);
  };
  const auto time = [&](uint64_t cycles) { return model.origin_ns + cycles; };
  // Narrow integers are widened in the model.
  const auto payload = [&](uint32_t event) {
    const trace::Declaration& row = model.declarations[model.events.declaration[event]];
    if (row.payload == trace::PayloadType::kNone) return std::string();
    const uint64_t bits = model.events.payload[event];
    const bool is_byte = row.payload_declared == 1 || row.payload_declared == 2;
    const bool is_short = row.payload_declared == 3 || row.payload_declared == 4;
    return Payload(row.payload_declared, is_byte ? bits & 0xff : (is_short ? bits & 0xffff : bits));
  };
  Lines lines;
  for (uint32_t i = 0; i < model.ranges.size(); ++i) {
    const trace::Declaration& row = model.declarations[model.ranges.declaration[i]];
    const auto end = [&](uint32_t event) {
      return fmt::format("{} {} {}",
                         model.declarations[model.events.declaration[event]].foreign_event,
                         time(model.events.cycles[event]), payload(event));
    };
    lines.push_back(fmt::format(
        "{} {} id {} colour {} [{}, {}] type {}", place(model.ranges.warp[i]), model.NameOf(row),
        row.foreign_range, row.colour, end(model.ranges.begin_event[i]),
        end(model.ranges.end_event[i]), row.kind == trace::EventKind::kPush ? 2 : 1));
  }
  for (const uint32_t event : model.marks.event) {
    lines.push_back(fmt::format("{} mark {} at {} {}", place(model.events.warp[event]),
                                model.DeclarationName(model.events.declaration[event]),
                                time(model.events.cycles[event]), payload(event)));
  }
  for (uint32_t warp = 0; warp < model.warps.size(); ++warp) {
    lines.push_back(fmt::format("{} lives {} to {}", place(warp),
                                time(model.warps.begin_cycles[warp]),
                                time(model.warps.end_cycles[warp])));
  }
  std::ranges::sort(lines);
  return lines;
}

class Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Golden, SaysWhatRunIketMadeOfIt) {
  const trace::Model model = ModelOf(GetParam());
  const Lines expected = LinesOfTrace(GetParam());
  ASSERT_GT(expected.size(), 4u);
  EXPECT_EQ(LinesOfModel(model), expected);
  EXPECT_FALSE(trace::AnyFault(model.counters));
  for (const trace::Launch& launch : model.launches) {
    EXPECT_EQ(launch.completeness, trace::Completeness::kComplete);
  }
}

INSTANTIATE_TEST_SUITE_P(Reference, Golden,
                         ::testing::Values("cpp", "ranges", "tilelang-payload", "types",
                                           "warp-trace"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(ReadRun, LaunchesThatWereNotRecordedAreNotThere) {
  const trace::Model model = ModelOf("tilelang-payload");
  ASSERT_EQ(model.launches.size(), 1u);
  EXPECT_EQ(model.launches[0].grid_id, 3u);
  EXPECT_EQ(model.launches[0].warps_expected, 16u);
}

TEST(ReadRun, WhatIsNotThere) {
  const auto run = ReadRun(Folder("no-such-run") + "/iket.data.json");
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().message, ::testing::HasSubstr("no-such-run/iket.data.json: cannot open"));
}

// One launch of made-up buffers.
struct Made {
  RawRun raw{
      .modules = {{.architecture = 90, .kernels = {{"k", {.max_payload_bytes = 4, .sites = 1}}}}},
      .launches = {{.kernel = "k",
                    .context = 1,
                    .grid_id = 1,
                    .grid = {1, 1, 1},
                    .block = {32, 1, 1},
                    .recorded = true,
                    .file = "f",
                    .warp_bytes = 64}},
      .topology = {}};
  std::vector<std::byte> file;

  void AddWarp(std::vector<uint32_t> words, uint32_t begin_low = 0) {
    const auto written = static_cast<uint32_t>(16 + 4 * words.size());
    std::vector<uint32_t> all{written, 3u << 20, begin_low, 1};
    all.insert(all.end(), words.begin(), words.end());
    all.resize(raw.launches[0].warp_bytes / 4);
    const auto bytes = std::as_bytes(std::span(all));
    file.insert(file.end(), bytes.begin(), bytes.end());
    raw.launches[0].bytes = file.size();
  }
  trace::Model Model() {
    auto run = MakeRun(raw, [&](const std::string&) { return std::span<const std::byte>(file); });
    EXPECT_TRUE(run) << run.error().message;
    return run ? std::move(run->model) : trace::Model();
  }
};

TEST(ReadRun, EachSecondEventOfATokenIsItsEnd) {
  Made made;
  made.raw.modules[0].events = {
      {.id = 5, .name = "t", .position = Position::kRangeStartEnd, .payload = 16, .range = 9}};
  made.raw.modules[0].kernels["k"].max_payload_bytes = 8;
  made.raw.launches[0].warp_bytes = 112;
  const auto event = [](uint32_t time, uint32_t value) {
    return std::vector<uint32_t>{time | 5, 0, value, 0x80000000};
  };
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < 5; ++i)
    std::ranges::copy(event(32 * (i / 2), i), std::back_inserter(words));
  words.push_back(640);
  made.AddWarp(words);
  const trace::Model model = made.Model();
  ASSERT_EQ(model.ranges.size(), 3u);  // the last one is open
  EXPECT_EQ(model.ranges.begin_cycles[0], 0u);
  EXPECT_EQ(model.ranges.end_cycles[0], 0u);
  EXPECT_EQ(model.ranges.begin_cycles[1], 32u);
  EXPECT_EQ(model.ranges.end_cycles[2], 640u);
  EXPECT_EQ(model.ranges.flags[2] & trace::kRangeUnclosed, trace::kRangeUnclosed);
  EXPECT_EQ(model.counters.unclosed_ranges, 1u);
  const uint32_t end = model.ranges.end_event[1];
  EXPECT_EQ(model.events.payload[end], 0x80000000'00000003u);
  EXPECT_TRUE(model.HasPayload(end));
}

TEST(ReadRun, AWarpThatWroteMoreThanItsBuffer) {
  Made made;
  made.raw.modules[0].events = {{.id = 1, .name = "m"}};
  made.AddWarp({33, 65, 97});
  const uint32_t written = 16 + 4 * 40;
  std::memcpy(made.file.data(), &written, 4);
  const trace::Model model = made.Model();
  EXPECT_EQ(model.counters.records_lost, 28u);
  EXPECT_EQ(model.counters.warps_end_missing, 1u);
  EXPECT_EQ(model.warps.flags[0], trace::kWarpEndMissing);
  EXPECT_EQ(model.launches[0].completeness, trace::Completeness::kPartial);
}

TEST(ReadRun, OneClusterHasItsOwnPlace) {
  Made made;
  RawLaunch& launch = made.raw.launches[0];
  launch.grid = {8, 2, 1};
  launch.cluster = {2, 1, 1};
  launch.only_cluster = {{3, 1, 0}};
  made.AddWarp({96});
  made.AddWarp({96});
  const trace::Model model = made.Model();
  EXPECT_THAT(model.warps.cta_x, ::testing::ElementsAre(6, 7));
  EXPECT_THAT(model.warps.cta_y, ::testing::ElementsAre(1, 1));
  EXPECT_EQ(model.launches[0].completeness, trace::Completeness::kComplete);
  EXPECT_EQ(model.launches[0].only_cluster, launch.only_cluster);
}

TEST(ReadRun, AWarpThatWasNotRecordedIsMissing) {
  Made made;
  made.raw.launches[0].grid = {2, 1, 1};
  made.AddWarp({96});
  made.file.resize(128);
  made.raw.launches[0].bytes = 128;
  const trace::Model model = made.Model();
  EXPECT_EQ(model.warps.size(), 1u);
  EXPECT_EQ(model.counters.warps_missing, 1u);
}

TEST(ReadRun, ReplaysOfAGraph) {
  Made made;
  made.raw.launches[0].replay = {{2, 7}};
  made.AddWarp({96});
  const trace::Model model = made.Model();
  EXPECT_EQ(model.launches[0].graph, 2u);
  EXPECT_EQ(model.launches[0].replay, 7u);
}

}  // namespace
}  // namespace iket::foreign
