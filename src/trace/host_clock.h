// host_clock.h: a GPU's axis beside the host's clock, CLOCK_MONOTONIC.
//
// Both are joined at moments that are known on both; between two of them, and beyond the first and
// the last, time goes evenly: a GPU's timer gains or loses some us a second. Where no such moment
// is known (capture::ClockExchange), one is made of the launch that began soonest after its call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "capture/content.h"

namespace iket::trace {

struct HostClock {
  struct Knot {
    double ns = 0;        // trace time
    double host_ns = 0;   // CLOCK_MONOTONIC
    double error_ns = 0;  // of host_ns, at most
    bool operator==(const Knot&) const = default;
  };
  std::vector<Knot> knots;  // ascending on both, at least one
  // CLOCK_REALTIME is so far ahead, at the first knot. Nothing: not known.
  std::optional<int64_t> realtime_ahead_ns{};

  double ToHost(double ns) const;
  double FromHost(double host_ns) const;
  bool operator==(const HostClock&) const = default;

  // What the host's time of a trace time may be wrong by: the knots' own error, and beyond a single
  // knot as much as clocks differ at most. Between knots clocks are taken to go evenly.
  double ErrorNs(double ns) const;
};

// Two clocks differ by at most so much: a quartz and what the host corrects its own by.
inline constexpr double kClocksDiffer = 1e-4;

// The clock of one GPU by the exchanges of its contexts, in any order, with trace time 0 at
// `origin_ns` of its timer. Exchanges that cannot be (an answer before the question, a timer or
// a host that goes backwards, a pace that no two clocks have) are left out. Nothing without any.
std::optional<HostClock> HostClockOf(std::span<const capture::ClockExchange> untrusted_exchanges,
                                     uint64_t origin_ns);

}  // namespace iket::trace
