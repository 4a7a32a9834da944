#include "export/sqlite_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

#include "export/sqlite_database.h"
#include "export/sqlite_schema.h"

namespace iket::exporter {
namespace {

constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr size_t kMostWords = 200;  // of what SQLite says

using Schema = std::map<std::string, std::string>;  // by type and name

// Makes opening a foreign file safe: nothing in it runs but plain queries.
void Confine(sqlite3* database) {
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, 64 << 20);
}

Database InMemory() {
  sqlite3* opened = nullptr;
  sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  return Database(opened);
}

Schema SchemaOf(sqlite3* database) {
  Schema schema;
  Statement all(database, "SELECT type || ' ' || name, sql FROM sqlite_schema");
  while (all.NextRow()) schema[all.Text(0)] = all.Text(1);
  return schema;
}

Schema OurSchema() {
  const Database database = InMemory();
  for (const std::string_view sql : {kSqliteTables, kSqliteIndices}) {
    sqlite3_exec(database.get(), std::string(sql).c_str(), nullptr, nullptr, nullptr);
  }
  return SchemaOf(database.get());
}

struct Rule {
  std::string_view faulty;  // counts the rows that break it
  std::string_view kind;
  std::string_view text;
};
constexpr Rule kRules[] = {
    {"SELECT count(*) FROM warp WHERE end_ns < start_ns OR end_cycles < start_cycles", "time",
     "warps end before they begin"},
    {"SELECT count(*) FROM slice WHERE end_ns < start_ns OR end_cycles < start_cycles", "time",
     "slices end before they begin"},
    {"SELECT count(*) FROM launch WHERE end_ns < start_ns", "time",
     "launches end before they begin"},
    {"SELECT count(*) FROM slice WHERE closed != (end_event IS NOT NULL)", "row",
     "slices are closed without an event, or have one and are not"},
    {"SELECT count(*) FROM launch l WHERE warps != (SELECT count(*) FROM warp WHERE launch = l.id)",
     "row", "launches have another number of warps than they say"},
    {"SELECT count(*) FROM value v WHERE NOT EXISTS (SELECT 1 FROM instant WHERE event = v.event) "
     "AND NOT EXISTS (SELECT 1 FROM slice WHERE start_event = v.event) AND NOT EXISTS "
     "(SELECT 1 FROM slice WHERE end_event = v.event)",
     "row", "values belong to no event"},
    {"SELECT abs(count(*) - 1) FROM capture", "row", "rows of capture are too many or too few"},
};

class Check {
 public:
  Check(sqlite3* database, Faults& faults) : database_(database), faults_(faults) {}

  bool PagesAreWhole() {
    Statement check(database_, "PRAGMA integrity_check(20)");
    bool any = false, whole = true;
    while (check.NextRow()) {
      any = true;
      const std::string said = check.Text(0);
      if (said == "ok") continue;
      whole = false;
      Add("database", said.substr(0, kMostWords));
    }
    if (!any) Add("database", sqlite3_errmsg(database_));
    return any && whole;
  }
  bool IsOurs() {
    const int64_t application = Number("PRAGMA application_id");
    const int64_t version = Number("PRAGMA user_version");
    if (application != kSqliteApplication) {
      Add("version", "not a database of iket: its application_id is another");
      return false;
    }
    if (version != kSqliteVersion) {
      Add("version", fmt::format("version {} of the schema; this iket knows version {}", version,
                                 kSqliteVersion));
      return false;
    }
    const Schema found = SchemaOf(database_), wanted = OurSchema();
    for (const auto& [name, sql] : wanted) {
      const auto at = found.find(name);
      if (at == found.end()) Add("schema", fmt::format("{} is missing", name));
      if (at != found.end() && at->second != sql) Add("schema", fmt::format("{} is another", name));
    }
    for (const auto& [name, sql] : found) {
      if (!wanted.contains(name)) {
        Add("schema", fmt::format("{} is not ours", name.substr(0, kMostWords)));
      }
    }
    return found == wanted;
  }
  void RowsFitTogether() {
    Statement keys(database_, "PRAGMA foreign_key_check");
    while (keys.NextRow()) {
      Add("row", fmt::format("row {} of {} refers to a row of {} that does not exist", keys.Text(1),
                             keys.Text(0), keys.Text(2)));
      if (faults_.count() > Faults::kMostFaults) break;
    }
    for (const Rule& rule : kRules) {
      const int64_t count = Number(rule.faulty);
      if (count != 0) Add(rule.kind, fmt::format("{} {}", count, rule.text));
    }
  }
  int64_t Number(std::string_view sql) {
    Statement statement(database_, sql);
    if (statement.NextRow()) return statement.Integer(0);
    Add("database", sqlite3_errmsg(database_));
    return 0;
  }

 private:
  void Add(std::string_view kind, std::string text) { faults_.Add(0, kind, std::move(text)); }

  sqlite3* const database_;
  Faults& faults_;
};

}  // namespace

bool LooksLikeSqlite(std::span<const std::byte> untrusted) {
  return untrusted.size() >= kMagic.size() &&
         std::memcmp(untrusted.data(), kMagic.data(), kMagic.size()) == 0;
}

SqliteContents CheckSqlite(std::span<const std::byte> untrusted, Faults& faults) {
  const Database database = InMemory();
  Confine(database.get());
  // Read-only: nothing is written to the bytes, although the call's type says that it could.
  auto* const bytes = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(untrusted.data()));
  const auto size = static_cast<sqlite3_int64>(untrusted.size());
  if (sqlite3_deserialize(database.get(), "main", bytes, size, size, SQLITE_DESERIALIZE_READONLY) !=
      SQLITE_OK) {
    faults.Add(0, "database", sqlite3_errmsg(database.get()));
    return {};
  }
  Check check(database.get(), faults);
  // Other tables come first: what follows must not run over those of somebody else.
  if (!check.IsOurs() || !check.PagesAreWhole()) return {};
  check.RowsFitTogether();
  const auto count = [&](std::string_view table) {
    return static_cast<uint64_t>(check.Number(fmt::format("SELECT count(*) FROM {}", table)));
  };
  return {.counts = {{"launch", count("launch")},
                     {"warp", count("warp")},
                     {"range", count("slice")},
                     {"marker", count("instant")}},
          .simulated = check.Number("SELECT simulated FROM capture LIMIT 1") != 0};
}

}  // namespace iket::exporter
