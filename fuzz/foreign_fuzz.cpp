// What run-iket recorded, of any bytes: the length of its JSON, the JSON, and the warp buffers.
// What must hold: time never falls within a warp, ranges end after they begin, and every row that a
// model refers to is there.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "foreign/read_run.h"
#include "trace/edge_links.h"
#include "trace/statistics.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void Check(const iket::trace::Model& model) {
  for (uint32_t warp = 0; warp < model.warps.size(); ++warp) {
    const uint32_t first = model.warps.first_event[warp];
    Require(first + model.warps.event_count[warp] <= model.events.size());
    for (uint32_t i = 1; i < model.warps.event_count[warp]; ++i) {
      Require(model.events.cycles[first + i - 1] <= model.events.cycles[first + i]);
    }
    Require(model.warps.begin_cycles[warp] <= model.warps.end_cycles[warp]);
    const auto& launch = model.launches[model.warps.launch[warp]];
    Require(model.warps.sm[warp] < model.devices[launch.device].clock_count);
    Require(launch.kernel < model.kernels.size());
  }
  for (size_t i = 0; i < model.ranges.size(); ++i) {
    Require(model.ranges.begin_cycles[i] <= model.ranges.end_cycles[i]);
    Require(model.ranges.declaration[i] < model.declarations.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint32_t json_size = 0;
  if (size < sizeof json_size) return 0;
  std::memcpy(&json_size, data, sizeof json_size);
  const auto rest = std::as_bytes(std::span(data, size)).subspan(sizeof json_size);
  const auto json = rest.first(json_size < rest.size() ? json_size : rest.size());
  const auto buffers = rest.subspan(json.size());
  (void)iket::foreign::LooksLikeRawRun(json);
  const auto raw = iket::foreign::ParseRawRun(json, "fuzz");
  if (!raw) return 0;
  const auto run = iket::foreign::MakeRun(*raw, [&](const std::string&) { return buffers; });
  Require(run.has_value());
  Check(run->model);
  iket::trace::Summarize(run->model, {.all_launches = true});
  iket::trace::LinkEdges(run->model);
  return 0;
}
