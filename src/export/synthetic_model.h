// synthetic_model.h: random models that keep every promise of trace/model.h. For tests and
// benchmarks.
#pragma once

#include <cstdint>

#include "trace/model.h"

namespace iket::exporter {

struct SyntheticOptions {
  uint32_t seed = 1;
  uint32_t launches = 3;
  uint32_t ctas = 8;  // a launch, in one row
  uint32_t warps_per_cta = 4;
  uint32_t events_per_warp = 40;
  uint32_t sms = 4;
  // Unclosed and crossed ranges, ends without begin, unknown ids, flags, an unlogged launch.
  bool faults = true;
};

trace::Model MakeSyntheticModel(const SyntheticOptions& options);

}  // namespace iket::exporter
