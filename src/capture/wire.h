// wire.h: numbers of docs/format.md and the field-by-field description of its rows.
//
// Each kind of row is described once, in RowOf<T>::Describe, as a walk over the fields in the order
// of the file; the writer walks it with an encoder, the reader with a decoder, so the two cannot
// disagree. Private to the room.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "capture/content.h"

namespace iket::capture::wire {

static_assert(std::endian::native == std::endian::little,
              "the format is read and written in place");

inline constexpr std::array<char, 8> kMagic = {'i', 'k', 'e', 't', 'c', 'a', 'p', '\0'};
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr uint16_t kChunkVersion = 1;
inline constexpr uint64_t kMaxRawBytes = uint64_t{64} << 20;
inline constexpr uint64_t kMaxStringBytes = uint64_t{16} << 20;
inline constexpr uint64_t kMaxInflation = 1032;  // deflate's own bound
inline constexpr uint64_t kInflationSlack = 64;

enum Codec : uint16_t { kRaw = 0, kZlib = 1, kPackedRecords = 2 };

struct FileHeader {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t header_bytes;
  uint32_t optional_flags;
  uint32_t required_flags;
  uint32_t reserved;
  uint32_t crc;  // of the bytes before it
};
static_assert(sizeof(FileHeader) == 32);

// A kind is kept as the u32 that its four letters make.
constexpr uint32_t Kind(const char (&letters)[5]) {
  uint32_t kind = 0;
  for (int i = 3; i >= 0; --i) kind = kind << 8 | static_cast<uint8_t>(letters[i]);
  return kind;
}
inline constexpr uint32_t kStrings = Kind("STRS");
inline constexpr uint32_t kSession = Kind("SESS");
inline constexpr uint32_t kDevice = Kind("DEVC");
inline constexpr uint32_t kImage = Kind("IMAG");
inline constexpr uint32_t kKernel = Kind("KERN");
inline constexpr uint32_t kKernelFilter = Kind("SLCT");
inline constexpr uint32_t kDeclaration = Kind("DECL");
inline constexpr uint32_t kAttribute = Kind("ATTR");
inline constexpr uint32_t kEdge = Kind("EDGE");
inline constexpr uint32_t kContext = Kind("CTXT");
inline constexpr uint32_t kClockExchange = Kind("CLKX");
inline constexpr uint32_t kPlacedSm = Kind("PLAC");
inline constexpr uint32_t kLaunch = Kind("LNCH");
inline constexpr uint32_t kGraphNode = Kind("GRPH");
inline constexpr uint32_t kGraphLaunch = Kind("GLCH");
inline constexpr uint32_t kRing = Kind("RING");
inline constexpr uint32_t kCounter = Kind("LOSS");
inline constexpr uint32_t kNote = Kind("NOTE");
inline constexpr uint32_t kDone = Kind("DONE");

struct ChunkHeader {
  uint32_t kind;
  uint16_t version;
  uint16_t codec;
  uint64_t stored_bytes;
  uint64_t raw_bytes;
  uint32_t sequence;
  uint32_t reserved;
  uint32_t payload_crc;
  uint32_t header_crc;  // of the bytes before it
};
static_assert(sizeof(ChunkHeader) == 40);
inline constexpr uint64_t kChunkAlignment = 8;
constexpr uint64_t PaddingAfter(uint64_t bytes) { return (~bytes + 1) & (kChunkAlignment - 1); }

// The shape that every payload begins with.
struct TableHeader {
  uint32_t head_bytes;
  uint32_t row_count;
  uint32_t row_bytes;
  uint32_t reserved;
};
static_assert(sizeof(TableHeader) == 16);

struct StringsHead {
  TableHeader table;
  uint32_t first_id;
  uint32_t reserved;
};
static_assert(sizeof(StringsHead) == 24);

struct StringRow {
  uint32_t length;
  uint32_t reserved;
};
static_assert(sizeof(StringRow) == 8);

struct RingHead {
  TableHeader table;
  uint32_t context;
  uint32_t flags;
  uint64_t moment;
  int64_t begin_ns;
  uint64_t reserved;
};
static_assert(sizeof(RingHead) == 48);
inline constexpr uint32_t kRingLive = 1;
inline constexpr uint32_t kRingLastOfMoment = 2;
inline constexpr uint32_t kRingSettled = 4;

struct RingEntry {
  uint32_t ring;
  uint32_t records;
  uint64_t written;
  uint64_t first;
  uint64_t reserved;
  ring::RingHeader header;
};
static_assert(sizeof(RingEntry) == 96);

struct DoneHead {
  TableHeader table;
  uint64_t chunks;
  uint64_t chunks_unwritten;
  uint64_t bytes_unwritten;
};
static_assert(sizeof(DoneHead) == 40);

struct DoneRow {
  uint32_t kind;
  uint32_t reserved;
  uint64_t chunks;
};
static_assert(sizeof(DoneRow) == 16);

// One flag of a u32, by its bit's value.
template <typename Bool>
struct Flag {
  uint32_t value;
  Bool& on;
};
template <typename Bool>
Flag(uint32_t, Bool&) -> Flag<Bool>;

// An `Io` has Number(value) for integers, Small(value) for enums of one byte, Text(string),
// TextList(strings), Flags(flag...) and Skip(bytes) for what is reserved.
template <typename T>
struct RowOf;

template <>
struct RowOf<Session> {
  static constexpr uint32_t kKind = kSession;
  static constexpr uint32_t kBytes = 72;
  static void Describe(auto& io, auto& session) {
    io.Number(session.index);
    io.Flags(Flag{1, session.ended}, Flag{2, session.software_device});
    io.Number(session.pid);
    io.Number(session.exit_status);
    io.Number(session.signal);
    io.Text(session.tool_version);
    io.TextList(session.command_line);
    io.Text(session.host);
    io.Number(session.start_realtime_ns);
    io.Number(session.start_ns);
    io.Number(session.end_realtime_ns);
    io.Number(session.end_ns);
    io.Text(session.working_directory);
    io.Skip(4);
  }
};

// The head of DEVC, after the TableHeader; its rows are SmPlace.
template <>
struct RowOf<Device> {
  static constexpr uint32_t kKind = kDevice;
  static constexpr uint32_t kBytes = 72;
  static void Describe(auto& io, auto& device) {
    io.Number(device.index);
    io.Flags(Flag{1, device.simulated});
    for (auto& byte : device.uuid) io.Number(byte);
    io.Text(device.name);
    io.Number(device.compute_major);
    io.Number(device.compute_minor);
    io.Number(device.sm_count);
    io.Number(device.sm_clock_max_khz);
    io.Number(device.sm_clock_khz);
    io.Number(device.cuda_version);
    io.Number(device.memory_bytes);
    io.Text(device.driver_version);
    io.Skip(12);
  }
};

template <>
struct RowOf<SmPlace> {
  static constexpr uint32_t kBytes = 8;
  static void Describe(auto& io, auto& place) {
    io.Number(place.tpc);
    io.Number(place.gpc);
  }
};

template <>
struct RowOf<Image> {
  static constexpr uint32_t kKind = kImage;
  static constexpr uint32_t kBytes = 32;
  static void Describe(auto& io, auto& image) {
    io.Number(image.index);
    io.Number(image.sm);
    io.Number(image.hash);
    io.Number(image.marked_functions);
    io.Text(image.source);
    io.Number(image.bytes);
  }
};

template <>
struct RowOf<Kernel> {
  static constexpr uint32_t kKind = kKernel;
  static constexpr uint32_t kBytes = 48;
  static void Describe(auto& io, auto& kernel) {
    io.Number(kernel.index);
    io.Number(kernel.image);
    io.Text(kernel.mangled_name);
    io.Text(kernel.demangled_name);
    io.Small(kernel.state);
    io.Skip(3);
    io.Text(kernel.refusal);
    io.Number(kernel.registers_before);
    io.Number(kernel.registers_after);
    io.Number(kernel.sites);
    io.Number(kernel.sites_refused);
    io.Number(kernel.static_shared_bytes);
    io.Number(kernel.sites_left_out);
    io.Skip(4);
  }
};

template <>
struct RowOf<KernelFilter> {
  static constexpr uint32_t kKind = kKernelFilter;
  static constexpr uint32_t kBytes = 40;
  static void Describe(auto& io, auto& filter) {
    io.Number(filter.kernel);
    io.Flags(Flag{1, filter.by_cluster}, Flag{2, filter.by_sm});
    for (auto& place : filter.cluster) io.Number(place);
    io.Number(filter.sample);
    for (auto& size : filter.cluster_ctas) io.Number(size);
    io.Skip(4);
  }
};

template <>
struct RowOf<Declaration> {
  static constexpr uint32_t kKind = kDeclaration;
  static constexpr uint32_t kBytes = 32;
  static void Describe(auto& io, auto& declaration) {
    io.Number(declaration.image);
    io.Number(declaration.event);
    io.Small(declaration.kind);
    io.Small(declaration.payload);
    io.Skip(2);
    io.Text(declaration.name);
    io.Number(declaration.colour);
    io.Text(declaration.file);
    io.Number(declaration.line);
    io.Flags(Flag{1, declaration.left_out});
  }
};

template <>
struct RowOf<Attribute> {
  static constexpr uint32_t kKind = kAttribute;
  static constexpr uint32_t kBytes = 24;
  static void Describe(auto& io, auto& attribute) {
    io.Number(attribute.image);
    io.Number(attribute.event);
    io.Number(attribute.position);
    io.Small(attribute.what);
    io.Number(attribute.number);
    io.Skip(2);
    io.Text(attribute.text);
    io.Skip(4);
  }
};

template <>
struct RowOf<DeclaredEdge> {
  static constexpr uint32_t kKind = kEdge;
  static constexpr uint32_t kBytes = 32;
  static void Describe(auto& io, auto& edge) {
    io.Number(edge.image);
    io.Text(edge.dag);
    io.Text(edge.from);
    io.Text(edge.to);
    io.Text(edge.label);
    io.Text(edge.via);
    io.Skip(8);
  }
};

template <>
struct RowOf<Context> {
  static constexpr uint32_t kKind = kContext;
  static constexpr uint32_t kBytes = 48;
  static void Describe(auto& io, auto& context) {
    io.Number(context.index);
    io.Number(context.device);
    io.Number(context.ring_bytes);
    io.Number(context.slots_per_sm);
    io.Number(context.sm_count);
    io.Number(context.device_memory_bytes);
    io.Flags(Flag{1, context.sink_only}, Flag{2, context.in_process_drain},
             Flag{4, context.in_host});
    io.Number(context.recording_version);
    io.Skip(8);
  }
};

// Column by column in the file: wide fields first, so that every column is aligned.
template <>
struct RowOf<Launch> {
  static constexpr uint32_t kKind = kLaunch;
  static constexpr uint32_t kBytes = 80;
  static constexpr bool kTransposed = true;
  static void Describe(auto& io, auto& launch) {
    io.Number(launch.sequence);
    io.Number(launch.stream);
    io.Number(launch.host_ns);
    io.Number(launch.kernel);
    io.Number(launch.context);
    for (auto* size : {&launch.grid, &launch.block, &launch.cluster}) {
      io.Number(size->x);
      io.Number(size->y);
      io.Number(size->z);
    }
    io.Number(launch.dynamic_shared_bytes);
    io.Flags(Flag{1, launch.cooperative}, Flag{2, launch.graph}, Flag{4, launch.failed},
             Flag{8, launch.left_out});
    io.Skip(4);
  }
};

template <>
struct RowOf<GraphNode> {
  static constexpr uint32_t kKind = kGraphNode;
  static constexpr uint32_t kBytes = 72;
  static void Describe(auto& io, auto& node) {
    io.Number(node.graph);
    io.Number(node.node);
    io.Number(node.since);
    io.Number(node.kernel);
    for (auto* size : {&node.grid, &node.block, &node.cluster}) {
      io.Number(size->x);
      io.Number(size->y);
      io.Number(size->z);
    }
    io.Number(node.dynamic_shared_bytes);
    io.Flags(Flag{1, node.cooperative}, Flag{2, node.ordered}, Flag{4, node.disabled},
             Flag{8, node.uncounted}, Flag{16, node.conditional});
    io.Skip(8);
  }
};

// Column by column, as Launch.
template <>
struct RowOf<GraphLaunch> {
  static constexpr uint32_t kKind = kGraphLaunch;
  static constexpr uint32_t kBytes = 40;
  static constexpr bool kTransposed = true;
  static void Describe(auto& io, auto& launch) {
    io.Number(launch.sequence);
    io.Number(launch.stream);
    io.Number(launch.host_ns);
    io.Number(launch.graph);
    io.Number(launch.context);
    io.Flags(Flag{2, launch.captured}, Flag{4, launch.failed}, Flag{8, launch.left_out});
    io.Skip(4);
  }
};

template <>
struct RowOf<ClockExchange> {
  static constexpr uint32_t kKind = kClockExchange;
  static constexpr uint32_t kBytes = 40;
  static void Describe(auto& io, auto& exchange) {
    io.Number(exchange.context);
    io.Skip(4);
    io.Number(exchange.timer_ns);
    io.Number(exchange.before_ns);
    io.Number(exchange.after_ns);
    io.Number(exchange.realtime_ns);
  }
};

template <>
struct RowOf<PlacedSm> {
  static constexpr uint32_t kKind = kPlacedSm;
  static constexpr uint32_t kBytes = 16;
  static void Describe(auto& io, auto& placed) {
    io.Number(placed.context);
    io.Number(placed.sm);
    io.Number(placed.place.tpc);
    io.Number(placed.place.gpc);
  }
};

template <>
struct RowOf<Counter> {
  static constexpr uint32_t kKind = kCounter;
  static constexpr uint32_t kBytes = 16;
  static void Describe(auto& io, auto& counter) {
    io.Text(counter.name);
    io.Skip(4);
    io.Number(counter.value);
  }
};

template <>
struct RowOf<Note> {
  static constexpr uint32_t kKind = kNote;
  static constexpr uint32_t kBytes = 24;
  static void Describe(auto& io, auto& note) {
    io.Small(note.severity);
    io.Skip(3);
    io.Number(note.kernel);
    io.Number(note.time_ns);
    io.Text(note.text);
    io.Skip(4);
  }
};

template <typename T>
constexpr bool IsTransposed() {
  if constexpr (requires { RowOf<T>::kTransposed; }) return RowOf<T>::kTransposed;
  return false;
}

// Where the next field of row `row` of a table of `rows` rows lies. With one row a step is a step
// over the field; with more the table is transposed, and a step passes the whole column.
template <typename Byte>
class FieldCursor {
 public:
  explicit FieldCursor(Byte* table, size_t row = 0, size_t rows = 1)
      : column_(table), row_(row), rows_(rows) {}

  Byte* Next(size_t width) {
    Byte* field = column_ + row_ * width;
    column_ += rows_ * width;
    return field;
  }

 private:
  Byte* column_;
  size_t row_;
  size_t rows_;
};

}  // namespace iket::capture::wire
