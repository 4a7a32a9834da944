// content.h: what a capture holds, as plain data.
//
// One struct for each kind of chunk of docs/format.md, the same for writer and reader; strings are
// strings here, ids only in the file. Objects refer to each other by the `index` that the writer
// gave them. In a file, a later statement about the same index (or key) replaces the earlier one.
// Times are ns: MONOTONIC unless the name says realtime. Sizes are bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ring/cta_filter.h"
#include "ring/event_kind.h"
#include "ring/layout.h"
#include "ring/record.h"

namespace iket::capture {

// One profiled process (SESS).
struct Session {
  uint32_t index = 0;
  bool ended = false;            // the program is known to have ended
  bool software_device = false;  // it ran on the software device, not on a GPU
  uint32_t pid = 0;
  int32_t exit_status = -1;  // -1 unknown, or ended by `signal`
  int32_t signal = 0;
  std::string tool_version{};
  std::vector<std::string> command_line{};
  std::string host{};
  std::string working_directory{};
  int64_t start_realtime_ns = 0;
  int64_t start_ns = 0;
  int64_t end_realtime_ns = 0;  // 0 unknown
  int64_t end_ns = 0;           // 0 unknown

  bool operator==(const Session&) const = default;
};

// Where a SM sits (rows of DEVC); -1 unknown.
struct SmPlace {
  int32_t tpc = -1;
  int32_t gpc = -1;

  bool operator==(const SmPlace&) const = default;
};

// One device as the process numbered it (DEVC).
struct Device {
  uint32_t index = 0;
  bool simulated = false;
  std::array<uint8_t, 16> uuid{};
  std::string name{};
  uint16_t compute_major = 0;
  uint16_t compute_minor = 0;
  uint32_t sm_count = 0;
  uint32_t sm_clock_max_khz = 0;  // 0 unknown
  uint32_t sm_clock_khz = 0;      // when it was read; 0 unknown
  uint32_t cuda_version = 0;      // 13000 is 13.0
  std::string driver_version{};   // "580.159.03"
  uint64_t memory_bytes = 0;
  std::vector<SmPlace> topology{};  // by %smid; empty: not known

  bool operator==(const Device&) const = default;
};

// One code image as the program gave it to the driver (IMAG).
struct Image {
  uint32_t index = 0;
  uint32_t sm = 0;    // 90 for sm_90
  uint64_t hash = 0;  // FNV-1a-64 of the image before patching
  uint64_t bytes = 0;
  uint32_t marked_functions = 0;
  std::string source{};  // library, file or module call that it came from

  bool operator==(const Image&) const = default;
};

// kLeftOut: it has marks, and was not among the kernels that were to be recorded, or none of its
// events was (Kernel::sites_left_out).
enum class KernelState : uint8_t { kUnmarked = 0, kPatched = 1, kRefused = 2, kLeftOut = 3 };

// The hash of Image: FNV-1a, 64 bits, one byte at a time.
inline uint64_t ImageHash(std::span<const std::byte> image) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (std::byte byte : image) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3u;
  return hash;
}

// One kernel (KERN). Its index is the number that begin records carry.
struct Kernel {
  uint32_t index = 0;
  uint32_t image = 0;
  std::string mangled_name{};
  std::string demangled_name{};                // see DemangledName in capture/demangle.h
  KernelState state = KernelState::kUnmarked;  // from a file: possibly none of the named values
  std::string refusal{};                       // why the kernel was refused, or some of its sites
  uint16_t registers_before = 0;
  uint16_t registers_after = 0;
  uint32_t sites = 0;
  uint32_t sites_refused = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t sites_left_out = 0;  // as they were, since nobody wants their events

  bool operator==(const Kernel&) const = default;
};

// Which CTAs of a kernel were to be recorded; kernels without a row: all (SLCT). Key: kernel.
struct KernelFilter {
  uint32_t kernel = 0;
  bool by_cluster = false;  // only CTAs of the cluster at this place of the grid
  bool by_sm = false;       // only CTAs on some SMs: how many those are, nobody knows
  std::array<uint32_t, 3> cluster{};
  uint32_t sample = 1;                     // only CTAs whose linear number is a multiple of this
  std::array<uint32_t, 3> cluster_ctas{};  // of a cluster, as it was compiled; 0: the launch says

  bool operator==(const KernelFilter&) const = default;
};

// From a file, both enums may hold values without a name: show them as unknown.
using ring::EventKind;

