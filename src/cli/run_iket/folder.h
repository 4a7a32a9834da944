// folder.h: the folder that run-iket owns. It makes it anew each time, and removes one that is in
// its way with all that is in it, so it must not be one that the person works in.
#pragma once

#include <filesystem>
#include <string>

#include "base/error.h"

namespace iket::cli::run_iket {

// Error: a link, the folder where we or the program work, or one that holds such a folder.
Result<void> CheckMayBeRemoved(const std::filesystem::path& output,
                               const std::filesystem::path& working);

// Makes `output` a new, empty folder of ours (cli/output_folder.h). One that is there is removed
// with `clobber`, or when the person says so on the terminal. False: it is there and stays, and
// that was said. Both paths are absolute.
Result<bool> MakeOutputFolder(const std::filesystem::path& output,
                              const std::filesystem::path& working, bool clobber);

}  // namespace iket::cli::run_iket
