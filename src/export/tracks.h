// tracks.h: the tree of Perfetto tracks that a model is shown on, and its descriptors.
//
//   IKET
//     launch "#3 gemm<<<132x1x1, 384x1x1>>>"   with a slice from its first moment to its last
//       SM 17              or, where the topology is known: GPC 2 > TPC 8 | SM 17
//         CTA (3, 0, 0)
//           warp 0 (load)    Warp Life Time; in brackets its role, where not all do the same
//             StackedRanges  ranges, nested
//             Marker         marks, and both ends of declared dependencies
//             Crossed 1      ranges of divergent lane groups that do not nest, one track a depth
//             load           ranges of tokens, one track a name, and more where they overlap
//             wgmma          ranges and marks of a lane, iket::lane
//           producer (warp 0)  of a group for which a thread of warp 0 speaks, iket::group
//     host                   what the program said, iket::session::mark; only if it did
//     host launches          when it launched each kernel, by the host's clock; only if known
//     trace health           what was lost, refused or is doubtful
//     active warps, events, SM clock   curves, one of each a GPU (counter_tracks.h)
//
// On a software device the names of IKET and of each launch say so.
//
// A launch of more than kMaxCtaTracks CTAs gets a row for each hardware warp slot in place of the
// rows for CTA and warp: the warps of a slot follow each other on it. So the number of tracks is
// bounded by the GPU, not by the grid, and persistent and many-CTA kernels read alike.
//
// Uuids are small numbers, the tracks with most events first: an event then names its track in one
// to three bytes. Order among siblings is explicit everywhere, and no siblings merge.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/proto.h"
#include "trace/model.h"

namespace iket::exporter {

// The root of a trace that holds no measurement; `iket check` knows such a trace by it.
inline constexpr std::string_view kSimulatedRoot = "IKET (software device: no measurement)";

inline constexpr uint64_t kMaxCtaTracks = 2000;

class TrackTree {
 public:
  // `marked`: warps that get a track for marks even if they have none of their own.
  explicit TrackTree(const trace::Model& model, std::span<const uint32_t> marked = {});

  // Uuids of the tracks of a warp. Those of ranges and marks are 0 where the warp's row has none.
  uint64_t LifeTime(uint32_t warp) const { return rows_[row_of_warp_[warp]].uuid; }
  uint64_t OfMark(uint32_t warp, uint32_t declaration) const {
    const uint32_t row = row_of_warp_[warp];
    if (!HasRow(declaration)) return rows_[row].marks;
    return apart_.at(ApartOfMark(row, declaration));
  }
  uint64_t OfRange(uint32_t warp, uint32_t range) const {
    const uint32_t row = row_of_warp_[warp];
    return IsApart(range) ? apart_.at(ApartOf(row, range)) : rows_[row].ranges;
  }
  // The track of the warp's marks; 0 if its row has none and the warp is not one of `marked`.
  uint64_t Marks(uint32_t warp) const { return rows_[row_of_warp_[warp]].marks; }
  // Adds the track of a curve, in front of the launches; before the descriptors are written. At
  // most kMostCurves.
  static constexpr uint32_t kMostCurves = 64;
  uint64_t AddCurve(std::string name, std::string unit, std::string description);
  // For viewers whose rows have no rows below them: what stands apart has its own, the rest of a
  // warp shares the one of its life.
  uint64_t RowOfRange(uint32_t warp, uint32_t range) const {
    return IsApart(range) ? OfRange(warp, range) : LifeTime(warp);
  }
  uint64_t RowOfMark(uint32_t warp, uint32_t declaration) const {
    return HasRow(declaration) ? OfMark(warp, declaration) : LifeTime(warp);
  }
  // Visits those rows in the order of the tree. `path`: "SM 17 | CTA (3, 0, 0) | warp 0".
  void ForEachRow(const std::function<void(uint64_t uuid, uint32_t launch,
                                           const std::string& path)>& visit) const;
  uint64_t health() const { return health_; }
  uint64_t host() const { return host_; }                    // 0 if the model has no host marks
  uint64_t host_launches() const { return host_launches_; }  // 0 if no time of one is known
  uint64_t OfLaunch(size_t launch) const { return launches_[launch]; }
  size_t track_count() const { return next_uuid_ - 1; }

  // Writes the packets of all descriptors, parents before children, as packets of `sequence`.
  // `flush` is called now and then so that the writer can be emptied; false stops.
  template <typename Flush>
  bool WriteDescriptors(ProtoWriter& writer, uint32_t sequence, Flush flush) const {
    for (size_t i = 0; i < tracks_.size(); ++i) {
      WriteDescriptor(writer, sequence, tracks_[i]);
      if (i % 1024 == 1023 && !flush()) return false;
    }
    return true;
  }