// The numbers of NVIDIA's contract, and from 64 on ours.
enum class PayloadType : uint8_t {
  kNone = 0,
  kI8 = 1,
  kU8 = 2,
  kI16 = 3,
  kU16 = 4,
  kI32 = 5,
  kU32 = 6,
  kI64 = 7,
  kF32 = 13,
  kF64 = 14,
  kPointer = 15,
  kU64 = 16,
  kBool = 64,
  kF16 = 65,
  kBf16 = 66,
  kE4m3 = 67,  // floating point of 8 bits
  kE5m2 = 68,
};

// Of these, in a declaration: the words behind clock and id are stored with all bits inverted.
inline constexpr uint8_t kInvertedPayload = 0x80;
constexpr PayloadType TypeOf(PayloadType declared) {
  return static_cast<PayloadType>(static_cast<uint8_t>(declared) & ~kInvertedPayload);
}
constexpr bool IsInverted(PayloadType declared) {
  return (static_cast<uint8_t>(declared) & kInvertedPayload) != 0;
}

inline constexpr uint32_t kAutomaticColour = 0xffffffffu;

// What an event id means within an image (DECL). Key: image and event.
struct Declaration {
  uint32_t image = 0;
  uint32_t event = 0;  // 31 bits, as in records
  EventKind kind = EventKind::kMark;
  PayloadType payload = PayloadType::kNone;
  std::string name{};
  uint32_t colour = kAutomaticColour;  // 0x00RRGGBB
  std::string file{};
  uint32_t line = 0;  // 0 unknown
  // Its name was not among those that were to be recorded: what records there are of it, and a pop
  // that closes it, are not to be shown.
  bool left_out = false;

  bool operator==(const Declaration&) const = default;
};

using ring::AttributeKind;

// What a declaration says beyond its name (ATTR). Key: image, event and position.
struct Attribute {
  uint32_t image = 0;
  uint32_t event = 0;
  uint32_t position = 0;  // among those of its event
  AttributeKind what = AttributeKind::kValueName;
  uint8_t number = 0;
  std::string text{};

  bool operator==(const Attribute&) const = default;
};

// What depends on what by design, by names of events (EDGE). Equal rows are one.
struct DeclaredEdge {
  uint32_t image = 0;
  std::string dag{};
  std::string from{};
  std::string to{};
  std::string label{};
  std::string via{};

  auto operator<=>(const DeclaredEdge&) const = default;
};

// The version of the words that warps write (docs/design/recording.md, ring/record.h).
inline constexpr uint32_t kRecordingVersion = 1;

// One CUDA context that has rings (CTXT).
struct Context {
  uint32_t index = 0;
  uint32_t device = 0;
  uint64_t ring_bytes = 0;
  uint32_t slots_per_sm = ring::kSlotsPerSm;
  uint32_t sm_count = 0;
  uint64_t device_memory_bytes = 0;
  bool sink_only = false;         // nothing was kept
  bool in_process_drain = false;  // the program drained its own rings
  bool in_host = false;           // its rings were in the host's memory
  uint32_t recording_version =
      kRecordingVersion;  // which words its records and headers are made of

  bool operator==(const Context&) const = default;
};

inline constexpr uint32_t kNoContext = 0xffffffffu;

// A moment on both clocks (CLKX): the timer of a context's GPU, %globaltimer, was read by a kernel
// between two moments of the host's. Several of a context: in the order in which they were made.
struct ClockExchange {
  uint32_t context = 0;
  uint64_t timer_ns = 0;
  int64_t before_ns = 0;    // the host asked
  int64_t after_ns = 0;     // the answer was there
  int64_t realtime_ns = 0;  // REALTIME in the middle of the two

  bool operator==(const ClockExchange&) const = default;
};

// Where a SM of a context's GPU sits, found out while it ran (PLAC). Key: context and sm.
struct PlacedSm {
  uint32_t context = 0;
  uint32_t sm = 0;  // %smid
  SmPlace place{};

  bool operator==(const PlacedSm&) const = default;
};

struct Dim3 {
  uint32_t x = 0;
  uint32_t y = 0;
  uint32_t z = 0;

  bool operator==(const Dim3&) const = default;
};

// One launch as the host asked for it (LNCH).
struct Launch {
  uint64_t sequence = 0;  // from 0 in this process
  uint64_t stream = 0;
  int64_t host_ns = 0;
  uint32_t kernel = 0;
  uint32_t context = kNoContext;
  Dim3 grid{};     // CTAs
  Dim3 block{};    // threads
  Dim3 cluster{};  // CTAs; 0 not given at the launch
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  bool graph = false;     // captured into a graph: may run any number of times
  bool failed = false;    // the driver returned an error
  bool left_out = false;  // outside of what was to be recorded: it left no records

