#include "cli/export.h"

#include <filesystem>
#include <memory>
#include <vector>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "export/formats.h"
#include "export/json_writer.h"
#include "export/output_file.h"

namespace iket::cli {
namespace {

struct Options {
  std::vector<std::string> captures;
  std::string format = "pftrace";
  std::string output;
  bool range_cycles = false;
  bool json = false;
};

struct Line {
  std::string capture;
  Exported file;
  uint64_t warps = 0;
  uint64_t events = 0;
  bool simulated = false;
};

void PrintLines(const std::vector<Line>& lines, bool as_json) {
  if (!as_json) {
    for (const Line& line : lines) {
      Print(fmt::format("{}: {}, {}, {}{}\n", Printable(line.file.path), Bytes(line.file.bytes),
                        Counted(line.warps, "warp"), Counted(line.events, "event"),
                        line.simulated ? ", of a software device: no measurement" : ""));
    }
    return;
  }
  exporter::JsonWriter json;
  {
    auto object = json.Object();
    auto files = json.Array("files");
    for (const Line& line : lines) {
      auto file = json.Object();
      json.Member("capture", line.capture);
      json.Member("file", line.file.path);
      json.Member("bytes", line.file.bytes);
      json.Member("warps", line.warps);
      json.Member("events", line.events);
      json.Member("simulated", line.simulated);
    }
  }
  Print(json.text() + "\n");
}

Result<int> Export(const Options& options) {
  if (!options.output.empty() && options.captures.size() > 1) {
    return Fail(ErrorKind::kUsage,
                "export: -o names one file, and there are {} captures; leave it out to have each "
                "written beside its capture",
                options.captures.size());
  }
  int code = kExitDone;
  std::vector<Line> lines;
  for (const std::string& capture : options.captures) {
    // Beside a capture that comes from there no file belongs.
    if (options.output.empty() && (capture.starts_with("/dev/") || capture.starts_with("/proc/"))) {
      return Fail(ErrorKind::kUsage, "export: say with -o where to write what comes from {}",
                  capture);
    }
    const std::string path =
        options.output.empty() ? ExportPath(capture, options.format) : options.output;
    std::error_code ignored;
    if (std::filesystem::equivalent(capture, path, ignored)) {
      return Fail(ErrorKind::kUsage, "export: -o {} is the capture itself; choose another name",
                  path);
    }
    // One bad file must not hide the others.
    const auto failed = [&code](const Error& error) {
      PrintError(error.message);
      code = std::max(code, ExitCode(error.kind));
    };
    auto loaded = Load(capture);
    if (!loaded) {
      failed(loaded.error());
      continue;
    }
    code = std::max(code, ReadCode(*loaded));
    if (loaded->model.warps.size() == 0) continue;  // ReadCode has said so
    auto file = ExportAs(options.format, loaded->model, path, options.range_cycles);
    if (!file) {
      failed(file.error());
      continue;
    }
    lines.push_back({capture, *file, loaded->model.warps.size(), loaded->model.events.size(),
                     Simulated(*loaded)});
  }
  PrintLines(lines, options.json);
  return code;
}

}  // namespace

std::string ExportPath(const std::string& capture_path, const std::string& format) {
  return std::filesystem::path(capture_path).replace_extension(format).string();
}

Result<Exported> ExportAs(const std::string& format, const trace::Model& model,
                          const std::string& path, bool range_cycles) {
  auto file = exporter::OutputFile::Create(path);
  if (!file) return tl::unexpected(file.error());
  Progress progress("writing " + path);
  auto written = exporter::WriteAs(
      format, model, [&](std::string_view block) { return file->Write(block); },
      {.range_cycles = range_cycles,
       .progress = [&](uint64_t done, uint64_t total) { progress.Update(done, total); }});
  if (!written) return tl::unexpected(written.error());
  if (auto committed = file->Commit(); !committed) return tl::unexpected(committed.error());
  return Exported{path, file->bytes_written()};
}

void AddExport(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("export", "Write captures in a format of another tool");
  sub->add_option("captures", options->captures, "Captures (.iketcap)")
      ->required()
      ->type_name("CAPTURE");
  sub->add_option("--format", options->format, exporter::FormatHelp())
      ->type_name("FORMAT")
      ->check(CLI::IsMember(exporter::FormatNames()).description(""))
      ->capture_default_str();
  sub->add_option("-o,--output", options->output,
                  "File to write; by default the capture's name with the format's extension")
      ->type_name("FILE");
  sub->add_flag("--cycles", options->range_cycles,
                "pftrace: also give every range its duration in cycles, as an argument");
  sub->add_flag("--json", options->json, "Say what was written as JSON");
  sub->callback([options, &run] { run = [options] { return Export(*options); }; });
}

}  // namespace iket::cli
