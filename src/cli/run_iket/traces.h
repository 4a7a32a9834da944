// traces.h: the files that run-iket makes of what a process recorded.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/export.h"
#include "cli/run_iket/stats.h"
#include "trace/model.h"

namespace iket::cli::run_iket {

struct Formats {
  bool perfetto = false;  // <stem>.pftrace
  bool json = false;      // <stem>.trace.json
  bool html = false;      // <stem>.html and the <stem>.pftrace.gz that it opens
};
// `choice`: perfetto, json, html, all or none.
Formats FormatsOf(std::string_view choice);

// `stem` is the path without its ending, iket_pid_0x<pid>. Says each file, and tells `written`;
// ends at the first error.
Result<void> WriteTraces(const trace::Model& model, const std::string& stem, Formats formats,
                         Stats& stats, const std::function<void(const Exported&)>& written);

}  // namespace iket::cli::run_iket
