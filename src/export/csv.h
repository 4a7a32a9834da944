// csv.h: writes a model as a table of text, a row for everything that happened: for pandas and
// spreadsheets.
//
// The first line names the columns (kCsvColumns; docs/export.md says what each means). Then come
// facts of the capture, what is wrong with it, host marks, and launch by launch its own row and
// its warps, each followed by its ranges and marks in the order in which it recorded them. What is
// not known, or has no meaning in a row, is empty.
//
// Quoting is that of RFC 4180, lines end in a line feed. Text is UTF-8 and has no zeros: what was
// none is U+FFFD; of names above 1 KiB the beginning stands there.
//
// Streamed: memory is that of the sink's block. The bytes are a function of the model.
#pragma once

#include <array>
#include <string_view>

#include "export/sink.h"
#include "trace/model.h"

namespace iket::exporter {

inline constexpr std::array<std::string_view, 31> kCsvColumns = {"process",     "launch",
                                                                 "kernel",      "grid_id",
                                                                 "cluster_x",   "cluster_y",
                                                                 "cluster_z",   "cta_x",
                                                                 "cta_y",       "cta_z",
                                                                 "warp",        "sm",
                                                                 "slot",        "kind",
                                                                 "name",        "category",
                                                                 "group",       "lane",
                                                                 "depth",       "state",
                                                                 "start_ns",    "end_ns",
                                                                 "duration_ns", "start_cycles",
                                                                 "end_cycles",  "duration_cycles",
                                                                 "event",       "payload",
                                                                 "values",      "end_payload",
                                                                 "end_values"};

// `progress` may be empty; told the share of warps that were written. Fails only when the sink
// fails.
Result<void> WriteCsv(const trace::Model& model, const Sink& sink, const Progress& progress = {});

}  // namespace iket::exporter
