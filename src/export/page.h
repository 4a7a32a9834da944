// page.h: writes a model as one HTML file that shows it, offline (docs/timeline.md).
//
// The file is the page of viewer/page_parts.h with data: a head (JSON: names, launches, clocks,
// what was lost) and blocks of columns (page_block.h), each deflated and in base64 in an element
// that no browser runs. So whatever a kernel or a mark is called, nothing of it can end an element.
//
// Every warp, range and mark is there. Memory is that of one block, and 4 bytes an event where
// dependencies are declared. Cost: docs/benchmarks/viewer.md.
#pragma once

#include "export/sink.h"
#include "trace/model.h"

namespace iket::exporter {

// Fails when the sink fails or memory is short. The bytes are a function of the model.
Result<void> WritePage(const trace::Model& model, const Sink& sink, const Progress& progress = {});

}  // namespace iket::exporter
