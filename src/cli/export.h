// export.h: writes a loaded capture in another format.
#pragma once

#include <string>

#include "base/error.h"
#include "export/formats.h"
#include "trace/model.h"

namespace iket::cli {

struct Exported {
  std::string path;
  uint64_t bytes = 0;
};

// `path` with the capture's extension replaced by `.format`.
std::string ExportPath(const std::string& capture_path, const std::string& format);

// Writes `model` in one of exporter::FormatNames(), with a progress bar and, on standard error,
// what the writer has to say of it; folder, note and progress are set here. The file appears whole
// or not at all; "-" is standard output.
Result<Exported> ExportAs(const std::string& format, const trace::Model& model,
                          const std::string& path, exporter::WriteOptions options = {});

}  // namespace iket::cli
