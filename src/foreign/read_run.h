// read_run.h: a run that run-iket recorded, as facts and model, for whoever reads captures.
//
// Events are declared as those of our own collection of the same marks are: with the metadata's ids
// (Declaration::foreign_event, foreign_range). Ranges are paired as run-iket does: a pop closes the
// innermost push, and of a token, whose two ends have one id, each second event is an end. There is
// one clock, %globaltimer: `cycles` are ns, in steps of 32. Not known are the hardware's slots, the
// GPU's name and the host's log; launches that run-iket did not record are not there.
//
// Nothing is trusted: buffers that are short, full or make no sense are counted (Model::counters,
// Capture::damage). Cost: the model, and the JSON while it is read.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/error.h"
#include "base/progress.h"
#include "capture/reader.h"
#include "foreign/raw_run.h"
#include "trace/model.h"

namespace iket::foreign {

struct Run {
  capture::Capture facts;
  trace::Model model;
};

// The bytes of a file that the run names, or nothing where there is none.
using FileOf = std::function<std::span<const std::byte>(const std::string& name)>;

// Error (kBadInput): more records than rows have numbers.
Result<Run> MakeRun(const RawRun& raw, const FileOf& file_of, const Progress& progress = {});

// `path` is the iket.data.json, whose folder has the buffers. Errors: kSystem (a file cannot be
// opened), kBadInput.
Result<Run> ReadRun(const std::string& path, const Progress& progress = {});

}  // namespace iket::foreign
