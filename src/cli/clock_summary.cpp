#include "cli/clock_summary.h"

#include <fmt/format.h>

#include <algorithm>

namespace iket::cli {
namespace {

// Long enough for a slope that the timer's steps of 32 ns do not bend.
constexpr double kLeastNs = 100'000;
// What is a change and not the error of a fit.
constexpr double kChange = 0.02;

}  // namespace

void ClockSummary::Add(const ClockSummary& other) {
  if (other.sms == 0) return;
  ghz_min = sms == 0 ? other.ghz_min : std::min(ghz_min, other.ghz_min);
  ghz_max = std::max(ghz_max, other.ghz_max);
  residual_max_ns = std::max(residual_max_ns, other.residual_max_ns);
  residual_rms_ns = std::max(residual_rms_ns, other.residual_rms_ns);
  sms += other.sms;
}

std::string ClockSummary::Change() const {
  if (sms == 0 || ghz_min <= 0 || ghz_max - ghz_min < kChange * ghz_max) return "";
  return fmt::format("{:.2f} to {:.2f} GHz while kernels ran: compare cycles, not times", ghz_min,
                     ghz_max);
}

ClockSummary SummarizeClocks(const trace::Model& model) {
  ClockSummary summary;
  for (const trace::SmClock& clock : model.clocks) {
    if (clock.pairs == 0) continue;
    const auto [least, most] = clock.LeastAndMostGHz(kLeastNs);
    summary.Add({.sms = 1,
                 .residual_max_ns = clock.residual_max_ns,
                 .residual_rms_ns = clock.residual_rms_ns,
                 .ghz_min = least,
                 .ghz_max = most});
  }
  return summary;
}

}  // namespace iket::cli