  bool operator==(const Launch&) const = default;
};

inline constexpr uint32_t kNoKernel = 0xffffffffu;
inline constexpr uint32_t kNoNode = 0xffffffffu;

// What a kernel node of an executable graph launches, from a launch on (GRPH). The statement with
// the highest `since` that is not above a graph launch's sequence number is the one that it ran.
struct GraphNode {
  uint32_t graph = 0;           // the executable graph, from 0 in this process
  uint32_t node = kNoNode;      // all nodes counted in order, those of child graphs too
  uint64_t since = 0;           // sequence number of launches
  uint32_t kernel = kNoKernel;  // kNoKernel: from now on, none that is traced
  Dim3 grid{};                  // CTAs
  Dim3 block{};                 // threads
  Dim3 cluster{};               // CTAs; 0 not given
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  bool ordered = false;   // it begins when all nodes with lower numbers have ended
  bool disabled = false;  // it is passed over
  // It runs as often as something else than the host decides: the graph may be launched by the
  // device, or the node is in the body of a conditional node. With `node` kNoNode: the graph has
  // nodes that are not stated; `kernel` is what they run, or kNoKernel where that is not known.
  bool uncounted = false;
  // It is in such a body, and the host alone launches the graph: each of its runs is within one of
  // the launches in the log.
  bool conditional = false;

  bool operator==(const GraphNode&) const = default;
};

// One launch of an executable graph (GLCH). Numbered together with the launches of kernels.
struct GraphLaunch {
  uint64_t sequence = 0;
  uint64_t stream = 0;
  int64_t host_ns = 0;
  uint32_t graph = 0;
  uint32_t context = kNoContext;
  bool captured = false;  // into another graph: it did not run here
  bool failed = false;    // the driver returned an error
  bool left_out = false;  // outside of what was to be recorded: its nodes left no records

  bool operator==(const GraphLaunch&) const = default;
};

// When and from where a set of rings was read (head of RING).
struct RingMoment {
  uint32_t context = 0;
  bool live = false;  // the program still ran: the newest records may be torn or missing
  bool settled =
      false;  // the rings were followed: all records given are final, none is of an old lap
  uint64_t number = 0;   // moments of a context count from 0
  int64_t begin_ns = 0;  // when the reading began

  bool operator==(const RingMoment&) const = default;
};

// One ring's contents in memory, to be written (row of RING). Everything is borrowed.
struct RingContents {
  uint32_t ring = 0;     // SM * slots per SM + slot
  uint64_t written = 0;  // bytes ever written, as far as known; a multiple of 16
  // The newest records, oldest first; two parts, since a ring wraps. Together they are the bytes
  // [written - 16 * count, written) of the stream, unless `lag_bytes` says that they end earlier.
  std::span<const ring::Record> older{};
  std::span<const ring::Record> newer{};
  uint64_t lag_bytes = 0;  // bytes at the end of the stream that could not be read
  ring::RingHeader header{};
};

// One ring (or a piece of a large one) as read from a file; spans into the unpacked chunk.
struct RingRow {
  uint32_t ring = 0;
  uint64_t written = 0;
  uint64_t first = 0;  // stream position of records[0]
  ring::RingHeader header{};
  std::span<const ring::Record> records{};  // oldest first
};

// One RING chunk as read. Rows in the order of the file.
struct RingBlock {
  RingMoment moment{};
  bool last_of_moment = false;
  std::vector<RingRow> rows{};
  // Where the records are; who has it may go on reading them. Null: they are somebody else's.
  std::shared_ptr<const void> memory{};
};

// A running total of something lost, refused or not understood (LOSS). Key: name.
struct Counter {
  std::string name{};
  uint64_t value = 0;

  bool operator==(const Counter&) const = default;
};

// A marker is not for the tool to say: the program said it, iket::session::mark.
enum class Severity : uint8_t { kInfo = 0, kWarning = 1, kRefusal = 2, kMarker = 3 };

// A message for a person (NOTE).
struct Note {
  Severity severity = Severity::kInfo;
  int32_t kernel = -1;  // -1: about no kernel
  int64_t time_ns = 0;
  std::string text{};

  bool operator==(const Note&) const = default;
};

}  // namespace iket::capture
