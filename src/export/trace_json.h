// trace_json.h: writes a model as JSON in the schema of NVIDIA's run-iket (.trace.json), so that
// scripts written for its output read ours.
//
// Every key of its files is there, with its meaning: `ranges` with two `internalEvents` and two
// `warpLocIdxs`, `rangeType` 1 for ranges with a beginning and an end of their own and 2 for pushed
// ones (whose end has event id 31), `rangeId` the FNV-1a-32 of the name, `payloadVal` the payload's
// bits, colour 4294967295 where it is automatic, times in ns since the epoch of %globaltimer. What
// differs, because ours knows more: any number of events, so event ids go past 31; a location for
// each warp of each launch; a range that was never closed has one internal event and ends with its
// warp; `meta.iket` says which device it was, what was lost and what could not be paired. Ends
// without a beginning are counted there, and are no ranges.
//
// Streamed: memory is that of the sink's block. Text that is not UTF-8 is mended (json_writer.h).
#pragma once

#include <cstdint>
#include <functional>

#include "export/sink.h"
#include "trace/model.h"

namespace iket::exporter {

// `progress` may be empty; called now and then with the share of warps that were written. Fails
// only when the sink fails. The bytes are a function of the model.
Result<void> WriteTraceJson(const trace::Model& model, const Sink& sink,
                            const Progress& progress = {});

}  // namespace iket::exporter
