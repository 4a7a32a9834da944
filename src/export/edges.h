// edges.h: the model's warps, ranges and marks as one stream of moments in time order.
//
// Every warp gives its begin, then its events as it recorded them, the closes of ranges that it
// never closed, and its end. EdgeStream merges the warps into windows: all edges of a window are
// earlier than, or at the same time as, those of the next. At equal times edges of one warp keep
// the order in which they were recorded, so nesting survives a timer that is coarser than the
// events.
//
// Cost: a gather in runs a warp, then a radix sort that stays in the L2 cache; less than half of
// what writing the trace takes (bench/perfetto_bench.cpp). Memory is 4 bytes an event, 4 a warp,
// and one window.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "export/tracks.h"
#include "trace/model.h"

namespace iket::exporter {

enum class EdgeKind : uint8_t {
  kWarpBegin,
  kWarpEnd,
  kRangeBegin,
  kRangeEnd,
  kMark,          // or an event without declaration
  kUnmatchedEnd,  // closes a range that nobody opened
};

// Has what a writer wants of it: in time order the columns would be read here and there.
struct Edge {
  uint64_t ns = 0;       // %globaltimer, whole ns; never falls within a warp
  uint64_t payload = 0;  // of the event
  uint32_t warp = 0;
  uint32_t event =
      trace::kNoRow;  // kNoRow for warp begins and ends, and the end of an unclosed range
  uint32_t range = trace::kNoRow;
  uint32_t declaration = trace::kNoRow;  // of the event
  uint32_t track = 0;                    // where it is shown; 0 if the stream knows no tracks
  EdgeKind kind = EdgeKind::kMark;
};

// Trace time on the axis of %globaltimer, whole ns. Monotonic; absurd times (of a damaged capture)
// are clamped to what 63 bits hold.
uint64_t GlobalNs(const trace::Model& model, double trace_ns);

class EdgeStream {
 public:
  // Windows get about `edges_per_window` edges; more where so many fall on the same nanosecond.
  // `tracks` may be null. All must outlive the stream.
  EdgeStream(const trace::Model& model, size_t edges_per_window, const TrackTree* tracks = nullptr);

  // Replaces `window` by the next edges, in time order. False at the end, with `window` empty.
  bool Next(std::vector<Edge>& window);

  uint64_t total_edges() const { return total_edges_; }

 private:
  struct SortItem {
    uint64_t ns;
    uint32_t index;  // of gathered_
  };
  // How far a warp has been taken.
  struct Cursor {
    uint32_t warp = 0;
    uint32_t event = 0, event_end = 0;  // rows still to come
    uint32_t range = 0, range_end = 0;
    uint64_t ns = 0;  // of the last edge
    enum { kBegin, kEvents, kUnclosed, kEnd, kDone } stage = kBegin;
  };

  void ChooseWindows(size_t edges_per_window);
  uint64_t TrackOf(const Edge& edge) const;
  // Takes the warp's edges before `end_ns`.
  void Gather(Cursor& cursor, uint64_t end_ns);
  void SortInto(std::vector<Edge>& window);

  const trace::Model& model_;
  const TrackTree* tracks_;
  Column<uint32_t> range_of_end_;  // by event: the range that it closes
  Column<uint32_t> by_begin_;      // warps by the time of their begin
  size_t next_warp_ = 0;           // of by_begin_
  std::vector<Cursor> active_;
  std::vector<uint64_t> window_ends_;  // exclusive; the last is the end of time
  size_t next_window_ = 0;
  std::vector<Edge> gathered_;
  std::vector<SortItem> items_, scratch_;
  uint64_t total_edges_ = 0;
};

}  // namespace iket::exporter
