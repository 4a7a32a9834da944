// sqlite_database.h: a database and its statements as objects. Private to the room.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

namespace iket::exporter {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

// Nothing in it where the text is no statement: sqlite3_errmsg() says why.
class Statement {
 public:
  Statement(sqlite3* database, std::string_view sql) {
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
    statement_.reset(statement);
  }
  sqlite3_stmt* get() const { return statement_.get(); }
  explicit operator bool() const { return statement_ != nullptr; }

  bool NextRow() { return statement_ && sqlite3_step(statement_.get()) == SQLITE_ROW; }
  int64_t Integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  std::string Text(int column) const {
    const auto* const text = sqlite3_column_text(statement_.get(), column);
    if (text == nullptr) return {};
    return {reinterpret_cast<const char*>(text),
            static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
  }

 private:
  std::unique_ptr<sqlite3_stmt, FinalizeStatement> statement_;
};

}  // namespace iket::exporter
