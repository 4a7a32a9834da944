// model.h: what a capture says, as columns: the one structure that exporters and analyses read.
//
// Plain data, structure of arrays: a row of a table is an index into its columns, `kNoRow` means
// "no row". Rows of `warps` are ordered by launch, then CTA, then warp; a warp's rows in `events`,
// `ranges` and `marks` stand together, in the order in which the warp recorded them.
//
// Time. An SM counts cycles (`cycles`: %clock unwrapped to 64 bits, one axis an SM, about half a
// nanosecond each); SMs are placed on one axis by NsOf: nanoseconds since `origin_ns`, the
// %globaltimer of the first kept moment, so never negative. Compare cycles only within one SM.
//
// Nothing is left out silently: whatever could not be kept, told or paired is counted in
// `counters`, and flagged on the row that it touches.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/column.h"
#include "trace/counters.h"
#include "trace/host_clock.h"
#include "trace/sm_clock.h"

namespace iket::trace {

inline constexpr uint32_t kNoRow = 0xffffffffu;

using StringId = uint32_t;  // index into Model::strings; equal strings have equal ids, 0 is ""

// What a record does to its warp's stack of ranges.
enum class EventKind : uint8_t {
  kMark,         // a point
  kPush,         // opens a range
  kPop,          // closes the innermost pushed range; has no name
  kRangeBegin,   // opens a scoped range
  kRangeEnd,     // closes the innermost open scoped range of its own name
  kTokenBegin,   // opens a range beside the others
  kTokenEnd,     // closes the one of its name that its token names
  kFlowOut,      // a point from which something goes on, by name and payload
  kFlowIn,       // a point at which it has come
  kSync,         // a point at which the warp read both clocks
  kTokenEither,  // opens a range beside the others, or closes the one of its name that is open
  kUnknown,      // no declaration has this id; the event's payload is the id
};

constexpr bool Opens(EventKind kind) {
  return kind == EventKind::kPush || kind == EventKind::kRangeBegin ||
         kind == EventKind::kTokenBegin || kind == EventKind::kTokenEither;
}
constexpr bool Closes(EventKind kind) {
  return kind == EventKind::kPop || kind == EventKind::kRangeEnd || kind == EventKind::kTokenEnd;
}

constexpr bool IsPoint(EventKind kind) { return !Opens(kind) && !Closes(kind); }

// How the payload bits of an event read. 32-bit types stand in the low word, the high one is zero;
// narrower integers of the capture are widened to 32 bits, pointers are kU64.
enum class PayloadType : uint8_t { kNone, kU32, kS32, kF32, kU64, kS64, kF64 };

constexpr bool IsWide(PayloadType type) { return type >= PayloadType::kU64; }

// Where an SM sits; -1 unknown, never a guess.
struct SmPlace {
  int32_t tpc = -1;
  int32_t gpc = -1;
};

// One GPU.
struct Device {
  StringId name = 0;
  StringId uuid = 0;
  bool simulated = false;  // software: its times are a model's, nothing here is a measurement
  uint32_t sm_count = 0;
  uint32_t compute_major = 0, compute_minor = 0;
  uint32_t sm_clock_max_khz = 0;  // as the driver states it; 0 unknown
  uint32_t index = 0;             // as CUDA numbers devices in that process
  std::vector<SmPlace> places;    // by SM; empty if the topology is not known
  uint32_t first_clock = 0;       // row of SM 0 in Model::clocks
  uint32_t clock_count = 0;       // rows there: up to the last SM that has a ring
};

struct Kernel {
  StringId mangled = 0;
  StringId demangled = 0;   // in full
  StringId short_name = 0;  // unique among the capture's kernels, fit for a label
  bool numbered = false;    // short_name ends in its number, #3: others are called the same
  StringId refusal = 0;     // why nothing was recorded for it; "" if it was
  bool left_out = false;    // nothing was to be recorded for it
};

// One value of several that an event carries.
struct Value {
  StringId name = 0;
  PayloadType type = PayloadType::kNone;
};

struct Declaration {
  uint32_t id = 0;  // the 31 bits that records carry
  EventKind kind = EventKind::kUnknown;
  PayloadType payload = PayloadType::kNone;
  // The number that the declaration gives the payload's type (capture::PayloadType): `payload` has
  // widened narrow integers and small floats. 0: nothing beyond `payload` is known.
  uint8_t payload_declared = 0;
  StringId name = 0;
  StringId payload_name = 0;  // what the payload is called; "" just that
  std::vector<Value> more{};  // values beside the payload: see Model::values
  StringId category = 0;
  // A row of its own on the timeline: of the CTA (`group`: the warp speaks for several), or below
  // the warp (`lane`), or both. Ranges nest within their row.
  StringId group = 0;
  StringId lane = 0;
  StringId file = 0;         // where it stands in the source; "" unknown
  uint32_t line = 0;         // 0 unknown
  uint32_t colour = kNoRow;  // 0x00RRGGBB; kNoRow: automatic
  bool left_out = false;     // nothing of it was to be recorded, and nothing of it is in the model
  // Of a mark of another tool's: what NVIDIA's metadata calls event and range; kNoRow: it is ours.
  uint32_t foreign_event = kNoRow;
  uint32_t foreign_range = kNoRow;
};

enum class Completeness : uint8_t {
  kComplete,  // begin and end of every warp of the grid are kept: statistics use these
  kPartial,   // some warp, or part of one, is missing or doubtful
  kUnknown,   // not matched to the host's log: how many warps it had is not known
};

// One launch of a kernel, by the host or by a graph: the warps of one grid id, matched to the
// host's log where possible. Launches of a graph that cannot be told apart stand in one row.
struct Launch {
  uint32_t kernel = kNoRow;  // kNoRow for records whose kernel is not known
  uint32_t context = 0;      // index of the CUDA context within the process
  uint32_t device = 0;       // row of Model::devices
  uint32_t grid_id = 0;      // %gridid, low 32 bits; a graph replay may repeat it

