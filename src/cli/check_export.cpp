// iket check, of an exported file.
#include "base/mapped_file.h"
#include "cli/check.h"
#include "cli/terminal.h"
#include "export/check.h"

namespace iket::cli {
namespace {

std::string FormatText(const exporter::CheckedExport& found) {
  if (found.kind.empty()) return found.compressed ? "gzip" : "unknown";
  return std::string(found.kind) + (found.compressed ? ".gz" : "");
}

}  // namespace

Result<Checked> CheckExportFile(const std::string& path) {
  const auto file = MappedFile::Open(path, "file");
  if (!file) return tl::unexpected(file.error());
  Progress progress("checking " + path);
  const auto found = exporter::CheckExport(file->bytes(), path, progress.Callback());
  if (!found) return tl::unexpected(found.error());
  Checked checked{.file = path,
                  .format = FormatText(*found),
                  .counts = found->counts,
                  .simulated = found->simulated,
                  .more_faults = found->faults.count() - found->faults.first().size()};
  for (const auto& fault : found->faults.first()) {
    checked.faults.push_back({fault.kind, fault.text, fault.offset});
  }
  return checked;
}

}  // namespace iket::cli
