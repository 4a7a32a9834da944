// cta_timeline.h: what each warp of a CTA did, moment by moment, and the same in columns of time.
//
// Time is in cycles of the CTA's SM, so it is exact. Each row covers the whole life of the CTA
// without a gap: a moment is in a range, in none, before or after the warp's life, or not known
// because records were lost. What is not known is never called idle: behind a loss a moment outside
// every known range counts as known only if no lost range can have been open, which the ends that
// nobody opened tell.
//
// Cost: n log n in the ranges of the CTA, once; columns of a window by a walk over its spans.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/ctas.h"
#include "trace/model.h"

namespace iket::analyze {

enum class Moment : uint8_t {
  kAbsent,   // the warp had not begun, or had ended
  kNoRange,  // no range was open
  kUnknown,  // lost, or not recorded yet
  kRange,
};

// From where the span before it ends, or from the timeline's begin.
struct Span {
  uint64_t end = 0;
  Moment moment = Moment::kAbsent;
  trace::StringId name = 0;  // of a range

  bool Same(const Span& other) const { return moment == other.moment && name == other.name; }
};

struct Instant {
  uint64_t cycles = 0;
  uint32_t declaration = 0;
};

struct TimelineRow {
  enum class Kind : uint8_t {
    kWarp,     // the innermost range, or with `depths` the outermost
    kDepth,    // of `depths`: the ranges of one depth
    kApart,    // ranges beside the stack: of a token's name, a lane or a group
    kMarks,    // points
    kMissing,  // a warp of the CTA of which nothing is kept
  };
  Kind kind = Kind::kWarp;
  uint32_t warp = trace::kNoRow;   // row of Model::warps
  uint32_t index = trace::kNoRow;  // warp within the CTA
  trace::StringId group = 0, lane = 0, token = 0;
  uint32_t depth = 0;
  std::vector<Span> spans{};        // to the timeline's end; empty of kMarks
  std::vector<Instant> instants{};  // of kMarks, ascending
};

struct CtaTimeline {
  uint64_t begin = 0, end = 0;  // cycles; of the warps that are kept
  std::vector<TimelineRow> rows;
  // Of the CTA's warps.
  uint32_t missing = 0;  // not kept at all
  uint32_t begin_missing = 0, end_missing = 0, running = 0, holed = 0, suspect = 0, wrap_gap = 0;
  bool repeated = false;  // several warps have one index: launches that cannot be told apart
};

struct TimelineOptions {
  bool depths = false;  // a row for each depth of the stack
  bool marks = true;
};

CtaTimeline TimelineOf(const trace::Model& model, const Cta& cta, const TimelineOptions& options);

// Cycles [from, to) of the SM in `columns` parts, as equal as whole cycles are; at most to - from.
struct Columns {
  uint64_t from = 0, to = 0;
  uint32_t count = 1;

  uint64_t Begin(uint32_t column) const;  // that of `count` is `to`
  uint32_t Of(uint64_t cycles) const;     // of a moment inside
};

// For each column what covers most of it; of equals that which comes first.
std::vector<Span> CellsOf(const TimelineRow& row, const CtaTimeline& timeline,
                          const Columns& columns);

// For each column how many instants fall into it, and what they are.
struct InstantCell {
  uint32_t count = 0;
  uint32_t declaration = trace::kNoRow;  // of the first
  bool several = false;                  // of more than one name
};
std::vector<InstantCell> InstantCellsOf(const trace::Model& model, const TimelineRow& row,
                                        const Columns& columns);

struct NameTotal {
  trace::StringId name = 0;
  uint64_t count = 0;   // ranges of which a part is inside, or instants
  uint64_t cycles = 0;  // their parts inside, what is nested in them included
};
// What is inside a window, over all warps of the CTA.
struct WindowTotals {
  std::vector<NameTotal> ranges;       // most cycles first
  std::vector<NameTotal> marks;        // most first
  uint64_t no_range = 0, unknown = 0;  // cycles of the rows of warps
};
WindowTotals TotalsOf(const trace::Model& model, const Cta& cta, const CtaTimeline& timeline,
                      uint64_t from, uint64_t to);

}  // namespace iket::analyze
