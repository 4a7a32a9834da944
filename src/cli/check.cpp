// iket check: is a file what it claims to be?
#include "cli/check.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/load.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "export/check.h"
#include "export/formats.h"
#include "export/json_writer.h"

namespace iket::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  bool json = false;
};

std::string Plural(std::string_view singular) {
  return fmt::format("{}{}", singular, singular.ends_with("ch") ? "es" : "s");
}

void PrintText(const Checked& checked) {
  const std::string file = Printable(checked.file);
  if (checked.faults.empty()) {
    std::string counts;
    for (const auto& [what, count] : checked.counts) {
      counts += (counts.empty() ? "" : ", ") + Counted(count, what, Plural(what));
    }
    Print(fmt::format("{}: sound: {}{}\n", file, counts,
                      checked.simulated ? ", of a software device" : ""));
  }
  for (const Fault& fault : checked.faults) {
    const std::string where =
        !fault.offset ? ""
                      : fmt::format("at byte {}{}: ", *fault.offset,
                                    fault.kind == "gzip" ? " of the compressed file" : "");
    Print(fmt::format("{}: {}{}\n", file, where, Printable(fault.text)));
  }
  if (checked.more_faults != 0) {
    Print(fmt::format("{}: and {} more\n", file, Counted(checked.more_faults, "fault")));
  }
}

void PrintJson(const std::vector<Checked>& all) {
  exporter::JsonWriter json;
  {
    auto object = json.Object();
    auto files = json.Array("files");
    for (const Checked& checked : all) {
      auto file = json.Object();
      json.Member("file", checked.file);
      json.Member("format", checked.format);
      json.Member("sound", checked.faults.empty());
      for (const auto& [what, count] : checked.counts) json.Member(Plural(what), count);
      json.Member("simulated", checked.simulated);
      auto faults = json.Array("faults");
      for (const Fault& fault : checked.faults) {
        auto entry = json.Object();
        json.Member("kind", fault.kind);
        json.Member("text", fault.text);
        if (fault.offset) json.Member("offset", *fault.offset);
      }
    }
  }
  Print(json.text() + "\n");
}

// By its name, and where that says nothing by how it begins.
Result<Checked> CheckFile(const std::string& path) {
  const auto ends_with = [&](std::string_view ending) { return path.ends_with(ending); };
  std::error_code unreadable;  // which those below say
  if (std::filesystem::is_regular_file(path, unreadable) &&
      std::filesystem::file_size(path, unreadable) == 0) {
    if (!ends_with(".iketcap")) return CheckExportFile(path);
    return Checked{.file = path, .format = "iketcap", .faults = {{"empty", "nothing is in it"}}};
  }
  if (ends_with(".iketcap")) return CheckCapture(path);
  if (std::ranges::any_of(exporter::FormatNames(), ends_with)) return CheckExportFile(path);
  if (IsOfRunIket(path)) return CheckCapture(path);
  const auto file = MappedFile::Open(path, "file");
  if (!file) return tl::unexpected(file.error());
  return exporter::LooksLikeExport(file->bytes()) ? CheckExportFile(path) : CheckCapture(path);
}

Result<int> Check(const Options& options) {
  std::vector<Checked> all;
  int code = kExitDone;
  for (const std::string& path : options.files) {
    auto checked = CheckFile(path);
    if (checked) {
      all.push_back(std::move(*checked));
      continue;
    }
    // One bad file must not hide the others.
    PrintError(checked.error().message);
    code = std::max(code, ExitCode(checked.error().kind));
  }
  if (options.json) {
    PrintJson(all);
  } else {
    for (const Checked& checked : all) PrintText(checked);
  }
  const bool sound =
      std::all_of(all.begin(), all.end(), [](const Checked& c) { return c.faults.empty(); });
  return std::max(code, sound ? kExitDone : kExitFound);
}

}  // namespace

void AddCheck(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "check", "Check captures and exports strictly: exit code 1 and one line for each fault");
  sub->add_option("files", options->files,
                  "Captures (.iketcap), runs of run-iket (iket.data.json), or what `iket export` "
                  "made of them (.pftrace, .trace.json, .chrome.json, .csv, .sqlite, .html, .gz)")
      ->required()
      ->type_name("FILE");
  sub->add_flag("--json", options->json, "Say the result as JSON");
  sub->callback([options, &run] { run = [options] { return Check(*options); }; });
}

}  // namespace iket::cli
