// command.h: how a subcommand of `iket` is made.
//
// Each command lives in a file of its own with one function that declares its options on the parser
// and leaves in `run` what shall happen when it was chosen. A command returns the exit code; errors
// are printed by Main() as one line on standard error.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace iket::cli {

// 0 done, 1 found something that was asked to fail on; the others come from ErrorKind.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFound = 1;
inline constexpr int kExitUsage = 2;

using Run = std::function<Result<int>()>;

// `program`: the words of the command line that are the profiled program's, see SplitProgram.
void AddProfile(CLI::App& app, Run& run, const std::vector<std::string>& program);
void AddExport(CLI::App& app, Run& run);
void AddInfo(CLI::App& app, Run& run);
void AddCheck(CLI::App& app, Run& run);
void AddReport(CLI::App& app, Run& run);
void AddDoctor(CLI::App& app, Run& run);
void AddSnapshot(CLI::App& app, Run& run);
void AddView(CLI::App& app, Run& run);
void AddShow(CLI::App& app, Run& run);
void AddConfig(CLI::App& app, Run& run);

// Takes the program off the end of `iket profile [options] [--] PROGRAM [arguments]`: what stands
// behind `--`, or from the first word that is neither an option of `profile` nor the value of one.
// Empty for other commands. `words` does not hold the name of the process.
std::vector<std::string> SplitProgram(const CLI::App& app, std::vector<std::string>& words);

// What stands on the command line goes into the options of `app`, or is said. -1: run the command;
// else the code to end with.
int Parse(CLI::App& app, std::vector<std::string> words);
// Runs the command; the exit code. Says errors, of which `code_of` knows the code.
int RunCommand(const Run& run, int (*code_of)(ErrorKind));

// The whole program.
int Main(int argc, char** argv);

}  // namespace iket::cli
