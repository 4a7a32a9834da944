// places.h: in which GPC and TPC each SM of a GPU sits.
//
// A register that has no name in PTX, SR_AFFINITY, holds the number of the GPC. What it says is
// believed only if it agrees with the hardware's own rule: CTAs of a cluster run in one GPC. All
// SMs are visited, by clusters of each size that the GPU takes; if a cluster is ever found in two
// GPCs, or a SM in two, or nothing was launched as a cluster, nothing is known. (Clusters alone do
// not suffice: on an H200 eight of the SMs share none with others, docs/design/topology.md.)
//
// Cost: some milliseconds of the whole GPU, on which nothing else should run.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "capture/content.h"
#include "probe/driver_calls.h"

namespace iket::probe {

// By %smid, TPCs counted within their GPC in the order of SMs, of the GPU of the current context;
// all -1 if that cannot be known of this GPU. Empty if it could not be asked: it is busy, or has
// failed.
std::vector<capture::SmPlace> FindPlaces(
    const DriverCalls& calls, uint32_t sm_count,
    std::chrono::nanoseconds patience = std::chrono::seconds(1)) noexcept;

// What the CTAs of one launch said, in the order of their numbers. Public to tests.
struct Seen {
  uint32_t sm = 0, affinity = 0;
};
// Puts launches together, each with the size of its clusters.
class PlaceFinder {
 public:
  explicit PlaceFinder(uint32_t sm_count) : gpc_of_sm_(sm_count, -1) {}
  void Add(const std::vector<Seen>& ctas, uint32_t cluster);
  std::vector<capture::SmPlace> Places() const;  // all -1 if that cannot be known

 private:
  std::vector<int32_t> gpc_of_sm_;
  bool contradicted_ = false;
  bool had_clusters_ = false;
};

}  // namespace iket::probe
