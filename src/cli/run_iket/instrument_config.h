// instrument_config.h: which kernels and events an instrument.config.json of run-iket names.
//
// run-iket makes the file in its dry run (`profile --keep` leaves it in gen-config/) and
// instruments what stands in it; people take kernels or points out. Offsets and buffer sizes in it
// are for its own patcher and mean nothing here.
#pragma once

#include <set>
#include <string>

#include "base/error.h"
#include "session/selection.h"

namespace iket::cli::run_iket {

struct InstrumentConfig {
  std::set<std::string> kernels;  // mangled; not empty
  std::set<std::string> events;   // names at their points; empty: not all points have one
};

// Errors: kBadInput, kSystem.
Result<InstrumentConfig> ReadInstrumentConfig(const std::string& path);

// Selects these kernels and events, and no others.
void Select(const InstrumentConfig& config, session::Selection& selection);

}  // namespace iket::cli::run_iket
