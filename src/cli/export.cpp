#include "cli/export.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/excerpt_options.h"
#include "cli/load.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "export/dag_json.h"
#include "export/formats.h"
#include "export/json_writer.h"
#include "export/output_file.h"
#include "trace/merge.h"

namespace iket::cli {
namespace {

struct Options {
  std::vector<std::string> captures;
  std::string format;  // empty: by the name of `output`
  std::string output;
  std::vector<std::string> dags;
  ExcerptOptions excerpt;
  bool range_cycles = false;
  std::optional<uint64_t> page_slices;
  bool summarize_rest = false;
  bool json = false;
};

struct Line {
  std::string capture{};
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

// The trace itself goes there, and nothing else may.
bool IsStandardOutput(const std::string& output) {
  return output == "-" || output == "/dev/stdout";
}

// Not one of exporter::FormatNames(): a file has one graph of the model, and nothing that happened.
const std::string kDagFormat(exporter::kDagExtension);

std::vector<std::string> AllFormats() {
  std::vector<std::string> names = exporter::FormatNames();
  names.push_back(kDagFormat);
  return names;
}

std::optional<std::string> FormatOfName(const std::string& output) {
  return output.ends_with("." + kDagFormat) ? kDagFormat : exporter::FormatOfName(output);
}

// The format that was asked for, by --format or by the name of -o.
Result<std::string> ChooseFormat(const Options& options) {
  const auto by_name = FormatOfName(options.output);
  std::string format = !options.format.empty() ? options.format : by_name.value_or("pftrace");
  if (options.output.ends_with(".iketcap")) {
    return Fail(ErrorKind::kUsage, "export: -o {} is the name of a capture; {} is written here",
                options.output, format);
  }
  // Of an ending that is not ours (.perfetto-trace.gz) only that it is compressed must hold.
  const bool other_gz = by_name == "pftrace.gz" && !options.output.ends_with(".pftrace.gz");
  if (by_name && (other_gz ? !format.ends_with(".gz") : *by_name != format)) {
    return Fail(ErrorKind::kUsage,
                "export: --format {} and -o {} do not agree: that name is for {}; leave one out",
                format, options.output, *by_name);
  }
  if (options.range_cycles && !exporter::HasRangeCycles(format)) {
    return Fail(ErrorKind::kUsage,
                "export: --cycles: {} has no place for them; they can be had in pftrace", format);
  }
  return format;
}

Result<void> CheckStandardOutput(const Options& options) {
  if (options.json) {
    return Fail(ErrorKind::kUsage,
                "export: -o {} has the trace alone on standard output; --json needs another -o",
                options.output);
  }
  if (isatty(STDOUT_FILENO) == 1) {
    return Fail(ErrorKind::kUsage,
                "export: -o {}: standard output is a terminal; send it to a file or a pipe",
                options.output);
  }
  return {};
}

// Adds the graphs of --dag. Names in them that nothing has are worth a line.
Result<void> AddDags(const Options& options, Loaded& loaded) {
  const size_t declared = loaded.model.edges.size();
  for (const std::string& path : options.dags) {
    const auto file = MappedFile::Open(path, "graph of dependencies");
    if (!file) return tl::unexpected(file.error());
    const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                                file->bytes().size());
    if (auto added = exporter::AddDag(text, path, loaded.model); !added) return added;
  }
  std::set<std::string> names;
  for (const trace::Declaration& row : loaded.model.declarations) {
    names.insert(loaded.model.NameOf(row));
  }
  std::set<std::string> missing;
  for (size_t i = declared; i < loaded.model.edges.size(); ++i) {
    for (const trace::StringId id : {loaded.model.edges[i].from, loaded.model.edges[i].to}) {
      if (!names.contains(loaded.model.String(id))) missing.insert(loaded.model.String(id));
    }
  }
  if (!missing.empty()) {
    PrintWarning(fmt::format("--dag: nothing in {} is called {}: no arrows for it", loaded.path,
                             Printable(fmt::format("{}", fmt::join(missing, ", ")))));
  }
  return {};
}

// A file a graph: at `path`, of several graphs beside it under their names.
Result<std::vector<Exported>> ExportDags(const Options& options, const Loaded& loaded,
                                         const std::string& path) {
  const std::vector<std::string> names = exporter::DagNames(loaded.model);
  if (names.empty()) {
    return Fail(ErrorKind::kNothing,
                "{}: no dependencies are declared in it; iket::dag declares them, and --dag FILE "
                "adds some",
                loaded.path);
  }
  if (names.size() > 1 && !options.output.empty()) {
    return Fail(ErrorKind::kUsage,
                "export: -o names one file, and there are the graphs {}; leave it out to have a "
                "file for each",
                Printable(fmt::format("{}", fmt::join(names, ", "))));
  }
  std::vector<Exported> files;
  for (const std::string& name : names) {
    std::string file_path = path;
    if (names.size() > 1) {
      std::string part = name.empty() ? "dag" : name;
      std::ranges::replace(part, '/', '_');
      file_path =
          std::filesystem::path(path).parent_path() / fmt::format("{}.{}", part, kDagFormat);
    }
    auto file = IsStandardOutput(file_path) ? exporter::OutputFile::StandardOutput()
                                            : exporter::OutputFile::Create(file_path);
    if (!file) return tl::unexpected(file.error());
    if (auto done = file->Write(exporter::DagJson(loaded.model, name)); !done) {
      return tl::unexpected(done.error());
    }
    if (auto done = file->Commit(); !done) return tl::unexpected(done.error());
    files.push_back({file_path, file->bytes_written()});
  }
  return files;
}

// "app.pftrace" and "launch3": "app.launch3.pftrace", whatever the ending is of a name of -o.
std::string PiecePath(const std::string& path, const std::string& piece,
                      const std::string& format) {
  std::string ending = "." + format;
  if (!path.ends_with(ending)) ending = std::filesystem::path(path).extension().string();
  return fmt::format("{}.{}{}", path.substr(0, path.size() - ending.size()), piece, ending);
}

// Several captures in one file.
bool IsTogether(const Options& options) {
  return !options.output.empty() && options.captures.size() > 1;
}

// What follows `iket export` in the command that a page has for more of the same. Others may see
// it: it has names, and not where they lie.
std::string WordsForMore(const Options& options, const std::string& capture) {
  const auto word = [](const std::string& path) {
    return ShellWord(std::filesystem::path(path).filename().string());
  };
  if (!IsTogether(options)) return word(capture);
  std::vector<std::string> words;
  for (const std::string& one : options.captures) words.push_back(word(one));
  words.emplace_back("-o");
  words.push_back(IsStandardOutput(options.output) ? "together.html" : word(options.output));
  return fmt::format("{}", fmt::join(words, " "));
}

Result<Line> ExportPart(const Options& options, const std::string& format,
                        const trace::Model& model, const std::string& path,
                        const std::string& capture, const trace::ExcerptOf* detail = nullptr) {
  auto file = ExportAs(format, model, path,
                       {.range_cycles = options.range_cycles,
                        .page = {.most_slices = options.page_slices.value_or(exporter::kPageSlices),
                                 .detail = detail,
                                 .capture = WordsForMore(options, capture)}});
  if (!file) return tl::unexpected(file.error());
  return Line{.file = *file, .warps = model.warps.size(), .events = model.events.size()};
}

// What is asked for of the capture, in one file or in one a piece.
Result<std::vector<Line>> ExportModel(const Options& options, const ExcerptChoice& choice,
                                      const std::string& format, Loaded& loaded,
                                      const std::string& path) {
  std::vector<Line> lines;
  if (format == kDagFormat) {
    const auto files = ExportDags(options, loaded, path);
    if (!files) return tl::unexpected(files.error());
    for (const Exported& file : *files) {
      lines.push_back(
          {.file = file, .warps = loaded.model.warps.size(), .events = loaded.model.events.size()});
    }
    return lines;
  }
  if (options.summarize_rest) {
    const auto detail = choice.RowsOf(loaded.model, loaded.path);
    if (!detail) return tl::unexpected(detail.error());
    auto line = ExportPart(options, format, loaded.model, path, loaded.path, &*detail);
    if (!line) return tl::unexpected(line.error());
    lines.push_back(std::move(*line));
    return lines;
  }
  if (choice.asks()) {
    auto part = choice.Of(loaded.model, loaded.path);
    if (!part) return tl::unexpected(part.error());
    loaded.model = std::move(*part);
  }
  if (options.excerpt.split.empty()) {
    auto line = ExportPart(options, format, loaded.model, path, loaded.path);
    if (!line) return tl::unexpected(line.error());
    lines.push_back(std::move(*line));
    return lines;
  }
  for (const Piece& piece : PiecesOf(loaded.model, options.excerpt.split)) {
    std::string words = piece.words;
    if (loaded.model.filter != 0) {
      words += fmt::format(" of what is {}", loaded.model.String(loaded.model.filter));
    }
    auto line = ExportPart(options, format, trace::Excerpt(loaded.model, piece.of, words),
                           PiecePath(path, piece.name, format), loaded.path);
    if (!line) return tl::unexpected(line.error());
    lines.push_back(std::move(*line));
  }
  return lines;
}

Result<void> CheckPage(const Options& options, const std::string& format,
                       const ExcerptChoice& choice) {
  const bool is_page = format == "html";
  if (!is_page && (options.summarize_rest || options.page_slices)) {
    return Fail(ErrorKind::kUsage, "export: {} is of html; {} has all that is asked for",
                options.summarize_rest ? "--summarize-rest" : "--page-slices", format);
  }
  if (!options.summarize_rest) return {};
  if (!choice.asks()) {
    return Fail(ErrorKind::kUsage,
                "export: --summarize-rest: say what is not to be summarized, with --launch, --cta, "
                "--cluster, --sm, --window, --kernel or --name");
  }
  if (!options.excerpt.split.empty()) {
    return Fail(ErrorKind::kUsage,
                "export: --split leaves the rest out, --summarize-rest does not; leave one out");
  }
  return {};
}

Result<void> CheckSplit(const Options& options, const std::string& format) {
  if (options.excerpt.split.empty()) return {};
  if (format == kDagFormat) {
    return Fail(ErrorKind::kUsage, "export: --split: {} has a file for each graph as it is",
                format);
  }
  if (IsStandardOutput(options.output) || options.output.starts_with("/dev/")) {
    return Fail(ErrorKind::kUsage, "export: --split writes several files; -o {} is none",
                options.output);
  }
  return {};
}

// Writes what one capture, or several that were put together, has for `path`.
Result<std::vector<Line>> ExportLoaded(const Options& options, const ExcerptChoice& choice,
                                       const std::string& format, const std::string& name,
                                       Loaded& loaded, const std::string& path) {
  auto written = ExportModel(options, choice, format, loaded, path);
  if (!written) return written;
  for (Line& line : *written) {
    line.capture = name;
    line.simulated = Simulated(loaded);
  }
  return written;
}

Result<void> CheckOutput(const std::string& capture, const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::equivalent(capture, path, ignored)) return {};
  return Fail(ErrorKind::kUsage, "export: -o {} is the capture itself; choose another name", path);
}

// All captures in one file, on one axis.
Result<int> ExportTogether(const Options& options, const ExcerptChoice& choice,
                           const std::string& format, std::vector<Line>& lines) {
  int code = kExitDone;
  std::vector<trace::Named> captures;
  for (const std::string& capture : options.captures) {
    if (auto usable = CheckOutput(capture, options.output); !usable) {
      return tl::unexpected(usable.error());
    }
    auto loaded = Load(capture);
    if (!loaded) return tl::unexpected(loaded.error());
    code = std::max(code, ReadCode(*loaded));
    if (loaded->model.warps.size() == 0) continue;  // ReadCode has said so
    captures.push_back({.name = capture, .model = std::move(loaded->model)});
  }
  if (captures.empty()) return code;
  auto merged = trace::Merge(std::move(captures));
  if (!merged) return tl::unexpected(merged.error());
  const std::string name = fmt::format("{}", fmt::join(options.captures, " "));
  Loaded together{.path = name, .reader = {}, .model = std::move(*merged)};
  if (auto added = AddDags(options, together); !added) return tl::unexpected(added.error());
  auto written = ExportLoaded(options, choice, format, name, together, options.output);
  if (!written) return tl::unexpected(written.error());
  lines = std::move(*written);
  return code;
}

// Each in a file of its own.
Result<int> ExportEach(const Options& options, const ExcerptChoice& choice,
                       const std::string& format, std::vector<Line>& lines) {
  int code = kExitDone;
  for (const std::string& capture : options.captures) {
    // Beside a capture that comes from there no file belongs.
    if (options.output.empty() && (capture.starts_with("/dev/") || capture.starts_with("/proc/"))) {
      return Fail(ErrorKind::kUsage, "export: say with -o where to write what comes from {}",
                  capture);
    }
    const std::string path = options.output.empty() ? ExportPath(capture, format) : options.output;
    if (auto usable = CheckOutput(capture, path); !usable) return tl::unexpected(usable.error());
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
    if (auto added = AddDags(options, *loaded); !added) return tl::unexpected(added.error());
    auto written = ExportLoaded(options, choice, format, capture, *loaded, path);
    if (!written) {
      failed(written.error());
      continue;
    }
    std::ranges::move(*written, std::back_inserter(lines));
  }
  return code;
}

Result<int> Export(const Options& options) {
  const auto format = ChooseFormat(options);
  if (!format) return tl::unexpected(format.error());
  const auto choice = ExcerptChoice::Make(options.excerpt);
  if (!choice) return tl::unexpected(choice.error());
  if (choice->asks() && *format == kDagFormat) {
    return Fail(ErrorKind::kUsage,
                "export: {} has what is declared, of which nothing can be left out", *format);
  }
  if (auto usable = CheckSplit(options, *format); !usable) return tl::unexpected(usable.error());
  if (auto usable = CheckPage(options, *format, *choice); !usable) {
    return tl::unexpected(usable.error());
  }
  const bool to_standard_output = IsStandardOutput(options.output);
  if (to_standard_output) {
    if (auto usable = CheckStandardOutput(options); !usable) return tl::unexpected(usable.error());
  }
  std::vector<Line> lines;
  const auto code = IsTogether(options) ? ExportTogether(options, *choice, *format, lines)
                                        : ExportEach(options, *choice, *format, lines);
  if (!code) return tl::unexpected(code.error());
  if (!to_standard_output) PrintLines(lines, options.json);
  return *code;
}

}  // namespace

