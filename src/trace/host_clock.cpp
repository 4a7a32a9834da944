#include "trace/host_clock.h"

#include <algorithm>
#include <cmath>

namespace iket::trace {
namespace {

// An exchange that took longer says nothing.
constexpr int64_t kWidestNs = 1'000'000'000;
// No time of a host is after this one, in 60 years.
constexpr int64_t kLastNs = int64_t{1} << 60;

bool IsPossible(const capture::ClockExchange& exchange) {
  return exchange.before_ns >= 0 && exchange.after_ns <= kLastNs &&
         exchange.before_ns <= exchange.after_ns &&
         exchange.after_ns - exchange.before_ns <= kWidestNs;
}

// On the line through the two knots next to `at`; `from` and `to` are members of a knot.
double Along(const std::vector<HostClock::Knot>& knots, double HostClock::Knot::* from,
             double HostClock::Knot::* to, double at) {
  const HostClock::Knot& first = knots.front();
  if (knots.size() == 1) return first.*to + (at - first.*from);
  auto after = std::ranges::upper_bound(knots, at, {}, from);
  after = std::clamp(after, knots.begin() + 1, knots.end() - 1);
  const HostClock::Knot& a = *(after - 1);
  const HostClock::Knot& b = *after;
  return a.*to + (at - a.*from) * ((b.*to - a.*to) / (b.*from - a.*from));
}

}  // namespace

double HostClock::ToHost(double ns) const { return Along(knots, &Knot::ns, &Knot::host_ns, ns); }
double HostClock::FromHost(double host_ns) const {
  return Along(knots, &Knot::host_ns, &Knot::ns, host_ns);
}

double HostClock::ErrorNs(double ns) const {
  if (knots.size() == 1) {
    return knots.front().error_ns + kClocksDiffer * std::abs(ns - knots.front().ns);
  }
  auto after = std::ranges::upper_bound(knots, ns, {}, &Knot::ns);
  after = std::clamp(after, knots.begin() + 1, knots.end() - 1);
  const Knot& a = *(after - 1);
  const Knot& b = *after;
  const double error = std::max(a.error_ns, b.error_ns);
  // Beyond the last knot the pace is known as well as the two were.
  const double beyond = std::max({0.0, a.ns - ns, ns - b.ns});
  return error + beyond * std::min(kClocksDiffer, (a.error_ns + b.error_ns) / (b.ns - a.ns));
}

std::optional<HostClock> HostClockOf(std::span<const capture::ClockExchange> untrusted_exchanges,
                                     uint64_t origin_ns) {
  std::vector<capture::ClockExchange> exchanges;
  std::ranges::copy_if(untrusted_exchanges, std::back_inserter(exchanges), IsPossible);
  std::ranges::stable_sort(exchanges, {}, &capture::ClockExchange::before_ns);
  HostClock clock;
  for (const capture::ClockExchange& exchange : exchanges) {
    const int64_t width = exchange.after_ns - exchange.before_ns;
    const HostClock::Knot knot{
        .ns = static_cast<double>(static_cast<int64_t>(exchange.timer_ns - origin_ns)),
        .host_ns = static_cast<double>(exchange.before_ns) + static_cast<double>(width) / 2,
        .error_ns = static_cast<double>(width) / 2};
    if (!clock.knots.empty()) {
      const HostClock::Knot& last = clock.knots.back();
      const double host = knot.host_ns - last.host_ns;
      const double gpu = knot.ns - last.ns;
      // Two that are closer than they are exact: the more exact one is enough.
      if (host <= last.error_ns + knot.error_ns || gpu <= 0) {
        if (knot.error_ns < last.error_ns && gpu > 0) clock.knots.back() = knot;
        continue;
      }
      if (std::abs(gpu - host) > last.error_ns + knot.error_ns + kClocksDiffer * 10 * host) {
        continue;
      }
    }
    if (clock.knots.empty()) {
      clock.realtime_ahead_ns = exchange.realtime_ns - (exchange.before_ns + width / 2);
    }
    clock.knots.push_back(knot);
  }
  if (clock.knots.empty()) return std::nullopt;
  return clock;
}

}  // namespace iket::trace
