// words.h: what Python's argparse takes and CLI11 does not: `--post json` for `--postprocess json`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/error.h"

namespace iket::cli::run_iket {

// Writes out each long option of `words` of which there is the beginning, and of no other option:
// those of `app` up to the name of a subcommand, then those of that. Words that begin no option
// stay. Errors (kUsage): it is the beginning of several; the first word that is neither an option
// nor the value of one is no subcommand.
Result<void> ReadWords(const CLI::App& app, std::vector<std::string>& words);

}  // namespace iket::cli::run_iket
