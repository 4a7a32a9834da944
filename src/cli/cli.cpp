#include <algorithm>
#include <new>
#include <utility>

#include "cli/command.h"
#include "cli/terminal.h"
#include "export/output_file.h"

namespace iket::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 found something that was asked to fail on, 2 wrong use, 3 bad input or "
    "a\n"
    "system error, 4 nothing recorded. `iket profile` returns the program's own code when that is\n"
    "not 0 (128 + signal).";

// CLI11 reports everything by exceptions; none leaves this function. -1: parsed, run the command.
int Parse(CLI::App& app, std::vector<std::string> words) {
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(std::move(words));
    return -1;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app.exit(error);
      return FlushOut() ? kExitDone : ExitCode(ErrorKind::kSystem);
    }
    std::string command = "iket";
    for (const CLI::App* sub : app.get_subcommands()) command += " " + sub->get_name();
    PrintError(fmt::format("{}; see {} --help", error.what(), command));
    return kExitUsage;
  }
}

}  // namespace

int Main(int argc, char** argv) {
  CLI::App app("In-kernel event tracing for CUDA: marks and ranges of every warp, on a timeline.");
  app.name("iket");
  app.footer(kExitCodes);
  app.require_subcommand(1);
  app.set_version_flag("--version", "iket " IKET_VERSION);
  Run run;
  std::vector<std::string> program;
  AddProfile(app, run, program);
  AddExport(app, run);
  AddReport(app, run);
  AddInfo(app, run);
  AddCheck(app, run);
  AddSnapshot(app, run);
  AddDoctor(app, run);
  AddConfig(app, run);

  std::vector<std::string> words(argv + 1, argv + argc);
  program = SplitProgram(app, words);
  if (!words.empty() && !words.front().starts_with("-") &&
      !std::ranges::any_of(app.get_subcommands(nullptr), [&](const CLI::App* command) {
        return command->get_name() == words.front();
      })) {
    PrintError(
        fmt::format("unknown command '{}': there are profile, export, report, info, check, "
                    "snapshot, doctor and config; "
                    "see iket --help",
                    words.front()));
    return kExitUsage;
  }
  if (const int code = Parse(app, std::move(words)); code >= 0) return code;
  exporter::RemoveTemporariesOnSignals();
  const Result<int> result = [&]() -> Result<int> {
    try {
      return run();
    } catch (const std::bad_alloc&) {
      return Fail(ErrorKind::kSystem, "not enough memory on this machine for what was asked");
    }
  }();
  if (!result) {
    PrintError(result.error().message);
    return ExitCode(result.error().kind);
  }
  if (const Result<void> flushed = FlushOut(); !flushed) {
    PrintError(flushed.error().message);
    return ExitCode(flushed.error().kind);
  }
  return *result;
}

}  // namespace iket::cli