  // From the host's log. Where `sequence` is kNoRow (not matched) grid, block and cluster are still
  // known if all logged launches of the kernel agree on them, and zero otherwise; the rest is zero.
  uint32_t sequence = kNoRow;            // n-th launch that the process made, from 0
  std::array<uint32_t, 3> grid = {};     // CTAs
  std::array<uint32_t, 3> block = {};    // threads
  std::array<uint32_t, 3> cluster = {};  // CTAs; zero if not given at the launch
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  uint64_t stream = 0;
  uint64_t host_ns = 0;  // when the host launched it, CLOCK_MONOTONIC

  // Of a launch by a graph `sequence`, `stream` and `host_ns` are of the graph's launch. Each of
  // these is kNoRow where it is not known, as after a loss, and for launches by the host.
  uint32_t graph = kNoRow;   // the executable graph, in the order in which they were instantiated
  uint32_t node = kNoRow;    // in the order of the driver, nodes of child graphs counted too
  uint32_t replay = kNoRow;  // how many launches of this graph were before this one

  // The place of the only cluster (without clusters, CTA) that was to be recorded; nothing: all.
  std::optional<std::array<uint32_t, 3>> only_cluster{};

  Completeness completeness = Completeness::kUnknown;
  uint64_t warps_expected = 0;  // 0 if not known
  uint32_t first_warp = 0;      // rows [first_warp, first_warp + warp_count) of Model::warps
  uint32_t warp_count = 0;      // warps of which at least one record is kept
  uint32_t warps_begun = 0;     // of these, with a kept begin
  uint32_t warps_ended = 0;     // of these, with a kept end
  uint32_t warps_suspect = 0;   // of these, with a flag kWarpSuspect
  uint32_t warps_holed = 0;     // of these, with a flag kWarpHoled
  uint32_t warps_orphan = 0;    // of these, with a flag kWarpOrphan
  uint64_t events_kept = 0;
  // Records overwritten on rings whose oldest kept warp is one of this launch and lost its begin,
  // or of which a warp of this launch lost its middle. An upper bound: some of them may be of
  // launches before it. 0: nothing of it was overwritten, as far as its warps are here.
  uint64_t lost_at_most = 0;
  double first_ns = 0;  // earliest and latest kept moment, trace time
  double last_ns = 0;

