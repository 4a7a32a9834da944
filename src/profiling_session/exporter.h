// exporter.h: runs `iket export`.
#pragma once

#include <string>

#include "base/error.h"

namespace iket::profiling_session {

// Remembers where this library lies, before the program may go to another folder.
void FindExporter() noexcept;

// Writes `capture` to `json`, in the schema of .trace.json; what the command says goes to the file
// `errors`, and with the first line of it an error is reported. False: the capture holds nothing
// that could be written. Errors: kSystem (the command is not there, or fails).
Result<bool> ExportJson(const std::string& capture, const std::string& json,
                        const std::string& errors);

}  // namespace iket::profiling_session
