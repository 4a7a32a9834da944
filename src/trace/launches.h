// launches.h: which logged launch each grid on the GPU was.
//
// The rings tell grids apart by context and %gridid, and mostly know the kernel; the host's log has
// dimensions. In one context %gridid counts launches, and so do the log's sequence numbers. Grids
// are matched
//   1. in order, when a context has as many grids as launches that leave records, or a kernel has,
//      and none was captured into a graph;
//   1a. if no warp ever ended there, and all launches are in one stream: the only grid is the
//   first;
//   2. else by the difference of %gridid and sequence number, when case 1 found one and the same
//      difference for all of its matches in the context;
//   3. else with a kernel's newest logged launches, when their differences are all the same: rings
//      lose the oldest launches first. Not for a single grid, whose difference proves nothing.
// Kernels that graphs run are matched by replays.h instead, and where a graph ran at all only case
// 1 for one kernel is left: nobody knows what a graph does to the count of %gridid. What is left
// stays unmatched: a wrong match would be worse. No match contradicts a known kernel.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "capture/reader.h"
#include "trace/model.h"
#include "trace/runs.h"

namespace iket::trace {

// One launch as the rings show it.
struct Grid {
  uint32_t context = 0;      // as the capture numbers contexts
  uint32_t grid_id = 0;      // %gridid
  uint32_t kernel = kNoRow;  // as records number kernels; kNoRow unknown

  auto operator<=>(const Grid&) const = default;
};

// The host's log, by context and kernel.
class LaunchLog {
 public:
  LaunchLog(const capture::Capture& facts, const RunLog& runs);

  // Says that records of this context were overwritten. If graphs with nodes that nobody stated ran
  // there too, a launch that is gone may be replaced by what they ran: then nothing is matched.
  void LostRecords(uint32_t context);

  // Says that no warp ever ended in this context: in one stream its first launch still runs.
  void NoneEnded(uint32_t context);

  // For each of `grids` (sorted, each once) the index in facts.launches of what it was, or kNoRow.
  std::vector<uint32_t> Match(std::span<const Grid> grids) const;

  // A logged launch whose dimensions are those of all logged launches of this kernel in this
  // context, captured ones included; kNoRow if there is none.
  uint32_t SharedShape(uint32_t context, uint32_t kernel) const;

  // The launch that left all records of this context, if the log has just one; else kNoRow.
  uint32_t OnlyLaunch(uint32_t context) const;

  // Launches of patched kernels that must have left records: not failed, not merely captured.
  uint64_t expected() const { return expected_; }

 private:
  struct Kernel {
    std::vector<uint32_t> launches;  // in order; not those captured into a graph
    uint32_t shape = kNoRow;
    bool one_shape = true;
    bool captured = false;  // into a graph, to run any number of times
  };
  struct Context {
    std::map<uint32_t, Kernel> kernels;
    std::vector<uint32_t> launches;  // that leave records, in order
    bool graphs = false;             // ran here, or may have
    bool unstated = false;           // and have nodes that nobody stated
    bool lossy = false;
    bool none_ended = false;
  };

  uint32_t Sequence(uint32_t launch) const;
  bool InOneStream(const Context& context) const;
  void MatchContext(const Context& context, std::span<const Grid> grids,
                    std::span<uint32_t> matches) const;

  const capture::Capture& facts_;
  std::map<uint32_t, Context> contexts_;
  uint64_t expected_ = 0;
};

}  // namespace iket::trace
