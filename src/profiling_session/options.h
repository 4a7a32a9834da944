// options.h: the options of a profiling session, as a program gives them and as ours are.
#pragma once

#include <cuda.h>
#include <iket/iket_profiling_session.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "session/selection.h"

namespace iket::profiling_session {

struct Options {
  std::optional<std::array<uint32_t, 3>> cluster{};  // of each grid this one; else all
  bool lifetimes_only = false;
  std::vector<CUcontext> contexts{};  // empty: all
  uint32_t log_level = IKET_PROFILING_SESSION_LOG_WARN;
  bool sizes_buffers = false;  // the program has asked for sizes that we have no use for

  bool operator==(const Options&) const = default;
};

// Fills in what is usual. INVALID_ARGUMENT: there are none, or not so many bytes.
IketProfilingSessionResult Init(IketProfilingSessionOptions* options) noexcept;

// Options of a program, or INVALID_ARGUMENT. Reads the contexts that they point to.
IketProfilingSessionResult Read(const IketProfilingSessionOptions* untrusted, Options& options);

// `base` narrowed to what these options want.
session::Selection SelectionFor(const Options& options, const session::Selection& base);

}  // namespace iket::profiling_session
