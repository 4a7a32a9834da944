// embed.h: captures that the program itself asks for, written in this process.
#pragma once

#include <string>

#include "base/error.h"

namespace iket::inject {

// Writes a capture of what all contexts have recorded so far. `wait`: for their kernels to end;
// else those that run are read as they are. Its path, or an error: kUsage (nothing was loaded that
// records), kSystem.
Result<std::string> WriteHere(const std::string& path, bool wait);

}  // namespace iket::inject
