// output_folder.h: where `iket profile` puts its files.
//
// A folder that we made carries a marker file, and is emptied of our own files when it is used
// again. Anything else that stands in the way is left alone and refused, unless --clobber was
// given; nor does that ever remove a file that is not named like ours.
#pragma once

#include <string>

#include "base/error.h"

namespace iket::cli {

inline constexpr const char* kMarkerFile = ".iket_output";

// `pattern` with %p (id of this process), %h (host name), %q{NAME} (environment; empty if unset)
// and %% replaced. Anything else behind a % is an error (kUsage).
Result<std::string> ExpandPattern(const std::string& pattern);

// Makes `path` a folder of ours: created with its parents, or taken over as said above, and kept
// for this process until it ends. Errors: kUsage (foreign, or in use), kSystem.
Result<void> PrepareOutputFolder(const std::string& path, bool clobber);

// Removes the folder and all that is in it, whoever made it. Errors: kUsage (another run is using
// it), kSystem.
Result<void> RemoveOutputFolder(const std::string& path);

// True for names of files that we make: iket_pid_0x1f3.iketcap, snapshots
// (iket_pid_0x1f3_snapshot1), and the exports of both in any format, run-iket's page too.
bool IsOurFile(std::string_view name);

}  // namespace iket::cli
