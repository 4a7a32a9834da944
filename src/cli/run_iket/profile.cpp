// run-iket profile: checks what was asked, and has it done by what iket profile does it with.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string_view>

#include "cli/command.h"
#include "cli/output_folder.h"
#include "cli/record.h"
#include "cli/run_iket/folder.h"
#include "cli/run_iket/instrument_config.h"
#include "cli/run_iket/run_iket.h"
#include "cli/run_iket/stats.h"
#include "cli/run_iket/traces.h"
#include "cli/selection_options.h"
#include "cli/terminal.h"
#include "supervisor/command.h"

namespace iket::cli::run_iket {
namespace {

namespace fs = std::filesystem;

// As wrong use of the command line, or not.
Error As(ErrorKind kind, Error error) {
  error.kind = kind;
  return error;
}

Result<std::array<uint32_t, 3>> ParseEnabledCluster(const std::string& text) {
  auto cluster = session::ParseCluster(text);
  const bool whole = std::ranges::count(text, ',') == 2;
  if (!cluster || !whole || (*cluster)[1] > UINT16_MAX || (*cluster)[2] > UINT16_MAX) {
    return Fail(ErrorKind::kUsage,
                "--enabled-cluster: '{}' is not X,Y,Z, numbers of 32, 16 and 16 bits", text);
  }
  return cluster;
}

// What is to be recorded.
Result<session::Selection> SelectionOf(const ProfileOptions& options) {
  session::Selection selection;
  const bool by_cluster =
      !options.enabled_cluster.empty() || !options.enabled_cluster_config.empty();
  if (options.warp_trace && by_cluster) {
    return Fail(ErrorKind::kUsage,
                "--enabled-cluster and --enabled-cluster-config do not go with --warp-trace");
  }
  if (!options.enabled_cluster.empty()) {
    const auto cluster = ParseEnabledCluster(options.enabled_cluster);
    if (!cluster) return tl::unexpected(cluster.error());
    selection.ctas.cluster = *cluster;
  }
  if (!options.enabled_cluster_config.empty()) {
    auto rules = ReadClusterRules(options.enabled_cluster_config);
    if (!rules) return FailIn("--enabled-cluster-config", As(ErrorKind::kUsage, rules.error()));
    selection.rules = std::move(*rules);
  }
  if (options.warp_trace) {
    selection.warps = ".";
    selection.events = session::kNothing;
    Say("Warp-trace mode enabled: begin and end of each warp of every kernel, and no marks");
  } else if (!options.use_config.empty()) {
    const auto config = ReadInstrumentConfig(options.use_config);
    if (!config) return FailIn("--use-config", config.error());
    Select(*config, selection);
    Say(fmt::format(
        "--use-config: {} kernels and {} are recorded; offsets and sizes in it have no "
        "effect",
        config->kernels.size(),
        config->events.empty() ? "all of their events"
                               : fmt::format("events of {} names", config->events.size())));
  }
  if (auto usable = CheckSelection(selection); !usable) return tl::unexpected(usable.error());
  return selection;
}

constexpr uint64_t kMostMemory = uint64_t{1} << 50;

// "512M"; nothing if it is no size.
std::optional<uint64_t> SizeOf(std::string_view text) {
  uint64_t unit = 1;
  if (!text.empty()) {
    const size_t letter = std::string_view("kKmMgG").find(text.back());
    if (letter != std::string_view::npos) {
      unit = uint64_t{1} << 10 * (letter / 2 + 1);
      text.remove_suffix(1);
    }
  }
  uint64_t size = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || rest != text.data() + text.size() || size > UINT64_MAX / unit) {
    return std::nullopt;
  }
  return size * unit;
}

void SayWhatIsNeedless(const ProfileOptions& options) {
  const auto no_effect = [](std::string_view option, std::string_view why) {
    Say(fmt::format("{} has no effect: {}", option, why));
  };
  if (options.warp_trace && !options.use_config.empty()) {
    no_effect("--use-config", "--warp-trace is for every kernel");
  }
  if (!options.use_tracker_dir.empty()) no_effect("--use-tracker-dir", "there is no dry run");
  if (options.max_ts_cnt_per_warp) {
    no_effect("--max-ts-cnt-per-warp", "a warp may record any number of events");
  }
  if (options.keep) {
    no_effect("--keep",
              "there are no tracker, gen-config and iket folders, and captures are always "
              "kept");
  }
  if (options.defer_trace_readback) {
    no_effect(
        *options.defer_trace_readback ? "--defer-trace-readback" : "--no-defer-trace-readback",
        "rings are read by another process while kernels run");
  }
}

// Without a slash at its end, by which a link would be what it points at, and without `.`; with
// `..`, which may lead out of what a link points at.
fs::path AbsoluteFolder(const fs::path& path) {
  fs::path absolute;
  for (const fs::path& part : fs::absolute(path)) {
    if (!part.empty() && part != ".") absolute /= part;
  }
  return absolute;
}

// Goes where the program is to run, which changes what relative paths mean.
Result<void> EnterFolder(const fs::path& working) {
  std::error_code why;
  fs::current_path(working, why);
  if (why) {
    return Fail(ErrorKind::kSystem, "--working-dir {}: {}", working.string(), why.message());
  }
  return {};
}

// What a shell would say of Python's exit code, which is minus the signal; a program that Ctrl-C
// ends ends run-iket, too.
int CodeOfSignal(int signal) { return signal == SIGINT ? 128 + signal : 256 - signal; }

Result<int> Run(const CommonOptions& common, const ProfileOptions& options, RecordOptions record,
                Stats& stats) {
  stats.Skip(Stats::kTracker);
  stats.Skip(Stats::kConfig);
  stats.Skip(Stats::kCleanup);
  Say("============= Run application for real profiling... =============");
  const auto outcome = [&] {
    auto timer = stats.Measure(Stats::kProfiling);
    auto ended = RunProgram(record);
    if (!ended) timer.Failed();
    return ended;
  }();
  if (!outcome) return tl::unexpected(outcome.error());
  const int result = outcome->signal != 0 ? -outcome->signal : outcome->exit_code;
  if (result != 0) {
    Say(
        fmt::format("Launch GPU workload exits abnormally with return code: {} => Tool: iket, Job: "
                    "iket",
                    result));
  }

  auto timer = stats.Measure(Stats::kPostprocess);
  Summary summary(
      0,
      {.kernels = "--use-config", .events = "--use-config", .rules = "--enabled-cluster-config"});
  const Reading reading{.load =
                            [&](const std::string& path) {
                              auto decoding = stats.Measure(Stats::kDecoding);
                              return LoadOrCount(path);
                            },
                        .export_files =
                            [&](const Loaded& loaded, Summary& sum) {
                              const auto done = WriteTraces(
                                  loaded.model, fs::path(loaded.path).replace_extension(),
                                  FormatsOf(options.postprocess), stats, [&](const Exported& file) {
                                    sum.AddFile(file.path, file.bytes);
                                  });
                              if (done) return kExitDone;
                              PrintError(done.error().message);
                              return ExitCode(done.error().kind);
                            }};
  const Recorded recorded = ReadCaptures(*outcome, record, reading, summary);
  if (recorded.code != kExitDone) timer.Failed();
  const bool anything = !outcome->captures.empty();
  if (anything && (common.log_level == "info" || !summary.IsWhole())) {
    const std::string text = summary.Text();
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  if (outcome->signal != 0) return CodeOfSignal(outcome->signal);
  if (outcome->exit_code != 0) return outcome->exit_code;
  return recorded.captures == 0 || recorded.code != kExitDone ? kFailed : kExitDone;
}

// Whatever became of it, as of the folder's making.
Result<int> RunWithStats(const CommonOptions& common, const ProfileOptions& options,
                         const RecordOptions& record) {
  Stats stats;
  Result<int> code = Run(common, options, record, stats);
  if (!options.enable_stats) return code;
  stats.Print();
  if (auto written = stats.Write(record.folder); !written) PrintWarning(written.error().message);
  return code;
}

}  // namespace

Result<int> Profile(const CommonOptions& common, const ProfileOptions& options,
                    const std::vector<std::string>& program) {
  RecordOptions record;
  record.program = program;
  const auto selection = SelectionOf(options);
  if (!selection) return tl::unexpected(selection.error());
  record.selection = *selection;
  auto device = ChooseDevice("");
  if (!device) return tl::unexpected(device.error());
  record.device = *device;
  // As run-iket has it: all events of all launches, and one stream of text. Rings that hold what is
  // written while they are emptied; run-iket's own buffers take gigabytes, too.
  record.stream = true;
  record.map_early = true;  // as NVIDIA's: what is launched once takes as long
  record.ring_bytes = 256 << 10;
  record.memory_bytes = uint64_t{4} << 30;
  record.error_to_output = true;

  if (!common.context_buffer_size.empty()) {
    const auto size = SizeOf(common.context_buffer_size);
    if (!size) {
      return Fail(ErrorKind::kSystem, "--context-buffer-size: '{}' is no size, such as 512M",
                  common.context_buffer_size);
    }
    if (*size != 0) record.memory_bytes = std::min(*size, kMostMemory);
  }
  const fs::path working = AbsoluteFolder(common.working_dir.empty() ? "." : common.working_dir);
  const fs::path output =
      common.output_dir.empty() ? working / "iket_output" : AbsoluteFolder(common.output_dir);
  record.folder = output;
  if (common.output_dir.empty()) Say(fmt::format("No --output-dir given, using {}", record.folder));
  SayWhatIsNeedless(options);
  if (auto may = CheckMayBeRemoved(output, working); !may) return tl::unexpected(may.error());
  if (auto entered = EnterFolder(working); !entered) return tl::unexpected(entered.error());
  // Before anything of an earlier run is removed.
  if (auto found = supervisor::ResolveCommand(program.front()); !found) {
    return tl::unexpected(As(ErrorKind::kSystem, found.error()));
  }
  const auto made = MakeOutputFolder(output, working, common.clobber);
  if (!made) return tl::unexpected(As(ErrorKind::kSystem, made.error()));
  if (!*made) return kFailed;
  auto code = RunWithStats(common, options, record);
  if (!code) return tl::unexpected(As(ErrorKind::kSystem, code.error()));
  return code;
}

}  // namespace iket::cli::run_iket
