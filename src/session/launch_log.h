// launch_log.h: the host's log of launches, of kernels and of graphs, in a file that guest and
// supervisor both map.
//
// The guest appends without a lock or a system call, from any thread; the entries outlive the guest
// whatever ends it. The file grows by a MiB at a time, and what an entry is stored to is allocated
// on disk before: a store to a mapped hole of a full disk would kill the program. When the log, or
// the disk, is full, further launches are counted and not logged.
//
// Cost of an append: one atomic addition and 96 bytes, about 10 ns; each 10,000th a system call.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "capture/content.h"

namespace iket::session {

// As it lies in the file. `state` is stored last, with release order: 0 means not (wholly) written.
struct LaunchEntry {
  std::atomic<uint32_t> state;  // 1 written, 2 written and the driver refused the launch
  uint32_t kernel;              // kNoKernel where a graph is launched
  uint32_t context;
  uint32_t flags;  // LaunchFlag
  uint64_t stream;
  int64_t host_ns;  // CLOCK_MONOTONIC, before the launch
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3];  // 0: not given
  uint32_t dynamic_shared_bytes;
  uint32_t graph;  // with kLaunchOfGraph
  uint32_t reserved[5];
};
static_assert(sizeof(LaunchEntry) == 96);

enum LaunchFlag : uint32_t {
  kLaunchCooperative = 1,
  kLaunchCaptured = 2,  // into a graph: it did not run
  kLaunchLeftOut = 4,   // outside of what was to be recorded: it left no records
  kLaunchOfGraph = 8,   // of an executable graph, not of a kernel: no kernel, no dimensions
};

class LaunchLog {
 public:
  static constexpr uint32_t kCapacity = 1u << 20;
  static constexpr uint32_t kEntriesAtATime = (1u << 20) / sizeof(LaunchEntry);

  // Makes the file for writing, or maps an existing one for reading. Errors: kSystem (no room for
  // the first entries, among others), kBadInput.
  static Result<LaunchLog> Create(const std::string& path);
  static Result<LaunchLog> Open(const std::string& path);

  LaunchLog(LaunchLog&& other) noexcept;
  LaunchLog& operator=(LaunchLog&& other) noexcept;
  ~LaunchLog();

  // An entry of one's own to fill in, or null when the log is full. Set `state` last.
  LaunchEntry* Append();

  // The sequence number that no launch before now has.
  uint64_t next_sequence() const;

  // What was written wholly, in order; the sequence number is the position in the log, which has
  // both kinds. Contents are taken as they are: they come from another process.
  std::vector<capture::Launch> Launches() const;
  std::vector<capture::GraphLaunch> GraphLaunches() const;
  // Launches that found the log, or the disk, full.
  uint64_t lost() const;

 private:
  struct Header;
  struct Growth;
  LaunchLog();
  LaunchEntry* entries() const;
  bool Grow(uint64_t index);
  uint64_t logged() const;
  template <typename Visit>
  void ForEach(const Visit& visit) const;

  Header* header_ = nullptr;
  size_t mapped_ = 0;
  uint32_t entries_ = 0;            // that the file holds, when it is read
  std::unique_ptr<Growth> growth_;  // when it is written
};

}  // namespace iket::session
