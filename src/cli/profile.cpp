// iket profile: runs a program, records its marks, and leaves files and ten lines.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <vector>

#include "cli/command.h"
#include "cli/export.h"
#include "cli/output_folder.h"
#include "cli/record.h"
#include "cli/selection_options.h"
#include "cli/summary.h"
#include "cli/terminal.h"
#include "export/formats.h"
#include "ring/layout.h"
#include "supervisor/command.h"

namespace iket::cli {
namespace {

struct Options {
  RecordOptions record;
  std::string output = "iket_output";
  bool clobber = false;
  std::string exports = "pftrace";  // formats, separated by commas
  std::string overflow = "keep-last";
  double hang = 0;  // seconds
  bool json = false;
  SelectionOptions selection;
};

std::vector<std::string> Names(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream text(list);
  for (std::string name; std::getline(text, name, ',');) names.push_back(std::move(name));
  return names;
}

// NVTX tells one library of ranges. Ours may be there already: of an iket profile around this one.
Result<void> CheckNvtx(const session::Selection& selection) {
  const char* const other = std::getenv(session::kEnvNvtx);
  if (selection.nvtx.empty() || other == nullptr || *other == 0) return {};
  if (std::filesystem::path(other).filename() == "libiket_inject.so") return {};
  return Fail(ErrorKind::kUsage,
              "--nvtx: {} is set to {}: NVTX ranges go to one library only; unset it, or use "
              "--paused and iket/session.h",
              session::kEnvNvtx, Printable(other));
}

// One file a format, beside the capture.
int ExportAll(const std::string& formats, const Loaded& loaded, Summary& summary) {
  int code = kExitDone;
  for (const std::string& format : Names(formats)) {
    if (format == "none") continue;
    const auto exported = ExportAs(format, loaded.model, ExportPath(loaded.path, format));
    if (exported) {
      summary.AddFile(exported->path, exported->bytes);
    } else {
      PrintError(exported.error().message);
      code = std::max(code, ExitCode(exported.error().kind));
    }
  }
  return code;
}

Result<int> Profile(const Options& options, const std::vector<std::string>& program) {
  if (program.empty()) {
    return Fail(ErrorKind::kUsage, "profile: no program; use `iket profile [options] -- PROGRAM`");
  }
  if (const auto layout = ring::MakeLayout(options.record.ring_bytes, 1); !layout) {
    return FailIn("--ring", layout.error());
  }
  const auto selection = ReadSelection(options.selection);
  if (!selection) return tl::unexpected(selection.error());
  if (auto free = CheckNvtx(*selection); !free) return tl::unexpected(free.error());
  if (!(options.hang >= 0)) return Fail(ErrorKind::kUsage, "--hang: not a number of seconds");
  constexpr uint64_t kMostMemory = uint64_t{1} << 50;
  if (options.record.memory_bytes > kMostMemory) {
    return Fail(ErrorKind::kUsage, "--memory: no GPU has so much, or it is less than nothing");
  }
  const auto device = ChooseDevice(options.record.device);
  if (!device) return tl::unexpected(device.error());
  // Before anything of an earlier run is removed.
  if (auto found = supervisor::ResolveCommand(program.front()); !found) {
    return tl::unexpected(found.error());
  }
  const auto folder = ExpandPattern(options.output);
  if (!folder) return tl::unexpected(folder.error());
  if (auto prepared = PrepareOutputFolder(*folder, options.clobber); !prepared) {
    return tl::unexpected(prepared.error());
  }

  RecordOptions record = options.record;
  record.program = program;
  record.folder = *folder;
  record.device = *device;
  record.selection = *selection;
  record.stream = options.overflow == "stream";
  record.hang = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.hang));
  const auto outcome = RunProgram(record);
  if (!outcome) return tl::unexpected(outcome.error());

  Summary summary(record.memory_bytes);
  const Recorded recorded = ReadCaptures(
      *outcome, record, {.export_files = std::bind_front(ExportAll, options.exports)}, summary);
  if (options.json || !outcome->captures.empty()) {
    const std::string text = options.json ? summary.Json() + "\n" : summary.Text();
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  if (outcome->signal != 0) return 128 + outcome->signal;
  if (outcome->exit_code != 0) return outcome->exit_code;
  return recorded.captures == 0 ? ExitCode(ErrorKind::kNothing) : recorded.code;
}

}  // namespace

