// counter_tracks.h: what a trace shows as curves: warps that run, events a microsecond, the clock.
//
// One of each a GPU. A curve has at most kMostPoints points; where more would be needed it says in
// its description what each of them stands for, so that nothing looks finer than it is.
// Cost: a sort of the warps' begins and ends; a comparison an event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/model.h"

namespace iket::exporter {

inline constexpr size_t kMostPoints = 20'000;

struct CounterPoint {
  uint64_t ns = 0;  // %globaltimer
  double value = 0;

  friend bool operator==(const CounterPoint&, const CounterPoint&) = default;
};

// The value of a point holds until the next one.
struct CounterCurve {
  std::string name;
  std::string unit;
  std::string description;
  Column<CounterPoint> points;
};

// Warps between their begin and their end. Where changes are more than points, each point is the
// most that ran at a time until the next.
CounterCurve ActiveWarps(const trace::Model& model, uint32_t device);

// The frequency of the SM that says most about it, GHz; no points if none says anything.
CounterCurve SmFrequency(const trace::Model& model, uint32_t device);

// Counts events while a trace is written, in time order. Only while kernels ran: each such time is
// cut into pieces of a microsecond and more.
class EventRate {
 public:
  EventRate(const trace::Model& model, uint32_t device);

  // `ns`: never less than the one before.
  void Add(uint64_t ns) {
    while (at_ + 1 < starts_.size() && ns >= starts_[at_ + 1]) ++at_;
    if (at_ < counts_.size()) ++counts_[at_];
  }
  CounterCurve Curve() const;
  bool empty() const { return counts_.empty(); }  // nothing ran

 private:
  std::string name_;
  std::vector<uint64_t> starts_;  // of pieces; the last is an end
  std::vector<uint64_t> counts_;  // one fewer
  size_t at_ = 0;
};

}  // namespace iket::exporter
