// record.h: runs a program under the supervisor and reads what it left: what `iket profile` and
// `run-iket profile` have in common.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/load.h"
#include "cli/summary.h"
#include "session/selection.h"
#include "supervisor/supervise.h"

namespace iket::cli {

// Chooses the device where no option does: gpu or sim.
inline constexpr char kEnvDevice[] = "IKET_DEVICE";

struct RecordOptions {
  std::vector<std::string> program;
  std::string folder;  // prepared: output_folder.h
  uint64_t ring_bytes = 32 << 10;
  uint64_t memory_bytes = 0;  // as in supervisor::Options
  bool flight = false;
  bool map_early = false;
  bool stream = false;
  std::chrono::nanoseconds hang{0};
  std::string device;  // "gpu" or "sim": ChooseDevice
  bool error_to_output = false;
  session::Selection selection;
};

// `option`, or where that is empty what IKET_DEVICE says, or gpu. Errors: kUsage.
Result<std::string> ChooseDevice(const std::string& option);

// Runs the program to its end, with the DSLs of the CuTe family told to keep their marks
// (cute_dsl.h), and says the supervisor's warnings. Errors: those of supervisor::Supervise.
Result<supervisor::Outcome> RunProgram(const RecordOptions& options);

struct Reading {
  std::function<Result<Loaded>(const std::string& path)> load = LoadOrCount;
  // Makes files of a capture that holds something; adds them to the summary and returns the exit
  // code that they deserve.
  std::function<int(const Loaded&, Summary&)> export_files;
};

struct Recorded {
  uint64_t captures = 0;  // that hold something
  int code = 0;           // of the worst thing that went wrong
};

// Reads, sums up and exports what the run has left. Problems are said and end up in the code: one
// bad file must not hide the others. Says why, where nothing was recorded, and which parts of the
// selection fit nothing.
Recorded ReadCaptures(const supervisor::Outcome& outcome, const RecordOptions& options,
                      const Reading& reading, Summary& summary);

}  // namespace iket::cli
