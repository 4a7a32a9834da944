#include "trace/uncertainty.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace iket::trace {
namespace {

constexpr double kTimerStepNs = 32;
// Frequencies that an SM had for less are those of a fit's corners.
constexpr double kLeastNs = 1e5;

// Two digits, never less than it is: "0.51 ns", "33 ns", "1.3 ms".
std::string RoundedUp(double ns) {
  struct Unit {
    double ns;
    std::string_view name;
  };
  constexpr std::array<Unit, 4> kUnits{{{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}}};
  if (!(ns > 0)) return "0 ns";
  const double step = std::pow(10, std::floor(std::log10(ns)) - 1);
  const double rounded = std::ceil(ns / step * (1 - 1e-12)) * step;
  const auto unit = std::find_if(kUnits.rbegin(), kUnits.rend() - 1,
                                 [&](const Unit& it) { return rounded >= it.ns * (1 - 1e-9); });
  const double value = rounded / unit->ns;
  return fmt::format("{:.{}g} {}", value, value >= 100 ? 3 : 2, unit->name);
}

}  // namespace

Uncertainty UncertaintyOf(const Model& model) {
  Uncertainty uncertainty;
  double slowest_ghz = 0;
  for (const SmClock& clock : model.clocks) {
    if (clock.pairs == 0) continue;
    uncertainty.gpu_max_ns = std::max(uncertainty.gpu_max_ns, clock.residual_max_ns);
    uncertainty.gpu_rms_ns = std::max(uncertainty.gpu_rms_ns, clock.residual_rms_ns);
    const double least = clock.LeastAndMostGHz(kLeastNs).first;
    if (least > 0) slowest_ghz = slowest_ghz == 0 ? least : std::min(slowest_ghz, least);
  }
  if (slowest_ghz == 0) uncertainty.timer_step_ns = kTimerStepNs;
  if (slowest_ghz > 0) uncertainty.cycle_ns = 1 / slowest_ghz;

  if (!model.host_clock) return uncertainty;
  double last_ns = 0;
  for (const Launch& launch : model.launches) last_ns = std::max(last_ns, launch.last_ns);
  const double error = std::max(model.host_clock->ErrorNs(0), model.host_clock->ErrorNs(last_ns));
  if (std::isfinite(error)) uncertainty.host_ns = error;
  return uncertainty;
}

std::string Uncertainty::Sentence() const {
  std::string text = timer_step_ns ? fmt::format("{} everywhere", RoundedUp(*timer_step_ns))
                                   : fmt::format("a cycle ({}) within an SM, {} (rms {}) among SMs",
                                                 RoundedUp(cycle_ns), RoundedUp(gpu_max_ns),
                                                 RoundedUp(gpu_rms_ns));
  if (host_ns) text += fmt::format(", {} to the host's clock", RoundedUp(*host_ns));
  return text;
}

}  // namespace iket::trace
