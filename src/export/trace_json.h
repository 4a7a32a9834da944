// trace_json.h: writes a model as JSON in the schema of NVIDIA's run-iket (.trace.json), so that
// scripts written for its output read ours.
//
// Every key of its files is there, of its type and meaning: `ranges` with two `internalEvents` and
// two `warpLocIdxs`, `rangeType` 1 for ranges with a beginning and an end of their own (both events
// have one id) and 2 for pushed ones (whose end has event id 31), `payloadType` as declared and
// `payloadVal` the payload's bits, unsigned, colour 4294967295 where it is automatic, -1 where the
// place of an SM is not known, times in ns since the epoch of %globaltimer. Of marks that NVIDIA's
// metadata declares `eventId` and `rangeId` are the metadata's; of ours the first is a number from
// 1 on that skips 31, and goes past it, and the second the FNV-1a-32 of the name. An event with
// several values has the first as its payload.
//
// So an export of what run-iket recorded (foreign/) is what run-iket makes of it, in its order (by
// launch, SM, CTA and warp; ranges of a warp by their begins, where run-iket's that begin at one
// time stand in any order), but for what ours knows more, in keys that its files have not:
// `meta.iket` (the device, what was lost and could not be paired, declared dependencies, and the
// ranges that were never closed, which end with their warp and have one event) and, of an event
// with several values, `iketValues` with the others. Ends without a beginning are counted, and are
// no ranges.
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
