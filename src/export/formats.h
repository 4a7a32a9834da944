// formats.h: the formats that a model can be written in, by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "export/page.h"
#include "export/sink.h"
#include "trace/model.h"

namespace iket::exporter {

// Names, which are also the extensions of the files: "pftrace", ...
std::vector<std::string> FormatNames();
// One line for each, for --help.
std::string FormatHelp();

// The format that a file's name asks for by how it ends: its own extension, other .json and
// .json.gz for those of trace.json, any other .gz for pftrace.gz. Nothing where the ending says
// nothing.
std::optional<std::string> FormatOfName(std::string_view path);
// True if WriteOptions::range_cycles means something for `format`.
bool HasRangeCycles(std::string_view format);

struct WriteOptions {
  bool range_cycles = false;  // pftrace: PerfettoOptions::range_cycles
  std::string folder = {};    // sqlite: where it may make a file of its own; "" the system's
  PageOptions page = {};      // html; its progress is the one below
  Progress progress = {};
};

// `format` must be one of FormatNames(). Fails only when the sink fails or memory is short.
Result<void> WriteAs(std::string_view format, const trace::Model& model, const Sink& sink,
                     const WriteOptions& options = {});

}  // namespace iket::exporter
