// launch_times.h: when the host launched what may have run a kernel. Private to the room.
//
// Both ways count: launches of the kernel itself, and of graphs that have it in a node. Kernels
// that something else may have launched, too, are not known here: the device, or graphs whose nodes
// nobody stated.
//
// Cost: a look-up is one binary search for each graph that ever had the kernel.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "capture/reader.h"

namespace iket::trace {

class LaunchTimes {
 public:
  explicit LaunchTimes(const capture::Capture& facts);

  // The latest such launch in this context that was not after `host_ns`; nothing if there is none,
  // or if the kernel is not known.
  std::optional<int64_t> LatestBy(uint32_t context, uint32_t kernel, int64_t host_ns) const;
  std::optional<int64_t> First(uint32_t context, uint32_t kernel) const;
  // The last one, if the context launched nothing after it.
  std::optional<int64_t> LastOfContext(uint32_t context, uint32_t kernel) const;

 private:
  using Times = std::vector<int64_t>;         // by the host's clock, ascending
  using Key = std::pair<uint32_t, uint32_t>;  // context, and kernel or graph

  template <typename Visit>
  void ForEachTimes(uint32_t context, uint32_t kernel, const Visit& visit) const;

  std::map<Key, Times> of_kernels_;
  std::map<Key, Times> of_graphs_;
  std::map<uint32_t, int64_t> last_of_context_;
  std::map<uint32_t, std::set<uint32_t>> graphs_of_kernel_;
  std::set<uint32_t> kernels_not_known_;
  std::set<uint32_t> contexts_not_known_;
};

}  // namespace iket::trace
