// check.h: what `iket check` finds out about one file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace iket::cli {

struct Fault {
  std::string kind;  // a key: "chunks_damaged"
  std::string text;
  // Where: in the file, or in what a compressed one unpacks to; of kind "gzip" always in the file.
  std::optional<uint64_t> offset = {};
};

struct Checked {
  std::string file;
  std::string format;  // "iketcap", "pftrace", "trace.json.gz", ...; "unknown"
  // How much of what is in it, as `iket check` says it: {"chunk", 12}.
  std::vector<std::pair<std::string_view, uint64_t>> counts = {};
  bool simulated = false;
  std::vector<Fault> faults = {};
  uint64_t more_faults = 0;  // that are not in the list
};

// A capture, or a run of run-iket's.
Result<Checked> CheckCapture(const std::string& path);
// .pftrace and .trace.json, plain or compressed.
Result<Checked> CheckExportFile(const std::string& path);

}  // namespace iket::cli
