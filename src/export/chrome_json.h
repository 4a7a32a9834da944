// chrome_json.h: writes a model in the Trace Event Format that chrome://tracing, ui.perfetto.dev
// and many other viewers read (.chrome.json).
//
// A process a launch, a thread a row of the timeline, named and ordered as in Perfetto (tracks.h):
// "SM 17 | CTA (3, 0, 0) | warp 0" has the warp's life and, inside of it, its ranges and marks;
// tokens, lanes, groups and crossed ranges have threads of their own. Complete events (X) are lives
// and ranges, instants (i) marks, flow events (s, f) arrows; process 0 has the launches, what the
// host said, and what is wrong with the trace. Arguments are values by name, cycles, and states.
//
// `ts` and `dur` are in microseconds since otherData.origin_ns, with three digits: whole ns, as far
// as they are known. Streamed: memory is that of the tree of tracks and the sink's block.
#pragma once

#include "export/sink.h"
#include "trace/model.h"

namespace iket::exporter {

// `progress` may be empty; told the share of warps that were written. Fails only when the sink
// fails. The bytes are a function of the model.
Result<void> WriteChromeJson(const trace::Model& model, const Sink& sink,
                             const Progress& progress = {});

}  // namespace iket::exporter
