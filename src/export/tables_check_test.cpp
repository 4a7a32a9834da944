// What is said of each way to damage a .csv, a .sqlite and a .chrome.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

#include "export/check.h"
#include "export/formats.h"
#include "export/sqlite_database.h"
#include "export/synthetic_model.h"

namespace iket::exporter {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Sound(std::string_view format) {
  std::string file;
  const auto written = WriteAs(format, MakeSyntheticModel({}), [&](std::string_view block) {
    file += block;
    return Result<void>();
  });
  EXPECT_TRUE(written) << written.error().message;
  return file;
}

std::vector<Faults::Fault> FaultsOf(const std::string& file, const std::string& name = "test") {
  const auto checked = CheckExport(std::as_bytes(std::span(file)), name);
  EXPECT_TRUE(checked) << checked.error().message;
  return checked ? checked->faults.first() : std::vector<Faults::Fault>();
}

auto Says(std::string_view kind, std::string_view text) {
  return Contains(AllOf(Field(&Faults::Fault::kind, kind),
                        Field(&Faults::Fault::text, HasSubstr(std::string(text)))));
}

std::string Replaced(std::string text, std::string_view old, std::string_view with) {
  const size_t at = text.find(old);
  EXPECT_NE(at, text.npos) << old;
  return at == text.npos ? text : text.replace(at, old.size(), with);
}

TEST(CheckCsv, Damage) {
  const std::string sound = Sound("csv");
  const auto after = [&](std::string_view old, std::string_view with) {
    return FaultsOf(Replaced(sound, old, with));
  };
  EXPECT_THAT(after(",warp,sm,", ",warp,SM,"), Says("row", "columns are not those"));
  EXPECT_THAT(after(",fact,", ",fact"), Says("row", "30 cells"));
  EXPECT_THAT(after(",fact,", ",guess,"), Says("kind", "a kind that iket does not write"));
  EXPECT_THAT(after("\n4711,", "\nabc,"), Says("cell", "process is no whole number"));
  EXPECT_THAT(after(",fact,host", ",fact,h\xff"), Says("text", "not UTF-8"));
  EXPECT_THAT(after(",fact,host", ",fact,h\"ost"), Says("quoting", "a quote inside"));
  EXPECT_THAT(after(",fact,host", ",fact,\"h\"ost"), Says("quoting", "behind a quoted cell"));
  EXPECT_THAT(after("{\"\"payload\"\":", "{\"\"payload\"\""), Says("cell", "no JSON object"));
  EXPECT_THAT(FaultsOf(sound.substr(0, sound.size() - 3)), Says("cut", "ends inside of row"));
  const std::string head = sound.substr(0, sound.find('\n') + 1);
  const auto row = [&](std::string_view times) {
    return FaultsOf(head + fmt::format("1,,k,5,,,,,,,,0,,range,x,,,,0,,{},0,,,,\n", times));
  };
  EXPECT_THAT(row("5,9,4,10,20,10"), IsEmpty());
  EXPECT_THAT(row("5,9,5,10,20,10"), Says("time", "duration_ns is not"));
  EXPECT_THAT(row("9,5,-4,10,20,10"), Says("time", "ends before it begins, in ns"));
  EXPECT_THAT(row("5,9,4,10,20,"), Says("cell", "duration_cycles is missing"));
  EXPECT_THAT(FaultsOf("x,y\n", "a.csv"), Says("row", "2 cells"));
}

TEST(CheckChromeJson, Damage) {
  const auto events = [](std::string_view all) {
    return FaultsOf(fmt::format(R"({{"traceEvents":[{}]}})", all));
  };
  const std::string outer = R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2},)";
  EXPECT_THAT(events(outer + R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":1})"), IsEmpty());
  EXPECT_THAT(events(outer + R"({"ph":"X","name":"b","pid":1,"tid":2,"ts":2,"dur":2})"), IsEmpty());
  EXPECT_THAT(events(outer + R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":1.001})"),
              Says("nesting", "thread 1 of process 1 cross at 2000 ns"));
  EXPECT_THAT(events(R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":1})"),
              Says("time", "without dur"));
  EXPECT_THAT(events(R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":-1})"),
              Says("time", "ends before it begins"));
  EXPECT_THAT(events(R"({"ph":"i","name":"a","pid":1,"tid":1})"), Says("time", "without a time"));
  EXPECT_THAT(events(R"({"ph":"i","pid":1,"tid":1,"ts":1})"), Says("key", "without a name"));
  EXPECT_THAT(events(R"({"ph":"?","pid":1,"tid":1,"ts":1})"), Says("phase", "none of the format"));
  EXPECT_THAT(events(R"({"ph":"s","name":"a","id":7,"pid":1,"tid":1,"ts":1})"),
              Says("flow", "arrow 7 has 1 beginnings and 0 ends"));
  EXPECT_THAT(events("7"), Says("type", "among the events"));
  EXPECT_THAT(FaultsOf(R"({"otherData":{"tool":"iket"},"traceEvents":[]})"),
              Says("key", "lacks origin_ns"));
  EXPECT_THAT(FaultsOf(R"({"otherData":{}})"), Says("key", "traceEvents is missing"));
  EXPECT_THAT(FaultsOf(Replaced(Sound("chrome.json"), "thread_name", "thread_nome")),
              Says("track", "which has no name"));
}

