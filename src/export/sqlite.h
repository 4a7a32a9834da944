// sqlite.h: writes a model as a database of SQLite, for questions in SQL.
//
// Tables and views are those of sqlite_schema.h; docs/export.md has them with example queries.
// Everything is written in one transaction. Integers are signed 64 bits there: a payload of 2^63 or
// more is text, as are NaN and its like. Text is UTF-8 without zeros; names are whole.
//
// The database is made in a file without a name in `folder`, which takes as much room as the result
// and is gone whatever ends the process, and is then given to the sink. Memory is bounded.
#pragma once

#include <string>

#include "export/sink.h"
#include "trace/model.h"

namespace iket::exporter {

// `folder`: "" the system's folder for temporary files. `progress` may be empty; told the share of
// warps that were written. Errors (kSystem): the folder cannot be written to, or is full; the
// sink's. The bytes are a function of the model and the version of SQLite.
Result<void> WriteSqlite(const trace::Model& model, const Sink& sink, const std::string& folder,
                         const Progress& progress = {});

}  // namespace iket::exporter
