// trace_file.h: the file that a session saves its trace to.
//
// It is made by `iket export` from a capture, in a process of its own: what decodes captures is no
// part of a library that lives in somebody else's program. The command is found beside this library
// (../../bin/iket), or named by IKET_COMMAND. A file whose name ends in .iketcap is the capture
// itself and needs no command.
#pragma once

#include <string>

#include "base/error.h"
#include "session/finish.h"

namespace iket::profiling_session {

// What the process has recorded at these times, to `path`, which is replaced when the new file is
// whole. Where nothing was recorded the trace is empty. Errors: kUsage (something that is no plain
// file; a capture of nothing), kSystem.
Result<void> WriteTrace(const session::Times& times, const std::string& path);

}  // namespace iket::profiling_session
