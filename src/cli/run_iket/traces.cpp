#include "cli/run_iket/traces.h"

#include <filesystem>

#include "cli/run_iket/perfetto_page.h"
#include "cli/run_iket/run_iket.h"
#include "cli/text.h"
#include "export/output_file.h"

namespace iket::cli::run_iket {
namespace {

Result<Exported> WritePage(const std::string& path, const std::string& trace) {
  auto file = exporter::OutputFile::Create(path);
  if (!file) return tl::unexpected(file.error());
  const std::string page = PerfettoPage(std::filesystem::path(trace).filename().string());
  if (auto written = file->Write(page); !written) return tl::unexpected(written.error());
  if (auto committed = file->Commit(); !committed) return tl::unexpected(committed.error());
  return Exported{path, file->bytes_written()};
}

}  // namespace

Formats FormatsOf(std::string_view choice) {
  const bool all = choice == "all";
  return {.perfetto = all || choice == "perfetto",
          .json = all || choice == "json",
          .html = all || choice == "html"};
}

Result<void> WriteTraces(const trace::Model& model, const std::string& stem, Formats formats,
                         Stats& stats, const std::function<void(const Exported&)>& written) {
  const auto write = [&](Stats::Part part, const char* what, const auto& make) -> Result<void> {
    auto timer = stats.Measure(part);
    const Result<Exported> file = make();
    if (!file) {
      timer.Failed();
      return tl::unexpected(file.error());
    }
    Say(fmt::format("Dumped {} to {}", what, file->path));
    written(*file);
    return {};
  };
  const auto as = [&](const char* format) {
    return [&, format] { return ExportAs(format, model, stem + "." + format); };
  };
  Result<void> done;
  if (formats.perfetto) done = write(Stats::kPerfetto, "perfetto trace", as("pftrace"));
  if (done && formats.json) done = write(Stats::kJson, "json trace", as("trace.json"));
  if (!done || !formats.html) return done;
  done = write(Stats::kOther, "compressed trace", as("pftrace.gz"));
  if (!done) return done;
  const std::string page = stem + ".html";
  done = write(Stats::kOther, "perfetto HTML viewer",
               [&] { return WritePage(page, stem + ".pftrace.gz"); });
  if (!done) return done;
  const std::filesystem::path path(page);
  Say(
      fmt::format("To view: open it and choose the compressed trace, or python3 -m http.server "
                  "8080 --directory {}, then http://localhost:8080/{}; it needs ui.perfetto.dev",
                  ShellWord(path.parent_path().string()), path.filename().string()));
  return {};
}

}  // namespace iket::cli::run_iket