  // No launch: the home of what is left of warps that nobody knows, of any launches of a context.
  bool IsNobodys() const {
    return sequence == kNoRow && kernel == kNoRow && warp_count != 0 && warps_orphan == warp_count;
  }
};

// Flags of a warp.
enum WarpFlag : uint8_t {
  kWarpBeginMissing = 1,  // its begin was overwritten: begin_cycles is its oldest kept record
  kWarpEndMissing = 2,    // no end known: end_cycles is its newest kept record
  kWarpRunning = 4,       // had not ended when the rings were read (hang, fault, kill, snapshot)
  kWarpSuspect = 8,       // its ring contradicts itself: do not trust what is said of it
  kWarpWrapGap = 16,      // so long, or silent for so long, that a wrap of a clock may be missed
  kWarpPartialExit = 32,  // some of its lanes left before others
  kWarpOrphan = 64,       // no identity kept: CTA and index are not known (0 and kNoRow)
  kWarpHoled = 128,       // records in its middle were overwritten: see Model::holes
};

inline constexpr uint8_t kNoSlot = 0xff;  // it is not known

struct Warps {
  Column<uint32_t> launch;
  Column<uint32_t> cta_x;
  Column<uint16_t> cta_y, cta_z;         // 0 in kernels that never read blockIdx.y and z
  Column<uint32_t> index;                // warp within its CTA; kNoRow without block dimensions
  Column<uint16_t> tid_x, tid_y, tid_z;  // threadIdx of one of its threads; z modulo 32
  Column<uint16_t> sm;
  Column<uint8_t> slot;   // hardware warp slot of the SM, or kNoSlot
  Column<uint8_t> flags;  // WarpFlag
  Column<uint64_t> begin_cycles, end_cycles;
  Column<double> begin_ns, end_ns;
  Column<uint32_t> first_event, event_count;  // rows of Model::events
  Column<uint32_t> first_range, range_count;  // rows of Model::ranges
  Column<uint32_t> first_mark, mark_count;    // rows of Model::marks

  size_t size() const { return launch.size(); }
};

// Every kept event, in the order of record, but those of declarations that are left out, and pops
// that close such pushes. Whether `payload` means anything, and how it reads, is
// said by the declaration's payload type.
struct Events {
  Column<uint32_t> warp;
  Column<uint32_t> declaration;  // row of Model::declarations
  Column<uint64_t> cycles;
  Column<uint64_t> payload;

  size_t size() const { return warp.size(); }
};

// Values of events beside the payload, by event and index.
struct Values {
  Column<uint32_t> event;  // row of Model::events
  Column<uint8_t> index;   // of Declaration::more; kPayload: the payload itself, again
  Column<uint64_t> value;  // as Events::payload, by Value::type

  static constexpr uint8_t kPayload = 0xff;

  size_t size() const { return event.size(); }
  // The rows of one event, as [first, last). An event may lack some.
  std::pair<size_t, size_t> Of(uint32_t row) const {
    const auto [first, last] = std::ranges::equal_range(event, row);
    return {first - event.begin(), last - event.begin()};
  }
};

// Flags of a range.
enum RangeFlag : uint8_t {
  kRangeUnclosed = 1,  // no close kept: it was closed at its warp's last moment
  // It overlaps another range of its warp without nesting in it (two lane groups of a divergent
  // warp). Both carry the flag. Such ranges must not be drawn as slices of one nested track.
  kRangeCrossed = 2,
  // With kRangeUnclosed: it was open when a loss in its warp's middle began, where it ends; whether
  // it was closed then is not known.
  kRangeCut = 4,
  // Of a token: beside the stack, and beside others of its name.
  kRangeToken = 8,
};

// Ranges of a warp, in the order of their begins. Those of one warp and one depth never overlap;
// without kRangeCrossed a range lies inside the one of depth - 1 that was open when it began.
// Ranges of tokens count depths of their own for each name.
struct Ranges {
  Column<uint32_t> warp;
  Column<uint32_t> declaration;  // of the event that opened it; has its name and payload type
  Column<uint64_t> begin_cycles, end_cycles;
  Column<uint64_t> payload;                 // of the event that opened it
  Column<uint16_t> depth;                   // 0 is outermost
  Column<uint8_t> flags;                    // RangeFlag
  Column<uint32_t> begin_event, end_event;  // rows of Model::events; kNoRow if unclosed

  size_t size() const { return warp.size(); }
};

// Points: events that neither open nor close a range.
struct Marks {
  Column<uint32_t> event;  // row of Model::events, which has the rest

  size_t size() const { return event.size(); }
};

// Dependencies: what came (kFlowIn) and where it came from (kFlowOut), rows of Model::events. By
// the row of what came, which has one source; a source may have several that it comes to.
struct Flows {
  Column<uint32_t> from, to;

