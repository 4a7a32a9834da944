// clock_summary.h: the clock of the SMs that recorded something, as far as people want to know it.
#pragma once

#include <cstdint>
#include <string>

#include "trace/model.h"

namespace iket::cli {

struct ClockSummary {
  uint64_t sms = 0;
  double residual_max_ns = 0;
  double residual_rms_ns = 0;  // the largest of all SMs
  // The least and the most that any SM had for a tenth of a millisecond.
  double ghz_min = 0, ghz_max = 0;

  // Takes those of another capture in.
  void Add(const ClockSummary& other);
  // One sentence for a person if kernels did not all run at one speed; else empty.
  std::string Change() const;
};

ClockSummary SummarizeClocks(const trace::Model& model);

}  // namespace iket::cli
