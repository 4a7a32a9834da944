// waits.h: whether what a warp waits for was recorded, as far as names say so.
//
// By convention an event named "wait X" waits for one named "arrive X", "release X" or "signal X"
// of the same cluster (without clusters: the CTA), and of the same payload where both have one. The
// wait is a mark, or a range around it; between the words stands a space, '_', '.', ':' or '/'.
// Where no such partner is declared, or one that was not to be recorded, nothing is said. (CTAs
// that were not to be recorded are not known here: of clusters that a filter cuts do not ask.)
//
// What is counted is what was kept: a warp waits for the n-th time, its partners arrived m times.
// Less than n is a wait without a partner, unless some warp of the cluster lost records. As many or
// more proves nothing: several warps may have to arrive for one wait.
//
// Cost: a pass over the events of the launch when the first warp is asked for.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "trace/model.h"

namespace iket::analyze {

struct Wait {
  uint32_t declaration = trace::kNoRow;  // of the wait
  std::vector<uint32_t> partners{};      // declarations
  uint64_t times = 0;                    // that the warp has waited so, this time included
  uint64_t arrivals = 0;                 // of partners
  bool lossy = false;                    // there may have been more of both

  bool without_partner() const { return !lossy && arrivals < times; }
};

class Waits {
 public:
  // `model` must outlive it. `launch`: a row of Model::launches.
  Waits(const trace::Model& model, uint32_t launch);

  // What this warp of the launch waits for, by its innermost open range or its last event; nothing
  // if that is no wait, or no partner is declared.
  std::optional<Wait> Of(uint32_t warp);

 private:
  using Cluster = std::array<uint32_t, 3>;

  uint32_t WaitOf(uint32_t warp, uint64_t* payload) const;
  void Count();

  const trace::Model& model_;
  uint32_t launch_;
  std::vector<std::vector<uint32_t>> partners_;  // of each declaration; empty: it is no wait
  bool counted_ = false;
  std::vector<bool> arrives_;  // by declaration: it is some wait's partner
  std::map<Cluster, bool> lossy_;
  // Events by cluster, declaration and payload (0 where it counts for nothing).
  std::map<std::tuple<Cluster, uint32_t, uint64_t>, uint64_t> arrivals_;
};

}  // namespace iket::analyze
