// finish.h: makes the final capture of a process out of what it left behind.
//
// A guest writes its own account (`.iketcap.part`: device, images, kernels, declarations, contexts,
// notes, and rings that it drained itself) and a launch log. Whoever finishes the session, its
// supervisor or the guest itself, joins them with the rings it read into `.iketcap`, and removes
// the two. Files appear under their final name only when they are whole.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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

// Errors: kBadInput (no account, or a broken one), kSystem (nothing could be written). `begun`: a
// writer of BeginCapture() that holds rings already.
Result<FinishedCapture> FinishCapture(const std::string& folder, uint32_t pid, const Ending& ending,
                                      const AppendRings& append_rings,
                                      std::optional<capture::Writer> begun = std::nullopt);

// Times of a process, and the contexts that count then. Whoever cuts a capture by them must have
// followed the rings (capture::RingMoment::settled) and read them at each end of each time.
struct Times {
  struct Time {
    int64_t begin_ns = 0;  // CLOCK_MONOTONIC, both ends within
    int64_t end_ns = 0;
    std::optional<std::vector<uint32_t>> contexts{};  // by index; nothing: all
  };
  std::vector<Time> times{};

  bool Have(int64_t ns, uint32_t context) const;
};

// The capture of a process that goes on: what it has left so far, in a file of its own at `path`.
// Account and launch log stay. With `part` it has the readings of those times alone; other launches
// are left out, as if they had been outside of a window. Errors as above.
Result<FinishedCapture> WriteSnapshot(const std::string& folder, uint32_t pid,
                                      const std::string& path, const AppendRings& append_rings,
                                      const Times* part = nullptr);

// Begins the final capture of a process while it runs, for rings that are read meanwhile, by so
// many threads. Rings are packed, or else written as they are: who has that much to write has no
// time for deflate. Error: kSystem.
Result<capture::Writer> BeginCapture(const std::string& folder, uint32_t pid, size_t threads,
                                     bool pack);

int64_t NowNs();          // CLOCK_MONOTONIC
int64_t NowRealtimeNs();  // CLOCK_REALTIME

}  // namespace iket::session