// The sound database after some SQL.
std::string After(const std::string& sql) {
  std::string file = Sound("sqlite");
  sqlite3* opened = nullptr;
  sqlite3_open(":memory:", &opened);
  const Database database(opened);
  auto* const bytes = static_cast<unsigned char*>(sqlite3_malloc64(file.size()));
  std::ranges::copy(file, bytes);
  const auto size = static_cast<sqlite3_int64>(file.size());
  sqlite3_deserialize(opened, "main", bytes, size, size,
                      SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
  EXPECT_EQ(sqlite3_exec(opened, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(opened);
  sqlite3_int64 length = 0;
  unsigned char* const made = sqlite3_serialize(opened, "main", &length, 0);
  file.assign(reinterpret_cast<const char*>(made), static_cast<size_t>(length));
  sqlite3_free(made);
  return file;
}

TEST(CheckSqlite, Damage) {
  EXPECT_THAT(FaultsOf(After("VACUUM")), IsEmpty());
  const auto after = [](const std::string& sql) { return FaultsOf(After(sql)); };
  EXPECT_THAT(after("PRAGMA application_id = 7"), Says("version", "not a database of iket"));
  EXPECT_THAT(after("PRAGMA user_version = 99"), Says("version", "version 99"));
  EXPECT_THAT(after("CREATE TABLE mine (x)"), Says("schema", "table mine is not ours"));
  EXPECT_THAT(after("DROP VIEW slices; CREATE VIEW slices AS SELECT 1"),
              Says("schema", "view slices is another"));
  EXPECT_THAT(after("DROP INDEX slice_warp"), Says("schema", "index slice_warp is missing"));
  EXPECT_THAT(after("UPDATE warp SET end_ns = start_ns - 1 WHERE id = 3"),
              Says("time", "1 warps end before"));
  EXPECT_THAT(after("UPDATE slice SET end_cycles = 0 WHERE id = 3 AND start_cycles > 0"),
              Says("time", "1 slices end before"));
  EXPECT_THAT(after("UPDATE slice SET warp = 100000 WHERE id = 3"), Says("row", "row of warp"));
  EXPECT_THAT(after("UPDATE launch SET warps = warps + 1 WHERE id = 0"),
              Says("row", "another number of warps"));
  EXPECT_THAT(after("DELETE FROM capture"), Says("row", "rows of capture"));
  EXPECT_THAT(after("INSERT INTO value VALUES (1000000, 0, 'x', 'u32', 1)"),
              Says("row", "values belong to no event"));
  const std::string sound = Sound("sqlite");
  EXPECT_THAT(FaultsOf(sound.substr(0, sound.size() / 2)), Says("database", ""));
}

}  // namespace
}  // namespace iket::exporter
