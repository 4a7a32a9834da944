// window_encoder.h: one window of edges as one Perfetto packet sequence.
//
// The first packet of a sequence carries its clock, the names that it uses and the defaults; then
// one packet an edge. Nothing outside the window is referred to except tracks, so windows are
// independent.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "export/edges.h"
#include "export/proto.h"
#include "export/tracks.h"
#include "ring/event_kind.h"
#include "trace/edge_links.h"

namespace iket::exporter {

class WindowEncoder {
 public:
  // `range_cycles`: the argument `cycles` on every range. Model and tree must outlive the encoder.
  // `links`: the model's declared dependencies, each an arrow between two instants of its own; the
  // tree has tracks for them.
  WindowEncoder(const trace::Model& model, const TrackTree& tracks,
                std::span<const trace::EdgeLink> links, bool range_cycles);

  // Appends the packets of `window` (not empty, in time order) as sequence `sequence`.
  void Encode(std::span<const Edge> window, uint32_t sequence, ProtoWriter& writer);

 private:
  // One end of a declared dependency.
  struct LinkEnd {
    uint32_t event = 0;
    uint32_t link = 0;
    bool is_target = false;

    auto operator<=>(const LinkEnd&) const = default;
  };

  // Names are numbered over the whole trace ("labels": warp lifetime, declarations, unmatched ends
  // of declarations, declared dependencies) and given small interning ids window by window.
  uint32_t LabelOf(const Edge& edge) const;
  std::string LabelText(uint32_t label) const;
  // Of a declaration whose place in the source is known; null for other labels.
  const trace::Declaration* PlacedDeclaration(uint32_t label) const;
  void InternNames(std::span<const Edge> window);

  void WriteHead(uint64_t first_ns, uint32_t sequence, ProtoWriter& writer);
  void WriteWarpBegin(const Edge& edge, uint64_t delta_ns, uint32_t sequence, ProtoWriter& writer);
  void NameArguments(const trace::Declaration& declaration);
  // The name of the argument that is the n-th value of an event, the payload being the first, as an
  // interning id: the same in every window.
  uint32_t ArgumentOf(uint32_t declaration, size_t value, bool at_end) const;
  // An event with several values, or an instant that others depend on, or that depends on another.
  // False: it is none.
  bool WriteLarge(const Edge& edge, uint64_t delta_ns, uint32_t sequence, ProtoWriter& writer);
  void WriteEdge(const Edge& edge, uint64_t delta_ns, uint32_t sequence, ProtoWriter& writer);
  // The ends of declared dependencies that are at this event.
  void WriteLinks(const Edge& edge, uint32_t sequence, ProtoWriter& writer);
  std::span<const LinkEnd> LinksAt(uint32_t event) const;
  uint8_t* PutValue(uint8_t* out, const Edge& edge, uint8_t index, uint64_t value) const;
  // The fields of the track event that stands for `edge`: at most 80 bytes, and 16 for each of
  // these rows of Model::values.
  uint8_t* PutEvent(uint8_t* out, const Edge& edge, size_t first_value = 0,
                    size_t last_value = 0) const;

  uint32_t LabelOfLink(uint32_t link) const {
    return static_cast<uint32_t>(1 + 2 * model_.declarations.size()) + links_[link].edge;
  }
  void Use(uint32_t label);  // in this window

  const trace::Model& model_;
  const TrackTree& tracks_;
  const std::span<const trace::EdgeLink> links_;
  std::vector<LinkEnd> link_ends_;  // sorted
  const bool range_cycles_;
  std::set<uint32_t> used_arguments_;               // numbers, in this window
  std::set<trace::StringId> used_categories_;       // likewise
  const bool has_large_;                            // whether any event is for WriteLarge()
  std::map<trace::StringId, uint32_t> categories_;  // numbered from 0
  std::map<std::string, uint32_t> value_names_;     // from 1
  std::vector<std::string> names_;                  // by those numbers, less one
  // By declaration and value; 0: it has no name of its own.
  std::vector<std::array<uint32_t, ring::kMostValues>> arguments_;
  std::vector<uint32_t> iids_;        // by label; 0: not in this window
  Column<uint32_t> flows_by_source_;  // rows of Model::flows
  std::vector<uint32_t> used_;        // labels of this window, in the order of their iids
};

}  // namespace iket::exporter
