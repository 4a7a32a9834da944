#include "export/formats.h"

#include <fmt/format.h>

#include <utility>

#include "export/chrome_json.h"
#include "export/csv.h"
#include "export/gzip.h"
#include "export/page.h"
#include "export/perfetto.h"
#include "export/sqlite.h"
#include "export/trace_json.h"

namespace iket::exporter {
namespace {

struct Format {
  std::string_view name;
  std::string_view help;
  Result<void> (*write)(const trace::Model&, const Sink&, const WriteOptions&);
};

Result<void> Pftrace(const trace::Model& model, const Sink& sink, const WriteOptions& options) {
  return WritePerfetto(model, sink,
                       {.range_cycles = options.range_cycles, .progress = options.progress});
}
Result<void> TraceJson(const trace::Model& model, const Sink& sink, const WriteOptions& options) {
  return WriteTraceJson(model, sink, options.progress);
}
Result<void> ChromeJson(const trace::Model& model, const Sink& sink, const WriteOptions& options) {
  return WriteChromeJson(model, sink, options.progress);
}
Result<void> Csv(const trace::Model& model, const Sink& sink, const WriteOptions& options) {
  return WriteCsv(model, sink, options.progress);
}
Result<void> Sqlite(const trace::Model& model, const Sink& sink, const WriteOptions& options) {
  return WriteSqlite(model, sink, options.folder, options.progress);
}
Result<void> Html(const trace::Model& model, const Sink& sink, const WriteOptions& options) {
  PageOptions page = options.page;
  page.progress = options.progress;
  return WritePage(model, sink, page);
}
// Any of them through gzip.
template <auto kWrite>
Result<void> Compressed(const trace::Model& model, const Sink& sink, const WriteOptions& options) {
  GzipStream gzip(sink);
  const Sink compress = [&gzip](std::string_view bytes) { return gzip.Write(bytes); };
  if (auto written = kWrite(model, compress, options); !written) return written;
  return gzip.Finish();
}

constexpr Format kFormats[] = {
    {"pftrace", "for ui.perfetto.dev", Pftrace},
    {"pftrace.gz", "the same, a fifth of the size", Compressed<Pftrace>},
    {"trace.json", "the schema of run-iket", TraceJson},
    {"trace.json.gz", "the same, compressed", Compressed<TraceJson>},
    {"chrome.json", "the Trace Event Format, for chrome://tracing and others", ChromeJson},
    {"chrome.json.gz", "the same, compressed", Compressed<ChromeJson>},
    {"csv", "a row for each event, for pandas", Csv},
    {"csv.gz", "the same, compressed", Compressed<Csv>},
    {"sqlite", "tables and views, for SQL", Sqlite},
    {"html", "a page that shows it, offline", Html},
};

}  // namespace

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  return names;
}

std::string FormatHelp() {
  std::string help;
  for (const Format& format : kFormats) {
    help += fmt::format("{}{}: {}", help.empty() ? "" : "; ", format.name, format.help);
  }
  return help;
}

std::optional<std::string> FormatOfName(std::string_view path) {
  constexpr std::pair<std::string_view, std::string_view> kEndings[] = {
      {".pftrace", "pftrace"},
      {".chrome.json", "chrome.json"},
      {".chrome.json.gz", "chrome.json.gz"},
      {".csv", "csv"},
      {".csv.gz", "csv.gz"},
      {".sqlite", "sqlite"},
      {".html", "html"},
      {".json", "trace.json"},
      {".json.gz", "trace.json.gz"},
      {".gz", "pftrace.gz"},  // behind the others: the first that fits is taken
  };
  for (const auto& [ending, format] : kEndings) {
    if (path.ends_with(ending)) return std::string(format);
  }
  return std::nullopt;
}

bool HasRangeCycles(std::string_view format) { return format.starts_with("pftrace"); }

Result<void> WriteAs(std::string_view name, const trace::Model& model, const Sink& sink,
                     const WriteOptions& options) {
  for (const Format& format : kFormats) {
    if (format.name == name) return format.write(model, sink, options);
  }
  return Fail(ErrorKind::kUsage, "export: there is no format '{}'", name);
}

}  // namespace iket::exporter
