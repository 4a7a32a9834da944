#include "export/perfetto.h"

#include <utility>

#include "export/edges.h"
#include "export/launches.h"
#include "export/proto.h"
#include "export/tracks.h"
#include "export/window_encoder.h"
#include "trace/edge_links.h"

namespace iket::exporter {
namespace {

constexpr uint32_t kHeadSequence = 1;  // descriptors, launches, health
constexpr uint32_t kFirstWindowSequence = 2;
constexpr size_t kFlushBytes = 1 << 20;

// Empties a ProtoWriter into a sink and remembers the first error.
class Output {
 public:
  explicit Output(const Sink& sink) : sink_(sink) {}

  ProtoWriter& writer() { return writer_; }
  const Result<void>& status() const { return status_; }

  bool Flush() {
    if (status_ && writer_.size() != 0) status_ = sink_(writer_.bytes());
    writer_.Clear();
    return status_.has_value();
  }
  bool FlushIfLarge() { return writer_.size() < kFlushBytes || Flush(); }

 private:
  const Sink& sink_;
  ProtoWriter writer_;
  Result<void> status_;
};

// Those with an end of a declared dependency.
std::vector<uint32_t> WarpsOf(const trace::EdgeLinks& links, const trace::Model& model) {
  std::vector<uint32_t> warps;
  for (const trace::EdgeLink& link : links.links) {
    warps.push_back(model.events.warp[link.from]);
    warps.push_back(model.events.warp[link.to]);
  }
  return warps;
}

}  // namespace

Result<void> WritePerfetto(const trace::Model& model, const Sink& sink,
                           const PerfettoOptions& options) {
  Output output(sink);
  const trace::EdgeLinks links = trace::LinkEdges(model);
  const TrackTree tracks(model, WarpsOf(links, model));
  WriteAttributes(model, output.writer());
  WriteRenderStages(model, kHeadSequence, output.writer());
  if (!tracks.WriteDescriptors(output.writer(), kHeadSequence,
                               [&] { return output.FlushIfLarge(); })) {
    return output.status();
  }
  if (tracks.host() != 0) {
    WriteHostMarks(model, kHeadSequence, tracks.host(), output.writer());
  }
  WriteHealth(model, links.counts, kHeadSequence, tracks.health(), output.writer());

  EdgeStream stream(model, options.edges_per_window);
  WindowEncoder encoder(model, tracks, links.links, options.range_cycles);
  std::vector<Edge> window;
  uint64_t done = 0;
  for (uint32_t sequence = kFirstWindowSequence; stream.Next(window); ++sequence) {
    encoder.Encode(window, sequence, output.writer());
    if (!output.Flush()) return output.status();
    done += window.size();
    if (options.progress) options.progress(done, stream.total_edges());
  }
  output.Flush();
  return output.status();
}

}  // namespace iket::exporter
