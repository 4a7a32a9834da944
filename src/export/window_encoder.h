// window_encoder.h: one window of edges as one Perfetto packet sequence.
//
// The first packet of a sequence carries its clock, the names that it uses and the defaults; then
// one packet an edge. Nothing outside the window is referred to except tracks, so windows are
// independent.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "export/edges.h"
#include "export/proto.h"
#include "export/tracks.h"

namespace iket::exporter {

class WindowEncoder {
 public:
  // `range_cycles`: the argument `cycles` on every range. Model and tree must outlive the encoder.
  WindowEncoder(const trace::Model& model, const TrackTree& tracks, bool range_cycles);

  // Appends the packets of `window` (not empty, in time order) as sequence `sequence`.
  void Encode(std::span<const Edge> window, uint32_t sequence, ProtoWriter& writer);

 private:
  // Names are numbered over the whole trace ("labels": warp lifetime, declarations, unmatched ends
  // of declarations) and given small interning ids window by window.
  uint32_t LabelOf(const Edge& edge) const;
  std::string LabelText(uint32_t label) const;
  // Of a declaration whose place in the source is known; null for other labels.
  const trace::Declaration* PlacedDeclaration(uint32_t label) const;
  void InternNames(std::span<const Edge> window);

  void WriteHead(uint64_t first_ns, uint32_t sequence, ProtoWriter& writer);
  void WriteWarpBegin(const Edge& edge, uint64_t delta_ns, uint32_t sequence, ProtoWriter& writer);
  // An instant that others depend on, or that depends on another. False: it is none.
  bool WriteFlow(const Edge& edge, uint64_t delta_ns, uint32_t sequence, ProtoWriter& writer);
  // The fields of the track event that stands for `edge`: at most 66 bytes.
  uint8_t* PutEvent(uint8_t* out, const Edge& edge) const;

  const trace::Model& model_;
  const TrackTree& tracks_;
  const bool range_cycles_;
  std::vector<uint32_t> iids_;             // by label; 0: not in this window
  std::vector<uint32_t> flows_by_source_;  // rows of Model::flows
  std::vector<uint32_t> used_;             // labels of this window, in the order of their iids
};

}  // namespace iket::exporter
