// finish.h: makes the final capture of a process out of what it left behind.
//
// A guest writes its own account (`.iketcap.part`: device, images, kernels, declarations, contexts,
// notes, and rings that it drained itself) and a launch log. Whoever finishes the session, its
// supervisor or the guest itself, joins them with the rings it read into `.iketcap`, and removes
// the two. The file appears under its final name only when it is whole.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "capture/writer.h"

namespace iket::session {

struct Ending {
  int exit_status = -1;  // -1: unknown, or ended by `signal`
  int signal = 0;
  int64_t end_ns = 0;
  int64_t end_realtime_ns = 0;
};

// Appends the rings that the caller has read, and notes about what it could not read.
using AppendRings = std::function<Result<void>(capture::Writer&)>;

struct FinishedCapture {
  std::string path;
  std::string incomplete;  // why not all of it could be written (a full disk); empty if it was
};

// Errors: kBadInput (no account, or a broken one), kSystem (nothing could be written).
Result<FinishedCapture> FinishCapture(const std::string& folder, uint32_t pid, const Ending& ending,
                                      const AppendRings& append_rings);

int64_t NowNs();          // CLOCK_MONOTONIC
int64_t NowRealtimeNs();  // CLOCK_REALTIME

}  // namespace iket::session
