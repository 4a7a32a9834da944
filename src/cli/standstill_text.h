// standstill_text.h: the section "what everyone was doing" of `iket report`.
#pragma once

#include <string>

#include "analyze/standstill.h"
#include "cli/load.h"
#include "export/json_writer.h"

namespace iket::cli {

// Lines for a person, with an empty line in front; empty if every warp had ended.
std::string StandstillText(const Loaded& loaded);

// The same as member "standstill" of the open object: an array of launches, empty if every warp had
// ended.
void WriteStandstill(exporter::JsonWriter& json, const trace::Model& model);

}  // namespace iket::cli