 private:
  // Where warps are drawn: one row a warp, or one a warp slot of an SM.
  struct Row {
    uint32_t warp = 0;  // the first one on it
    uint16_t lane = 0;  // of several rows for one slot, where warps overlap: not the first
    bool by_slot = false;
    bool has_ranges = false, has_marks = false;
    uint64_t uuid = 0;
    uint64_t ranges = 0;
    uint64_t marks = 0;
  };
  enum class Kind : uint8_t {
    kRoot,
    kHost,
    kHostLaunches,
    kHealth,
    kCurve,
    kLaunch,
    kGpc,
    kSm,
    kCta,
    kWarp,
    kRanges,
    kMarks,
    kLane,  // or of a group
    kCrossed,
    kToken
  };
  struct Track {
    uint64_t uuid;
    uint64_t parent;   // 0: none
    uint32_t rank;     // among its siblings
    uint32_t subject;  // curve, launch, GPC, a warp of the SM or CTA, row or depth
    Kind kind;
    // Of what stands apart from the ranges and marks of its warp's row.
    trace::StringId group = 0, lane = 0, token = 0;
    uint32_t row = 0;
  };
  // What of a row has a track of its own: ranges that cross others, ranges of tokens, by their
  // names, and whatever has a lane or group.
  struct Apart {
    uint32_t row;
    trace::StringId group, lane;
    Kind kind;
    trace::StringId token;
    uint16_t depth;  // of a range that crosses, or of a token

    auto operator<=>(const Apart&) const = default;
  };
  bool HasRow(uint32_t declaration) const {
    return (model_.declarations[declaration].group | model_.declarations[declaration].lane) != 0;
  }
  bool IsApart(uint32_t range) const {
    return (model_.ranges.flags[range] & (trace::kRangeCrossed | trace::kRangeToken)) != 0 ||
           HasRow(model_.ranges.declaration[range]);
  }
  Apart ApartOfMark(uint32_t row, uint32_t declaration) const {
    const trace::Declaration& it = model_.declarations[declaration];
    return {row, it.group, it.lane, Kind::kLane, 0, 0};
  }
  Apart ApartOf(uint32_t row, uint32_t range) const {
    const trace::Ranges& ranges = model_.ranges;
    Apart apart = ApartOfMark(row, ranges.declaration[range]);
    if ((ranges.flags[range] & trace::kRangeToken) != 0) {
      apart.kind = Kind::kToken;
      apart.token = model_.declarations[ranges.declaration[range]].name;
      apart.depth = ranges.depth[range];
    } else if ((ranges.flags[range] & trace::kRangeCrossed) != 0) {
      apart.kind = Kind::kCrossed;
      apart.depth = ranges.depth[range];
    }
    return apart;
  }

  trace::SmPlace PlaceOf(uint32_t warp) const;  // of its SM
  int32_t GpcOf(uint32_t warp) const { return PlaceOf(warp).gpc; }
  // Gives the warps of a launch their rows, ordered by SM, CTA and warp, or by SM and slot.
  void PlaceByWarp(const trace::Launch& launch);
  void PlaceBySlot(const trace::Launch& launch);
  void Place(uint32_t warp, uint32_t row);
  void PlaceMark(uint32_t row, uint32_t declaration);
  // Numbers the tracks of the rows and, then, everything above them.
  void NumberRows();
  void GrowTree();
  uint64_t Add(uint64_t parent, uint32_t rank, Kind kind, uint32_t subject);
  // Returns the rank of what comes next below `parent`.
  uint32_t AddRow(uint64_t parent, uint32_t rank, uint32_t row);

  std::string NameOf(const Track& track) const;
  std::string NameOfRow(const Row& row) const;
  std::string RoleOfRow(const Row& row) const;  // in brackets; empty if it has none
  std::string NameOfApart(const Track& track) const;
  std::string DescriptionOf(const Track& track) const;
  void WriteDescriptor(ProtoWriter& writer, uint32_t sequence, const Track& track) const;

  const trace::Model& model_;
  Column<Row> rows_;
  Column<uint32_t> row_of_warp_;
  std::map<Apart, uint64_t> apart_;
  Column<Track> tracks_;
  uint64_t next_uuid_ = 1;
  struct Curve {
    std::string name, unit, description;
  };
  std::vector<Curve> curves_;
  uint64_t root_ = 0;
  uint64_t health_ = 0;
  uint64_t host_ = 0;
  uint64_t host_launches_ = 0;
  std::vector<uint64_t> launches_;
  // By launch and warp index, of launches with rows for warps.
  std::vector<std::map<uint32_t, std::string>> roles_;
};

// Is it known when the program launched it, or the graph that it is of?
bool IsLaunchedByHost(const trace::Launch& launch);
// Any of them, and what its host's clock is on the trace's axis.
bool HasHostLaunches(const trace::Model& model);

// "complete", "partial", or that the host did not log the launch, so that nobody knows.
std::string_view CompletenessWord(trace::Completeness completeness);

// Number of CTAs that the launch asked for; where that is not known, of those with a kept record.
uint64_t CtaCount(const trace::Model& model, const trace::Launch& launch);

// "graph 0 node 2 replay 5", "?" where a number is not known; empty if no graph is known.
std::string GraphLabel(const trace::Launch& launch);

// "#3 gemm<<<132x1x1, 384x1x1>>>"; with "#?" and the grid id where the host's log has no such
// launch. A launch by a graph has the graph's label, too.
std::string LaunchLabel(const trace::Model& model, const trace::Launch& launch);

}  // namespace iket::exporter
