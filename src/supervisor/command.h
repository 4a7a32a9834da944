// command.h: what a person asked to be run, found and checked before anything else happens.
#pragma once

#include <string>

#include "base/error.h"

namespace iket::supervisor {

// The path that `execvp` would run. Errors (kUsage) where it cannot be run, or not be traced since
// the loader takes no preloaded library into it: not found, not executable, static, set-uid.
Result<std::string> ResolveCommand(const std::string& command);

}  // namespace iket::supervisor
