#include "cli/record.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cli/command.h"
#include "cli/cute_dsl.h"
#include "cli/terminal.h"
#include "supervisor/gpus.h"
#include "supervisor/installation.h"

namespace iket::cli {
namespace {

// Who else may stand between the program and its driver, for one who misses something.
std::string OtherTools() {
  std::string tools;
  for (const char* name : {"LD_PRELOAD", "CUDA_INJECTION64_PATH"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == 0) continue;
    tools += fmt::format("{}{}={}", tools.empty() ? "" : " and ", name, Printable(value));
  }
  return tools.empty() ? "" : "; another tool is there that may be in the way: " + tools;
}

std::string WhyNoCapture(const RecordOptions& options, const std::string& driver) {
  std::string why = supervisor::WhyNoGpu(driver);
  if (why.empty()) {
    why =
        "no process loaded GPU code that could be traced. Unless a line above says why: is the "
        "program built with IKET_ENABLE, and without -G";
    why += options.device == "sim" ? ", and does it use the driver API or NVRTC? <<<>>> programs "
                                     "do not run on the software device"
                                   : "?";
  }
  // One that is in every name was not the reason.
  if (!options.selection.warps.empty() && options.selection.warps != ".") {
    why += fmt::format("; --warp-trace '{}' is found in no name of a kernel",
                       Printable(options.selection.warps));
  }
  return why + OtherTools();
}

// The software device's driver, or "" for the system's.
Result<std::string> DriverOf(const std::string& device) {
  if (device != "sim") return std::string();
  auto driver = supervisor::FindSoftwareDevice();
  if (!driver) return FailIn("the software device", driver.error());
  return driver;
}

int ReadOne(const std::string& capture, const Reading& reading, Summary& summary) {
  const auto loaded = reading.load(capture);
  if (!loaded) {
    PrintError(loaded.error().message);
    return ExitCode(loaded.error().kind);
  }
  summary.Add(*loaded);
  summary.AddFile(capture);
  if (loaded->tally) return ReadCode(*loaded);
  const bool is_empty = loaded->model.warps.size() == 0;
  // Said once, when it is true of all processes.
  if (is_empty && !loaded->facts().damage.any()) return ExitCode(ErrorKind::kNothing);
  const int code = ReadCode(*loaded);
  return is_empty ? code : std::max(code, reading.export_files(*loaded, summary));
}

}  // namespace

Result<std::string> ChooseDevice(const std::string& option) {
  if (!option.empty()) return option;
  const char* const wish = std::getenv(kEnvDevice);
  std::string device = wish == nullptr || *wish == 0 ? "gpu" : wish;
  if (device == "gpu" || device == "sim") return device;
  return Fail(ErrorKind::kUsage, "{} is '{}', which is no device; there are gpu and sim",
              kEnvDevice, device);
}

Result<supervisor::Outcome> RunProgram(const RecordOptions& options) {
  auto driver = DriverOf(options.device);
  if (!driver) return tl::unexpected(driver.error());
  supervisor::Options run;
  run.command = options.program;
  run.output_folder = options.folder;
  run.ring_bytes = options.ring_bytes;
  run.flight = options.flight;
  run.map_early = options.map_early;
  run.memory_bytes = options.memory_bytes;
  run.selection = session::Encode(options.selection);
  run.nvtx = !options.selection.nvtx.empty();
  run.driver = std::move(*driver);
  run.environment = CuteDslEnvironment();
  run.error_to_output = options.error_to_output;
  run.stream = options.stream;
  run.hang = options.hang;
  run.say = [](const std::string& text) { PrintWarning(text); };
  auto outcome = supervisor::Supervise(run);
  if (!outcome) return outcome;
  for (const std::string& warning : outcome->warnings) PrintWarning(warning);
  return outcome;
}

Recorded ReadCaptures(const supervisor::Outcome& outcome, const RecordOptions& options,
                      const Reading& reading, Summary& summary) {
  Recorded recorded;
  for (const std::string& capture : outcome.captures) {
    const int code = ReadOne(capture, reading, summary);
    // A process that recorded nothing is no failure if another one did.
    if (code == ExitCode(ErrorKind::kNothing)) continue;
    ++recorded.captures;
    recorded.code = std::max(recorded.code, code);
  }
  for (const std::string& snapshot : outcome.snapshots) summary.AddFile(snapshot);
  // Where a process had code to trace, what went wrong was said above.
  if (outcome.captures.empty() && !outcome.guests) {
    PrintError("nothing was recorded: " +
               WhyNoCapture(options, DriverOf(options.device).value_or("")));
  }
  for (const std::string& unused : summary.UnusedRules(options.selection)) PrintWarning(unused);
  // Where nothing at all was recorded it is the reason.
  if (const std::string why = summary.WhyNoEvents(options.selection);
      !why.empty() && recorded.captures != 0) {
    PrintWarning(why);
  }
  if (recorded.captures == 0 && !outcome.captures.empty()) {
    const std::string why = summary.WhyNothing(options.selection);
    PrintError("nothing was recorded" +
               (why.empty() ? fmt::format("; `iket info {}` says which kernels were seen",
                                          Printable(outcome.captures.front()))
                            : ": " + why));
  }
  return recorded;
}

}  // namespace iket::cli
