#include "cli/run_iket/run_iket.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/run_iket/words.h"
#include "cli/terminal.h"

namespace iket::cli::run_iket {
namespace {

constexpr const char* kFooter =
    "The command line of NVIDIA's run-iket 4.8.1 over the open collector; docs/run-iket.md says "
    "what\n"
    "differs. `iket profile` and `iket export` can do more. IKET_DEVICE=sim in the environment: "
    "on\n"
    "the software device.\n"
    "\n"
    "Exit codes: 0 done, 1 failed, or nothing was recorded, 2 wrong use; else the program's own, "
    "256\n"
    "- signal where a signal ended it.";

struct CommandLine {
  CommonOptions common;
  ProfileOptions profile;
  PostprocessOptions postprocess;
};

void AddCommon(CLI::App& app, CommonOptions& options) {
  app.add_option(
         "--context-buffer-size", options.context_buffer_size,
         "What recording may take of a GPU's memory in a context, such as 512M (default 4G)")
      ->type_name("SIZE");
  app.add_option("--log-level", options.log_level,
                 "info: a summary at the end. What is lost, refused or wrong is said at any level")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"error", "warn", "info"}).description(""))
      ->capture_default_str();
  app.add_option("--working-dir", options.working_dir, "Where the program runs")
      ->type_name("FOLDER");
  app.add_option("-o,--output-dir", options.output_dir,
                 "Folder for the files, made anew. Default: iket_output in the working folder")
      ->type_name("FOLDER");
  app.add_flag("--clobber", options.clobber,
               "Remove the folder with all that is in it if it is there already");
}

CLI::App* AddProfile(CLI::App& app, ProfileOptions& options) {
  CLI::App* sub = app.add_subcommand(
      "profile", "Run a program and record its marks: run-iket profile [options] -- PROGRAM ...");
  sub->add_option(
         "--use-config", options.use_config,
         "Record only the kernels, and events of the names, in this instrument.config.json")
      ->type_name("FILE");
  sub->add_option("--use-tracker-dir", options.use_tracker_dir, "No effect: there is no dry run")
      ->type_name("FOLDER");
  sub->add_option("--max-ts-cnt-per-warp", options.max_ts_cnt_per_warp,
                  "No effect: a warp may record any number of events")
      ->type_name("N");
  sub->add_option("--postprocess", options.postprocess,
                  "perfetto: .pftrace; json: .trace.json; html: a page and the .pftrace.gz that it "
                  "opens; all: all of these; none: the capture alone")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"perfetto", "json", "html", "none", "all"}).description(""))
      ->capture_default_str();
  sub->add_flag("--keep,!--no-keep", options.keep,
                "No effect: there are no intermediate files, and captures are always kept");
  sub->add_flag("--enable-stats", options.enable_stats,
                "Say what took how long, here and in run-iket.stats.json");
  sub->add_flag("--warp-trace", options.warp_trace,
                "Begin and end of each warp of every kernel, marked or not, and nothing else");
  sub->add_flag_function(
      "--defer-trace-readback,!--no-defer-trace-readback",
      [&options](int64_t times) { options.defer_trace_readback = times > 0; },
      "No effect: rings are read by another process while kernels run");
  sub->add_option("--enabled-cluster", options.enabled_cluster,
                  "Only the cluster at this place of each grid; without clusters, the CTA")
      ->type_name("X,Y,Z");
  sub->add_option(
         "--enabled-cluster-config", options.enabled_cluster_config,
         "The same for each kernel, a JSON object: {\"part of its mangled name\": [X,Y,Z], "
         "null or \"all\"}; the longest part counts")
      ->type_name("FILE.json");
  sub->allow_extras();
  return sub;
}

CLI::App* AddPostprocess(CLI::App& app, PostprocessOptions& options) {
  CLI::App* sub = app.add_subcommand(
      "postprocess",
      "Write traces of a run that has been: of iket (.iketcap) or of run-iket (iket.data.json)");
  sub->add_option("run_dir", options.run_dir, "The folder of the run")->type_name("FOLDER");
  sub->add_option("--format", options.format, "As profile --postprocess")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"perfetto", "json", "html", "all"}).description(""))
      ->capture_default_str();
  sub->add_option("--output-dir", options.output_dir, "Default: the folder of the run")
      ->type_name("FOLDER");
  sub->allow_extras();
  return sub;
}

// Words in front of `--` that are nobody's: run-iket ends with 1, as it takes them for the program.
Result<int> RunProfile(const CommandLine& line, std::vector<std::string> extras,
                       const std::vector<std::string>& program) {
  if (!extras.empty()) {
    const bool is_option = extras.front().starts_with("-");
    return Fail(ErrorKind::kSystem,
                "profile: {} '{}'{}; use run-iket [options] profile [options] "
                "-- PROGRAM [arguments]",
                is_option ? "there is no option" : "what is", extras.front(),
                is_option ? " here" : "? The program stands behind --");
  }
  if (program.empty()) {
    return Fail(ErrorKind::kUsage, "profile: no program; it stands behind --");
  }
  return Profile(line.common, line.profile, program);
}

Result<int> RunPostprocess(const CommandLine& line, const std::vector<std::string>& extras) {
  if (line.postprocess.run_dir.empty()) {
    return Fail(ErrorKind::kUsage, "postprocess: no folder of a run");
  }
  for (const std::string& word : extras) Say(fmt::format("'{}' has no effect", Printable(word)));
  if (!line.common.output_dir.empty()) {
    Say("--output-dir in front of postprocess has no effect; it stands behind");
  }
  return Postprocess(line.postprocess);
}

int CodeOf(ErrorKind kind) { return kind == ErrorKind::kUsage ? kExitUsage : kFailed; }

}  // namespace

void Say(std::string_view line) {
  Print("[run-iket] " + Printable(line) + "\n");
  // In its place among what the program prints.
  static_cast<void>(FlushOut());
}

int Main(int argc, char** argv) {
  NameProgram("run-iket");
  CLI::App app("In-kernel event tracing for CUDA, as run-iket does it.");
  app.name("run-iket");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.allow_extras();
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.set_version_flag("--version", "run-iket of iket " IKET_VERSION);
  CommandLine line;
  AddCommon(app, line.common);
  CLI::App* const profile = AddProfile(app, line.profile);
  CLI::App* const postprocess = AddPostprocess(app, line.postprocess);

  std::vector<std::string> words(argv + 1, argv + argc);
  const auto separator = std::ranges::find(words, "--");
  std::vector<std::string> program(separator, words.end());
  words.erase(separator, words.end());
  if (!program.empty()) program.erase(program.begin());
  if (auto expanded = ReadWords(app, words); !expanded) {
    PrintError(expanded.error().message);
    return kExitUsage;
  }
  if (const int code = Parse(app, std::move(words)); code >= 0) return code;
  std::vector<std::string> extras = app.remaining();
  for (const std::string& word : (profile->parsed() ? profile : postprocess)->remaining()) {
    extras.push_back(word);
  }
  return RunCommand(
      [&] {
        if (profile->parsed()) return RunProfile(line, extras, program);
        extras.insert(extras.end(), program.begin(), program.end());
        return RunPostprocess(line, extras);
      },
      CodeOf);
}

}  // namespace iket::cli::run_iket
