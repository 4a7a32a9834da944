// sqlite_check.h: is a file the database of sqlite.h?
//
// Its pages are whole, tables, indices and views are ours to the letter, rows refer to rows that
// exist, things end after they begin, and what an event carries belongs to an event. A database
// with other tables or views is not asked further: what it computes is somebody else's.
// Private to check.cpp and its tests.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "export/check.h"

namespace iket::exporter {

bool LooksLikeSqlite(std::span<const std::byte> untrusted);

struct SqliteContents {
  Counts counts;
  bool simulated = false;
};

// Adds to `faults`. Cost: a pass over the pages and one over each table.
SqliteContents CheckSqlite(std::span<const std::byte> untrusted, Faults& faults);

}  // namespace iket::exporter
