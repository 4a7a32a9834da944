// installation.h: the files of iket that a program is run with, beside our own program.
#pragma once

#include <string>

#include "base/error.h"

namespace iket::supervisor {

// Errors (kSystem): the file is not there, or not readable.

// `path` itself.
Result<std::string> Readable(const std::string& path);
// The library that is preloaded into programs.
Result<std::string> FindCollector();
// The software device's libcuda.so.1.
Result<std::string> FindSoftwareDevice();
// The kernel of `iket doctor --trial`, a fatbin.
Result<std::string> FindTrialImage();

}  // namespace iket::supervisor
