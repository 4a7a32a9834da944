// drain.h: empties the rings of running guests, so that what a ring cannot hold is not lost.
//
// Each pass copies the rings of every context that was used and appends what is new to the capture
// of its process. It never holds a warp up: where warps write faster than passes follow one
// another, records are overwritten before they were read, and counted.
//
// Cost: a pass copies all rings of the SMs in use (270 MB by default, 5 ms at 55 GB/s) and compares
// each record once with what was there before; memory of the size of the rings in this process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/writer.h"
#include "session/message.h"
#include "session/ring_follower.h"
#include "supervisor/ring_memory.h"

namespace iket::supervisor {

class Drain {
 public:
  // Writes into `folder`; windows are found in `windows`, which must outlive this.
  Drain(std::string folder, RingWindows& windows) : folder_(std::move(folder)), windows_(windows) {}

  // One pass over these contexts. Returns the share of the largest ring's room that was new in it:
  // 1 when some ring came around. What cannot be read or written is said once by Warnings().
  double Pass(const std::vector<session::RingMemory>& contexts);

  // The last reading of a process's rings, when nothing writes to them any more, or of one that
  // goes on without us (`live`); then hands out the capture that was begun for it. Nothing if there
  // is none.
  std::optional<capture::Writer> Finish(uint32_t pid,
                                        const std::vector<session::RingMemory>& contexts,
                                        bool live);

  std::vector<std::string> TakeWarnings() { return std::exchange(warnings_, {}); }

 private:
  struct Context {
    std::vector<session::RingFollower> followers;  // empty until its SM is used
    uint64_t moment = 0;
    bool failed = false;
  };

  double Read(const session::RingMemory& memory, bool quiet);
  capture::Writer* WriterOf(uint32_t pid);
  void Warn(std::string warning);

  std::string folder_;
  RingWindows& windows_;
  std::map<std::pair<uint32_t, uint32_t>, Context> contexts_;   // by pid and context
  std::map<uint32_t, std::optional<capture::Writer>> writers_;  // by pid; none: it cannot be made
  std::vector<std::string> warnings_;
};

}  // namespace iket::supervisor
