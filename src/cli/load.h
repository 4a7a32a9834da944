// load.h: opens a capture for the commands that read one, or what run-iket recorded: by what is in
// the file, whatever it is called.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "capture/reader.h"
#include "cli/tally.h"
#include "trace/model.h"

namespace iket::cli {

struct Loaded {
  std::string path;
  std::optional<capture::Reader> reader;  // of a capture
  trace::Model model;
  // Too large to be decoded here: the model has no warp, and this says what there is.
  std::optional<Tally> tally{};
  capture::Capture of_run_iket{};  // what its iket.data.json states

  const capture::Capture& facts() const { return reader ? reader->capture() : of_run_iket; }
};

// True of an iket.data.json of run-iket, the warp buffers beside it being that file's.
bool IsOfRunIket(const std::string& path);

// Reads and decodes all of it. A damaged file gives what is whole in it: see ReadCode. One that is
// larger, decoded, than the memory that this machine has left lies in files meanwhile (column.h),
// in $TMPDIR or else /var/tmp; a warning says so. Error (kSystem): there is no room for it.
Result<Loaded> Load(const std::string& path);
// The same, but one that is so large is counted.
Result<Loaded> LoadOrCount(const std::string& path);

// "NVIDIA H200", once for each device of the capture that was used; of a software device also that
// its times are a model's and no measurement.
std::vector<std::string> DeviceNames(const Loaded& loaded);

// Recorded on a software device.
bool Simulated(const Loaded& loaded);

// The exit code that a command ends with after it has shown what it could. Says on standard error,
// in one line, that the file is damaged (3) or that it holds no warp (4); 0 otherwise.
int ReadCode(const Loaded& loaded);

// "of cluster 1,0,0; whose number is a multiple of 8; on some SMs".
std::string FilterText(const capture::KernelFilter& filter);

}  // namespace iket::cli
