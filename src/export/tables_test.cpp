// .csv, .sqlite and .chrome.json of small models: golden rows, hostile text, full disks.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "export/check.h"
#include "export/chrome_json.h"
#include "export/csv.h"
#include "export/formats.h"
#include "export/synthetic_model.h"

namespace iket::exporter {
namespace {

using testing::HasSubstr;

// A launch of one warp with a range of payload 7 and a mark of two values.
trace::Model Small(std::string name) {
  trace::Model model;
  const auto text = [&model](std::string string) {
    model.strings.push_back(std::move(string));
    return static_cast<trace::StringId>(model.strings.size() - 1);
  };
  model.process_id = 42;
  model.origin_ns = 1000;
  model.devices.push_back({.name = text("GPU"), .sm_count = 1, .places = {}, .clock_count = 1});
  model.clocks.push_back({.knots = {{.cycles = 0, .ns = 0, .slope = 0.5}}, .pairs = 2});
  model.kernels.push_back(
      {.mangled = text("_Zk"), .demangled = text("k(int)"), .short_name = text("k")});
  const trace::StringId id = text(std::move(name));
  model.declarations = {
      {.id = 1, .kind = trace::EventKind::kPush, .payload = trace::PayloadType::kU32, .name = id},
      {.id = 2, .kind = trace::EventKind::kPop},
      {.id = 3,
       .kind = trace::EventKind::kMark,
       .payload = trace::PayloadType::kS32,
       .name = id,
       .payload_name = text("m"),
       .more = {{.name = text("n"), .type = trace::PayloadType::kF32}}}};
  model.launches.push_back({.kernel = 0,
                            .grid_id = 5,
                            .sequence = 3,
                            .grid = {2, 1, 1},
                            .block = {32, 1, 1},
                            .cluster = {2, 1, 1},
                            .completeness = trace::Completeness::kComplete,
                            .warps_expected = 1,
                            .warp_count = 1,
                            .events_kept = 3,
                            .first_ns = 0,
                            .last_ns = 50});
  trace::Warps& warps = model.warps;
  warps.launch = {0}, warps.cta_x = {1}, warps.cta_y = {0}, warps.cta_z = {0}, warps.index = {0};
  warps.tid_x = {0}, warps.tid_y = {0}, warps.tid_z = {0}, warps.sm = {0}, warps.slot = {9};
  warps.flags = {0}, warps.begin_cycles = {0}, warps.end_cycles = {100}, warps.begin_ns = {0};
  warps.end_ns = {50}, warps.first_event = {0}, warps.event_count = {3}, warps.first_range = {0};
  warps.range_count = {1}, warps.first_mark = {0}, warps.mark_count = {1};
  model.events.warp = {0, 0, 0}, model.events.declaration = {0, 2, 1};
  model.events.cycles = {10, 21, 40}, model.events.payload = {7, 0xffffffff, 0};
  model.values.event = {1}, model.values.index = {0}, model.values.value = {0x3fc00000};  // 1.5
  trace::Ranges& ranges = model.ranges;
  ranges.warp = {0}, ranges.declaration = {0}, ranges.begin_cycles = {10}, ranges.end_cycles = {40};
  ranges.payload = {7}, ranges.depth = {0}, ranges.flags = {0}, ranges.begin_event = {0};
  ranges.end_event = {2}, model.marks.event = {1};
  return model;
}

std::string Export(std::string_view format, const trace::Model& model) {
  std::string file;
  const auto written = WriteAs(format, model, [&](std::string_view block) {
    file += block;
    return Result<void>();
  });
  EXPECT_TRUE(written) << written.error().message;
  return file;
}

TEST(Csv, GoldenRows) {
  EXPECT_EQ(Export("csv", Small("load, \"a\"")),
            fmt::format("{}", fmt::join(kCsvColumns, ",")) + R"(
42,,,,,,,,,,,,,fact,origin_ns,,,,,,,,,,,,,1000,,,
42,,,,,,,,,,,,,fact,host,,,,,,,,,,,,,,,,
42,,,,,,,,,,,,,fact,command,,,,,,,,,,,,,,,,
42,,,,,,,,,,,,,fact,device,,,,,,,,,,,,,GPU,,,
42,3,k,5,,,,,,,,,,launch,"#3 k<<<2x1x1, 32x1x1>>>",,,,,complete,0,50,50,,,,,,,,
42,3,k,5,0,0,0,1,0,0,0,0,9,warp,,,,,,,0,50,50,0,100,100,,,,,
42,3,k,5,0,0,0,1,0,0,0,0,9,range,"load, ""a""",,,,0,,5,20,15,10,40,30,0,7,"{""payload"":7}",,
42,3,k,5,0,0,0,1,0,0,0,0,9,mark,"load, ""a""",,,,,,10,,,21,,,1,-1,"{""m"":-1,""n"":1.5}",,
)");
}

TEST(ChromeJson, GoldenEvents) {
  const std::string file = Export("chrome.json", Small("load"));
  for (
      const char* event : {
          R"("otherData":{"tool":"iket","origin_ns":"1000","process_id":42,)",
          R"({"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"#3 k<<<2x1x1, 32x1x1>>>"}})",
          R"("name":"thread_name","args":{"name":"SM 0 | CTA (1, 0, 0) | warp 0"}})",
          R"({"ph":"X","name":"load","pid":1,)",
          R"("ts":0.005,"dur":0.015,"args":{"payload":7,"cycles":30}})",
          R"("ts":0.010,"s":"t","args":{"m":-1,"n":1.5}})",
      }) {
    EXPECT_THAT(file, HasSubstr(event));
  }
}

TEST(Tables, AnyTextIsSound) {
  for (const std::string& name :
       {std::string("\xff\xfe,\"\r\n"), std::string("a\0b", 3), std::string(1 << 20, 'x'),
        std::string(3000, '\xc3'), std::string("</script>"), std::string()}) {
    for (const char* format : {"csv", "sqlite", "chrome.json"}) {
      const std::string file = Export(format, Small(name));
      const auto checked = CheckExport(std::as_bytes(std::span(file)), "test");
      ASSERT_TRUE(checked);
      EXPECT_EQ(checked->kind, format);
      EXPECT_EQ(checked->faults.count(), 0u) << format << checked->faults.first().front().text;
      // A long name is not in each row.
      EXPECT_LT(file.size(), size_t{3} << 20) << format;
    }
  }
}

TEST(Tables, TheBytesAreAFunctionOfTheModel) {
  const trace::Model model = MakeSyntheticModel({});
  for (const char* format : {"csv", "sqlite", "chrome.json"}) {
    EXPECT_EQ(Export(format, model), Export(format, model)) << format;
  }
}

TEST(Sqlite, LeavesNothingBesideItself) {
  const std::filesystem::path folder = testing::TempDir() + "/sqlite_test";
  std::filesystem::create_directory(folder);
  const auto sink = [](std::string_view) { return Result<void>(); };
  EXPECT_TRUE(WriteAs("sqlite", Small("load"), sink, {.folder = folder.string()}));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  const auto nowhere = WriteAs("sqlite", Small("load"), sink, {.folder = "/nonexistent"});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().kind, ErrorKind::kSystem);
  const auto full = WriteAs("sqlite", Small("load"), [](std::string_view) -> Result<void> {
    return Fail(ErrorKind::kSystem, "full");
  });
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message, "full");
}

}  // namespace
}  // namespace iket::exporter
