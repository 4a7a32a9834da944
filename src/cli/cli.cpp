#include <algorithm>
#include <new>
#include <sstream>
#include <utility>

#include "base/column.h"
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

// `code`, if all that was printed has arrived.
int Flushed(int code) {
  const Result<void> flushed = FlushOut();
  if (flushed) return code;
  PrintError(flushed.error().message);
  return ExitCode(flushed.error().kind);
}

// The first option or file of a command that was given without a value, `--compare ''`. Taken for
// one that was not given, it would have the command do something else.
const CLI::Option* FirstEmpty(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (std::ranges::any_of(option->results(), [](const std::string& v) { return v.empty(); })) {
      return option;
    }
  }
  for (const CLI::App* sub : app.get_subcommands()) {
    if (const CLI::Option* empty = FirstEmpty(*sub)) return empty;
  }
  return nullptr;
}

std::string CommandOf(const CLI::App& app) {
  std::string command = app.get_name();
  for (const CLI::App* sub : app.get_subcommands()) command += " " + sub->get_name();
  return command;
}

}  // namespace

// CLI11 reports everything by exceptions; none leaves this function.
int Parse(CLI::App& app, std::vector<std::string> words) {
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(std::move(words));
    if (const CLI::Option* empty = FirstEmpty(app)) {
      PrintError(
          fmt::format("{}: the value is empty; see {} --help", empty->get_name(), CommandOf(app)));
      return kExitUsage;
    }
    return -1;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      app.exit(error, text, text);
      Print(text.str());
      return Flushed(kExitDone);
    }
    PrintError(fmt::format("{}; see {} --help", error.what(), CommandOf(app)));
    return kExitUsage;
  }
}

int RunCommand(const Run& run, int (*code_of)(ErrorKind)) {
  exporter::RemoveTemporariesOnSignals();
  const Result<int> result = [&]() -> Result<int> {
    try {
      return run();
    } catch (const ColumnFileError& error) {
      return Fail(ErrorKind::kSystem, "{}", error.what());
    } catch (const std::bad_alloc&) {
      return Fail(ErrorKind::kSystem, "not enough memory on this machine for what was asked");
    }
  }();
  if (!result) {
    PrintError(result.error().message);
    return code_of(result.error().kind);
  }
  return Flushed(*result);
}

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
  AddView(app, run);
  AddShow(app, run);
  AddReport(app, run);
  AddInfo(app, run);
  AddCheck(app, run);
  AddSnapshot(app, run);
  AddDoctor(app, run);
  AddConfig(app, run);

  std::vector<std::string> words(argv + 1, argv + argc);
  program = SplitProgram(app, words);
  if (!words.empty() && !words.front().starts_with("-")) {
    std::vector<std::string> commands;
    for (const CLI::App* command : app.get_subcommands(nullptr)) {
      commands.push_back(command->get_name());
    }
    if (std::ranges::find(commands, words.front()) == commands.end()) {
      const std::string last = std::exchange(commands.back(), {});
      commands.pop_back();
      PrintError(fmt::format("unknown command '{}': there are {} and {}; see iket --help",
                             words.front(), fmt::join(commands, ", "), last));
      return kExitUsage;
    }
  }
  if (const int code = Parse(app, std::move(words)); code >= 0) return code;
  return RunCommand(run, ExitCode);
}

}  // namespace iket::cli