  size_t size() const { return from.size(); }
};

// What depends on what by design, by names of events.
struct DeclaredEdge {
  StringId dag = 0, from = 0, to = 0, label = 0, via = 0;
};

// What the program said on the host, iket::session::mark.
struct HostMark {
  int64_t host_ns = 0;         // CLOCK_MONOTONIC
  std::optional<double> ns{};  // trace time, as Model::read_ns; may be negative. On a software
                               // device only its order among launches means something
  StringId text = 0;
};

// One ring: a hardware warp slot of one SM in one context. Counts are in records of 16 bytes.
struct Rings {
  std::vector<uint32_t> context;
  std::vector<uint16_t> sm;
  std::vector<uint8_t> slot;
  std::vector<uint8_t> suspect;  // 1 if its records contradict each other
  std::vector<uint64_t> written;
  std::vector<uint64_t> kept;
  std::vector<uint64_t> lost;             // written - kept: overwritten by newer ones
  std::vector<uint8_t> lost_lower_bound;  // 1 where a running warp makes `lost` a lower bound

  size_t size() const { return context.size(); }
};

struct Model {
  std::vector<std::string> strings = {""};
  std::vector<Device> devices;
  std::vector<Kernel> kernels;
  std::vector<Declaration> declarations;
  std::vector<Launch> launches;  // by first_ns
  Warps warps;
  Events events;
  Values values;
  Ranges ranges;
  Marks marks;
  Flows flows;
  std::vector<DeclaredEdge> edges;
  // Events in front of which others of the same warp were overwritten, ascending. What is open on
  // one side of a hole says nothing of the other.
  Column<uint32_t> holes;
  Column<uint32_t> unmatched_ends;  // events that close a range nobody opened, or whose begin
                                    // was overwritten
  Rings rings;
  std::vector<SmClock> clocks;  // see Device::first_clock
  Counters counters;
  uint64_t origin_ns = 0;  // %globaltimer at trace time 0
  // The trace's axis beside the host's clock: of the first GPU that exchanged clocks, on whose axis
  // the others are, or joined by launches (uncertainty.h says how well). Nothing where no launch is
  // known to the host either, and on a software device, whose time is a model's.
  std::optional<HostClock> host_clock;
  // When the rings were read, the last time, on the trace's own axis.
  std::optional<double> read_ns;
  std::vector<HostMark> host_marks;  // by host_ns
  uint32_t process_id = 0;
  StringId command = 0;  // the command line of the process, arguments separated by spaces
  StringId host = 0;
  StringId filter = 0;  // of an excerpt (excerpt.h): what was asked for, and what is left of what
  StringId damage = 0;  // what of the capture file could not be read, one sentence; "" if nothing

  const std::string& String(StringId id) const { return strings[id]; }
  const std::string& NameOf(const Declaration& declaration) const {
    return strings[declaration.name];
  }
  // The name of a range or of a mark's event, by the row of its declaration.
  const std::string& DeclarationName(uint32_t row) const { return strings[declarations[row].name]; }

  // Trace time of a moment on an SM: ns since origin_ns, with fractions. Monotonic in `cycles`.
  double NsOf(uint32_t device, uint32_t sm, uint64_t cycles) const {
    return clocks[devices[device].first_clock + sm].NsOf(cycles);
  }
  double NsOfWarp(uint32_t warp, uint64_t cycles) const {
    return NsOf(launches[warps.launch[warp]].device, warps.sm[warp], cycles);
  }

  // Whether the payload of an event is known. Of the end of a token with 64 bits, whose record has
  // the token in the place of half of it, the other record may be lost.
  bool HasPayload(uint32_t event) const {
    const Declaration& declaration = declarations[events.declaration[event]];
    if (declaration.kind != EventKind::kTokenEnd || !IsWide(declaration.payload)) return true;
    const auto [first, last] = values.Of(event);
    return first != last &&
           std::find(values.index.begin() + static_cast<ptrdiff_t>(first),
                     values.index.begin() + static_cast<ptrdiff_t>(last),
                     Values::kPayload) != values.index.begin() + static_cast<ptrdiff_t>(last);
  }

  // The place of its cluster among those of the launch; without clusters, of its CTA.
  std::array<uint32_t, 3> ClusterOf(uint32_t warp) const {
    const std::array<uint32_t, 3>& size = launches[warps.launch[warp]].cluster;
    const auto of = [](uint32_t cta, uint32_t ctas) { return ctas > 1 ? cta / ctas : cta; };
    return {of(warps.cta_x[warp], size[0]), of(warps.cta_y[warp], size[1]),
            of(warps.cta_z[warp], size[2])};
  }
};

}  // namespace iket::trace