void AddProfile(CLI::App& app, Run& run, const std::vector<std::string>& program) {
  auto options = std::make_shared<Options>();
  auto formats = exporter::FormatNames();
  formats.emplace_back("none");
  CLI::App* sub = app.add_subcommand(
      "profile",
      "Run a program and record its marks: iket profile [options] -- PROGRAM [arguments]");
  sub->add_option("-o,--output", options->output,
                  "Folder for the files; captures of an earlier run in it are removed. %p: id of "
                  "this process, %h: host, %q{NAME}: environment")
      ->type_name("PATTERN")
      ->capture_default_str();
  sub->add_flag("--clobber", options->clobber,
                "Use the folder even if it was not made by iket; foreign files stay");
  sub->add_option("--export", options->exports,
                  "Formats to write beside the capture, or none. " + exporter::FormatHelp())
      ->type_name("LIST")
      ->check(CLI::Validator(
          [formats](const std::string& list) {
            for (const std::string& name : Names(list)) {
              if (std::ranges::find(formats, name) != formats.end()) continue;
              return fmt::format("there is no format '{}'; there are {}", name,
                                 fmt::join(formats, ", "));
            }
            return std::string();
          },
          ""))
      ->capture_default_str();
  sub->add_option(
         "--ring", options->record.ring_bytes,
         "Bytes of each warp's ring: a power of two from 4K on (64K is fine); halved until all of "
         "them fit. Kernels of short warps with very many marks run faster with 4K, which keeps "
         "the rings in the L2 cache")
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->capture_default_str();
  sub->add_option("--memory", options->record.memory_bytes,
                  "Device memory that the rings of all contexts of a process on one GPU may take: "
                  "rings are halved until those of one context fit, and contexts beyond it are not "
                  "recorded. Default: a 16th of the GPU's")
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(false).description(""));
  sub->add_flag("--map-early", options->record.map_early,
                "Map the rings before the first kernel of any kind, and not when marked code is "
                "loaded: for kernels that are launched once, whose data would be driven out of the "
                "GPU's caches. Programs without marks then have rings, too");
  sub->add_flag("--flight", options->record.flight,
                "Rings in the host's memory: no device memory is taken, they need no CUDA to be "
                "read, and survive whatever happens to the GPU; an event costs more");
  sub->add_option(
         "--overflow", options->overflow,
         "What happens when a ring is full: keep-last overwrites the oldest records; stream "
         "empties the rings while kernels run, and counts what it could not keep up with")
      ->type_name("HOW")
      ->check(CLI::IsMember({"keep-last", "stream"}).description(""))
      ->capture_default_str();
  sub->add_option("--hang", options->hang,
                  "Take a snapshot when warps are running and nothing was recorded for so many "
                  "seconds; 0: never. iket snapshot PID takes one at any time")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e6).description(""))
      ->capture_default_str();
  sub->add_option("--device", options->record.device,
                  "gpu, or sim: a software device that runs sm_90 code of driver-API programs. "
                  "Default: what IKET_DEVICE says in the environment, or gpu")
      ->type_name("DEVICE")
      ->check(CLI::IsMember({"gpu", "sim"}).description(""));
  AddSelection(*sub, options->selection);
  sub->add_flag("--json", options->json, "The closing lines as JSON, on standard error");
  sub->callback([options, &program, &run] {
    run = [options, &program] { return Profile(*options, program); };
  });
}

std::vector<std::string> SplitProgram(const CLI::App& app, std::vector<std::string>& words) {
  if (words.empty() || words.front() != "profile") return {};
  const CLI::App* const profile = app.get_subcommand("profile");
  auto at = words.begin() + 1;
  while (at != words.end() && *at != "--" && at->starts_with("-")) {
    const CLI::Option* option = profile->get_option_no_throw(*at);
    const bool takes_next = option != nullptr && option->get_items_expected_max() > 0;
    at += takes_next && at + 1 != words.end() ? 2 : 1;
  }
  std::vector<std::string> program(at, words.end());
  words.erase(at, words.end());
  if (!program.empty() && program.front() == "--") program.erase(program.begin());
  return program;
}

}  // namespace iket::cli
