// launches.h: the packets of a Perfetto trace that are about launches and about the trace as a
// whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "export/counter_tracks.h"
#include "export/proto.h"
#include "export/tracks.h"
#include "trace/edge_links.h"
#include "trace/model.h"

namespace iket::exporter {

// Process, device, tool and totals, as attributes of the trace.
void WriteAttributes(const trace::Model& model, ProtoWriter& writer);

// The rows on which a viewer shows launches: a stream, and one more of it where launches overlap,
// since slices of one row may not.
struct Queues {
  std::vector<uint32_t> of_launch;  // rows of names
  std::vector<std::string> names;   // "Context 0 Stream 0x0 (2)"
};
Queues AssignQueues(const trace::Model& model);

// One GPU render stage for each launch, on `sequence`; the sequence's state must not have been
// used.
void WriteRenderStages(const trace::Model& model, uint32_t sequence, ProtoWriter& writer);

// Each launch as a slice on its own track, and the moment at which the host made it on that of
// those, if there is one. Both carry one correlation id.
void WriteLaunches(const trace::Model& model, uint32_t sequence, const TrackTree& tracks,
                   ProtoWriter& writer);

// The host marks whose trace time is known, as instants on `track`.
void WriteHostMarks(const trace::Model& model, uint32_t sequence, uint64_t track,
                    ProtoWriter& writer);

// A point of a curve, on the track of that.
void WriteCounter(const CounterPoint& point, uint32_t sequence, uint64_t track,
                  ProtoWriter& writer);

struct HealthLine {
  uint64_t ns;  // as GlobalNs()
  std::string text;
};
// What was lost, refused, left out or is doubtful, a line each: counters, refused kernels and
// declared dependencies without arrows at the trace's start, partial launches at their own. At most
// kMaxHealthLines of each, the rest counted. `edges`: by row of Model::edges; may be empty.
inline constexpr size_t kMaxHealthLines = 100;
std::vector<HealthLine> HealthLines(const trace::Model& model,
                                    std::span<const trace::EdgeCounts> edges);

// The same as instants on `track`.
void WriteHealth(const trace::Model& model, std::span<const trace::EdgeCounts> edges,
                 uint32_t sequence, uint64_t track, ProtoWriter& writer);

}  // namespace iket::exporter
