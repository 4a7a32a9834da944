// formats.h: the formats that a model can be written in, by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "export/sink.h"
#include "trace/model.h"

namespace iket::exporter {

// Names, which are also the extensions of the files: "pftrace", ...
std::vector<std::string> FormatNames();
// One line for each, for --help.
std::string FormatHelp();

struct WriteOptions {
  bool range_cycles = false;  // pftrace: PerfettoOptions::range_cycles
  Progress progress = {};
};

// `format` must be one of FormatNames(). Fails only when the sink fails or memory is short.
Result<void> WriteAs(std::string_view format, const trace::Model& model, const Sink& sink,
                     const WriteOptions& options = {});

}  // namespace iket::exporter