std::string ExportPath(const std::string& capture_path, const std::string& format) {
  return std::filesystem::path(capture_path).replace_extension(format).string();
}

Result<Exported> ExportAs(const std::string& format, const trace::Model& model,
                          const std::string& path, exporter::WriteOptions options) {
  auto file = IsStandardOutput(path) ? exporter::OutputFile::StandardOutput()
                                     : exporter::OutputFile::Create(path);
  if (!file) return tl::unexpected(file.error());
  Progress progress("writing " + path, "events", model.events.size());
  std::string note;
  options.folder = file->folder();
  options.progress = progress.Callback();
  options.page.note = [&note](const std::string& text) { note = text; };
  auto written = exporter::WriteAs(
      format, model, [&](std::string_view block) { return file->Write(block); }, options);
  if (!written) return tl::unexpected(written.error());
  if (auto committed = file->Commit(); !committed) return tl::unexpected(committed.error());
  if (!note.empty()) PrintWarning(fmt::format("{}: {}", Printable(path), note));
  return Exported{path, file->bytes_written()};
}

void AddExport(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* sub =
      app.add_subcommand("export", "Write captures, or parts of them, in a format of another tool");
  sub->add_option("captures", options->captures,
                  "Captures (.iketcap), or runs of run-iket (iket.data.json, with iket.data.bin "
                  "beside it). Several, with -o: together, on one axis of time")
      ->required()
      ->type_name("CAPTURE");
  sub->add_option("--format", options->format,
                  "By default what the name of -o says, or pftrace. " + exporter::FormatHelp() +
                      "; " + kDagFormat + ": declared dependencies, a file a graph")
      ->type_name("FORMAT")
      ->check(CLI::IsMember(AllFormats()).description(""));
  sub->add_option("-o,--output", options->output,
                  "File to write, - for standard output; by default the capture's name with the "
                  "format's extension")
      ->type_name("FILE");
  sub->add_option("--dag", options->dags,
                  "Dependencies besides those that the code declares, as dag.save() of CuTe DSL's "
                  "iket writes them (.iket_dag.json); arrows in a pftrace. May be given several "
                  "times")
      ->type_name("FILE")
      ->allow_extra_args(false);
  sub->add_flag("--cycles", options->range_cycles,
                "pftrace: also give every range its duration in cycles, as an argument");
  AddExcerpt(*sub, options->excerpt);
  sub->add_flag("--summarize-rest", options->summarize_rest,
                "html: what is not asked for is there as well, as sums over pieces of time");
  sub->add_option(
         "--page-slices", options->page_slices,
         fmt::format("html: ranges and marks that are shown one by one, at most, by default "
                     "{}; the rest is there as such sums",
                     Count(exporter::kPageSlices)))
      ->type_name("N");
  sub->add_flag("--json", options->json, "Say what was written as JSON");
  sub->callback([options, &run] { run = [options] { return Export(*options); }; });
}

}  // namespace iket::cli
