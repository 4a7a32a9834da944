// perfetto.h: writes a model as a Perfetto trace (.pftrace).
//
// Ranges, marks and warp lifetimes become track events on the tracks of tracks.h; each launch is
// a slice on its own track, and a GPU render stage, so that the kernel table and the GPU rows of
// the viewer are filled. Payloads are typed arguments: `payload` of what opens a range or of a
// mark, `end_payload` of what closes it. Losses, refusals and partial launches are instants on the
// track "trace health". Warps that run, events a microsecond and the clock of an SM are curves
// (counter_tracks.h).
//
// Layout: all events in time order, cut into windows; each window is a packet sequence of its own
// with interned names and times as differences (clock 64), so windows could be encoded side by side
// and a reader needs little state. At most 33 bytes a range without payload (a test holds it to
// that). Cost: see bench/perfetto_bench.cpp; memory is that of EdgeStream and one window for each
// thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "export/sink.h"
#include "trace/model.h"

namespace iket::exporter {

struct PerfettoOptions {
  // Adds the argument `cycles` to every range, 7 bytes each. Warp lifetimes always have it.
  bool range_cycles = false;
  size_t edges_per_window = 200'000;
  // That encode windows; 0: one for each core, at most four. The bytes are the same.
  uint32_t threads = 0;
  // Called about once a window with the share of edges that were written; may be empty.
  Progress progress = {};
};

// Writes the whole trace to `sink`; fails only when the sink fails. The bytes are a function of the
// model and the options.
Result<void> WritePerfetto(const trace::Model& model, const Sink& sink,
                           const PerfettoOptions& options = {});

}  // namespace iket::exporter
