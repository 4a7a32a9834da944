// drain.h: empties the rings of running guests, so that what a ring cannot hold is not lost.
//
// Each pass copies the rings of every context that was used and appends what is new to the capture
// of its process. It never holds a warp up: where warps write faster than passes follow one
// another, records are overwritten before they were read, and counted.
//
// Rings have nothing in common, so several threads share a pass: each takes a piece of some rings
// (about a MiB) after the other, and copies the next while it follows and appends the present one.
// There are as many threads at work as the last pass had news for; all of them, as soon as a pass
// turns out to have more.
//
// Cost: a pass copies all rings between the first and the last that was used of each piece (270 MB
// by default where all are, 5 ms at 55 GB/s) and compares each record once with what was there
// before; what is new it copies and packs (capture/pack_records.h). Memory of the size of the rings
// in this process, and 2 MiB of page-locked memory and 1 MiB to pack in a thread.
// bench/drain_bench.cpp says what comes of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/writer.h"
#include "session/message.h"
#include "session/ring_follower.h"
#include "supervisor/copy_lane.h"
#include "supervisor/ring_memory.h"
#include "supervisor/workers.h"

namespace iket::supervisor {

class Drain {
 public:
  // What a pass brought.
  struct News {
    uint64_t records = 0;
    double fullest = 0;  // share of the fullest ring's room that was new; 1: it came around
  };

  // Writes into `folder`; windows are found in `windows`, which must outlive this. Reads with so
  // many threads, the caller's among them. Without `pack` records are written as they are: to
  // measure what packing brings.
  Drain(std::string folder, RingWindows& windows, size_t threads = Workers::Count(),
        bool pack = true)
      : folder_(std::move(folder)), windows_(windows), threads_(threads), pack_(pack) {}
  ~Drain() { DropLanes(); }
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  // One pass over these contexts. What cannot be read or written is said once by TakeWarnings().
  News Pass(const std::vector<session::RingMemory>& contexts);

  // Appends to the capture of a process, if there is one.
  void Append(uint32_t pid, const capture::ClockExchange& exchange);

  // True if since the last pass some ring's header has changed, as at a warp's begin and end: there
  // is news. (Not the other way round: a warp that runs on writes no header, and one that replays
  // another writes the same.) Reads the table of each context, half a MB, in 0.1 ms.
  bool HasNewHeaders(const std::vector<session::RingMemory>& contexts);

  // The last reading of a process's rings, when nothing writes to them any more, or of one that
  // goes on without us (`live`); then hands out the capture that was begun for it. Nothing if there
  // is none.
  std::optional<capture::Writer> Finish(uint32_t pid,
                                        const std::vector<session::RingMemory>& contexts,
                                        bool live);

  std::vector<std::string> TakeWarnings() { return std::exchange(warnings_, {}); }

 private:
  struct Context {
    std::vector<session::RingFollower> followers;  // one a ring; empty until it is needed
    std::atomic<uint64_t> moments = 0;             // so far
    uint64_t news = kMany;                         // records that the last reading brought
    std::vector<std::byte> table;                  // as it was then
    bool failed = false;
  };
  struct Reading;
  static constexpr uint64_t kMany = uint64_t{1} << 40;

  News Read(const session::RingMemory& memory, bool quiet);
  Result<std::span<const std::byte>> CopyTable(RingWindow& window);
  void Work(Reading& reading, size_t worker, uint64_t enough);
  Result<void> Follow(Reading& reading, CopyLane& lane, uint64_t enough);
  Result<void> Append(Reading& reading, std::span<const session::UsedRing> rings, News& news);
  Result<CopyLane*> LaneOf(size_t worker, const RingWindow& window);
  void DropLanes();
  capture::Writer* WriterOf(uint32_t pid);
  void Warn(std::string warning);

  std::string folder_;
  RingWindows& windows_;
  size_t threads_;
  bool pack_;
  std::unique_ptr<Workers> workers_;  // from the first pass on
  // By worker, which alone uses them during a pass.
  std::vector<std::map<CUdevice, std::unique_ptr<CopyLane>>> lanes_;
  std::map<std::pair<uint32_t, uint32_t>, Context> contexts_;  // by pid and context

  std::mutex mutex_;                                            // guards what follows during a pass
  std::map<uint32_t, std::optional<capture::Writer>> writers_;  // by pid; none: it cannot be made
  std::vector<std::string> warnings_;
};

}  // namespace iket::supervisor
