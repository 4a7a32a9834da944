// program.h: starts the profiled program with the collector inside.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/error.h"
#include "supervisor/signals.h"
#include "supervisor/socket_folder.h"
#include "supervisor/supervise.h"

namespace iket::supervisor {

// `program` is the path of `options.command`'s first word. The signals go to it from then on.
// Errors: kUsage (it cannot be run), kSystem.
Result<pid_t> StartProgram(const std::string& program, const Options& options, SocketFolder& folder,
                           const SignalGuard& signals);

}  // namespace iket::supervisor
