#include "capture/writer.h"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "base/checksum.h"
#include "capture/encode.h"
#include "capture/pack_records.h"
#include "capture/wire.h"

namespace iket::capture {
namespace {

constexpr size_t kMinChunkBytes = 4096;
constexpr size_t kMaxChunkBytes = size_t{32} << 20;
// Below this a chunk is stored as it is: its headers outweigh what deflate could take away.
constexpr size_t kMinCompressedBytes = 128;

struct FreeCompressor {
  void operator()(libdeflate_compressor* compressor) const {
    libdeflate_free_compressor(compressor);
  }
};

}  // namespace

using Bytes = std::span<const std::byte>;

struct Writer::State {
  std::unique_ptr<ByteSink> sink;
  WriterOptions options;
  std::unique_ptr<libdeflate_compressor, FreeCompressor> compressor;
  std::vector<std::byte> compressed;  // reused from chunk to chunk
  std::vector<std::byte> joined;      // likewise
  StringTable strings;
  // A chunk could not be written; all but DONE are dropped from then on.
  std::atomic<bool> failed = false;
  bool finished = false;

  std::mutex mutex;  // of a shared writer: guards what follows
  std::map<uint32_t, uint64_t> chunks_by_kind;
  uint64_t numbers = 0;  // taken by chunks, those included that failed when others had later ones
  uint64_t holes = 0;    // of these
  uint64_t file_bytes = 0;
  uint64_t chunks_lost = 0;
  uint64_t bytes_lost = 0;
  // Room to pack records in, of threads that do not now. What is there is written before it is
  // read.
  std::vector<std::unique_ptr<std::vector<std::byte>>> rooms;

  Result<void> WriteChunk(uint32_t kind, std::span<const Bytes> raw,
                          std::span<const RingPiece> pieces = {});
  Result<void> WriteChunk(uint32_t kind, Bytes raw) {
    return WriteChunk(kind, std::span<const Bytes>(&raw, 1));
  }
  Result<void> Emit(uint32_t kind, std::span<const Bytes> raw);
  Result<void> EmitPacked(std::span<const Bytes> raw, std::span<const RingPiece> pieces);
  Result<void> EmitAs(wire::Codec codec, uint32_t kind, std::span<const Bytes> stored,
                      size_t raw_bytes);
  Result<void> Append(std::vector<Bytes>& parts, wire::ChunkHeader header);
  Result<void> AppendAtItsPlace(std::vector<Bytes>& parts, wire::ChunkHeader header);
  void Number(wire::ChunkHeader& header, uint64_t bytes);
  void Uncount(const wire::ChunkHeader& header, uint64_t bytes);
  Result<void> WriteStrings();
  template <typename T>
  Result<void> WriteTable(std::span<const T> rows);
  Bytes Compress(std::span<const Bytes> parts, size_t bytes);

  // Nobody else's process gets to wait for a lock of ours.
  std::unique_lock<std::mutex> Lock() {
    return options.shared ? std::unique_lock(mutex) : std::unique_lock<std::mutex>();
  }
  uint64_t chunks_written() const { return numbers - holes; }
};

namespace {

size_t SizeOf(std::span<const Bytes> parts) {
  size_t bytes = 0;
  for (const Bytes part : parts) bytes += part.size();
  return bytes;
}

}  // namespace

// The zlib form of the parts, or nothing when that is not worth it.
Bytes Writer::State::Compress(std::span<const Bytes> parts, size_t bytes) {
  if (compressor == nullptr || bytes < kMinCompressedBytes) return {};
  Bytes raw = parts.front();
  if (parts.size() > 1) {
    joined.clear();
    for (const Bytes part : parts) joined.insert(joined.end(), part.begin(), part.end());
    raw = joined;
  }
  // Room for what is worth it and no more: deflate gives up when it is reached.
  const size_t worth = bytes - bytes / 16;
  if (compressed.size() < worth) compressed.resize(worth);
  return {compressed.data(), libdeflate_zlib_compress(compressor.get(), raw.data(), raw.size(),
                                                      compressed.data(), worth)};
}

// Gives a chunk its number, and counts it and the `bytes` that it takes.
void Writer::State::Number(wire::ChunkHeader& header, uint64_t bytes) {
  header.sequence = static_cast<uint32_t>(numbers++);
  header.header_crc = Crc32c(&header, offsetof(wire::ChunkHeader, header_crc));
  ++chunks_by_kind[header.kind];
  file_bytes += bytes;
}

// It is not in the file after all.
void Writer::State::Uncount(const wire::ChunkHeader& header, uint64_t bytes) {
  if (--chunks_by_kind[header.kind] == 0) chunks_by_kind.erase(header.kind);
  file_bytes -= bytes;
}

// `parts` with the header in front, one after the other.
Result<void> Writer::State::Append(std::vector<Bytes>& parts, wire::ChunkHeader header) {
  const auto lock = Lock();
  const uint64_t bytes = sizeof(header) + SizeOf(parts);
  Number(header, bytes);
  parts.insert(parts.begin(), std::as_bytes(std::span(&header, 1)));
  Result<void> written = sink->Write(parts);
  if (!written) {
    Uncount(header, bytes);
    --numbers;
  }
  return written;
}

// The same beside other threads.
Result<void> Writer::State::AppendAtItsPlace(std::vector<Bytes>& parts, wire::ChunkHeader header) {
  const uint64_t bytes = sizeof(header) + SizeOf(parts);
  Result<uint64_t> place;
  {
    const auto lock = Lock();
    place = sink->Take(bytes);
    if (!place) return tl::unexpected(std::move(place.error()));
    Number(header, bytes);
  }
  parts.insert(parts.begin(), std::as_bytes(std::span(&header, 1)));
  Result<void> written = sink->Fill(*place, parts);
  if (!written) {
    const auto lock = Lock();
    Uncount(header, bytes);
    if (sink->GiveBack(*place, bytes)) {
      --numbers;
    } else {
      ++holes;
    }
  }
  return written;
}

// Puts one chunk into the sink, whatever happened before.
Result<void> Writer::State::Emit(uint32_t kind, std::span<const Bytes> raw) {
  const size_t raw_bytes = SizeOf(raw);
  const Bytes zlib = Compress(raw, raw_bytes);
  if (zlib.empty()) return EmitAs(wire::kRaw, kind, raw, raw_bytes);
  return EmitAs(wire::kZlib, kind, std::span<const Bytes>(&zlib, 1), raw_bytes);
}

// RING, of which `raw` begins with the table: packed if that gains anything.
Result<void> Writer::State::EmitPacked(std::span<const Bytes> raw,
                                       std::span<const RingPiece> pieces) {
  const size_t raw_bytes = SizeOf(raw);
  const size_t records = (raw_bytes - raw.front().size()) / sizeof(ring::Record);
  std::unique_ptr<std::vector<std::byte>> room;
  {
    const auto lock = Lock();
    if (!rooms.empty()) {
      room = std::move(rooms.back());
      rooms.pop_back();
    }
  }
  if (room == nullptr) room = std::make_unique<std::vector<std::byte>>();
  const size_t needed = RecordPacker::Room(records, pieces.size());
  if (room->size() < needed) room->resize(needed);
  RecordPacker packer(room->data(), records);
  const size_t worth = (raw_bytes - raw.front().size()) / 16 * 15;
  for (const RingPiece& piece : pieces) {
    if (packer.bytes() >= worth) break;
    packer.AddRow(piece.older, piece.newer);
  }
  const std::array<Bytes, 2> packed = {raw.front(), Bytes(*room).first(packer.bytes())};
  Result<void> written = packer.bytes() < worth
                             ? EmitAs(wire::kPackedRecords, wire::kRing, packed, raw_bytes)
                             : EmitAs(wire::kRaw, wire::kRing, raw, raw_bytes);
  const auto lock = Lock();
  rooms.push_back(std::move(room));
  return written;
}

Result<void> Writer::State::EmitAs(wire::Codec codec, uint32_t kind, std::span<const Bytes> stored,
                                   size_t raw_bytes) {
  const size_t stored_bytes = SizeOf(stored);
  uint32_t crc = 0;
  for (const Bytes part : stored) crc = Crc32c(part.data(), part.size(), crc);
  const wire::ChunkHeader header{.kind = kind,
                                 .version = wire::kChunkVersion,
                                 .codec = codec,
                                 .stored_bytes = stored_bytes,
                                 .raw_bytes = raw_bytes,
                                 .sequence = 0,
                                 .reserved = 0,
                                 .payload_crc = crc,
                                 .header_crc = 0};
  constexpr std::array<std::byte, wire::kChunkAlignment> kZeros{};
  std::vector<Bytes> parts;
  parts.reserve(stored.size() + 2);
  parts.assign(stored.begin(), stored.end());
  parts.push_back(std::span(kZeros).first(wire::PaddingAfter(stored_bytes)));
  return options.shared && sink->has_places() ? AppendAtItsPlace(parts, header)
                                              : Append(parts, header);
}

Result<void> Writer::State::WriteChunk(uint32_t kind, std::span<const Bytes> raw,
                                       std::span<const RingPiece> pieces) {
  const size_t bytes = SizeOf(raw);
  if (bytes > wire::kMaxRawBytes) {
    return Fail(ErrorKind::kUsage, "a capture chunk of {} bytes is above the limit of {}", bytes,
                wire::kMaxRawBytes);
  }
  Result<void> written;
  if (!failed) {
    written = pieces.empty() || !options.pack_rings ? Emit(kind, raw) : EmitPacked(raw, pieces);
    if (written) return {};
    // Of several threads that fail at one time, one says so.
    if (failed.exchange(true)) written = {};
  }
  const auto lock = Lock();
  ++chunks_lost;
  bytes_lost += bytes;
  return written;
}

Result<void> Writer::State::WriteStrings() {
  Result<void> first_error;
  while (strings.has_pending()) {
    const std::vector<std::byte> payload = strings.TakePending(options.chunk_bytes);
    if (Result<void> written = WriteChunk(wire::kStrings, payload); !written) {
      first_error = std::move(written);
    }
  }
  return first_error;
}

template <typename T>
Result<void> Writer::State::WriteTable(std::span<const T> rows) {
  if (finished) return Fail(ErrorKind::kUsage, "the capture was finished before this was appended");
  Result<void> first_error;
  const size_t rows_per_chunk = options.chunk_bytes / wire::RowOf<T>::kBytes;
  while (!rows.empty()) {
    const std::span<const T> part = rows.first(std::min(rows.size(), rows_per_chunk));
    rows = rows.subspan(part.size());
    const std::vector<std::byte> payload = EncodeTable(part, strings);
    Result<void> named = WriteStrings();
    Result<void> written = WriteChunk(wire::RowOf<T>::kKind, payload);
    if (!named) first_error = std::move(named);
    if (!written) first_error = std::move(written);
  }
  return first_error;
}

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::Create(std::unique_ptr<ByteSink> sink, WriterOptions options) {
  auto state = std::make_unique<State>();
  state->sink = std::move(sink);
  options.chunk_bytes = std::clamp(options.chunk_bytes, kMinChunkBytes, kMaxChunkBytes);
  state->options = options;
  if (options.compression_level > 0 && !options.shared) {
    // Null when memory is short; chunks are stored raw then.
    state->compressor.reset(libdeflate_alloc_compressor(std::min(options.compression_level, 12)));
  }
  wire::FileHeader header{.magic = wire::kMagic,
                          .version = wire::kFormatVersion,
                          .header_bytes = sizeof(header),
                          .optional_flags = 0,
                          .required_flags = 0,
                          .reserved = 0,
                          .crc = 0};
  header.crc = Crc32c(&header, offsetof(wire::FileHeader, crc));
  const std::array<std::span<const std::byte>, 1> parts = {std::as_bytes(std::span(&header, 1))};
  if (Result<void> written = state->sink->Write(parts); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  state->file_bytes = sizeof(header);
  return Writer(std::move(state));
}

Result<Writer> Writer::Create(const std::string& path, WriterOptions options) {
  Result<std::unique_ptr<FdSink>> sink = FdSink::Create(path);
  if (!sink) return tl::unexpected(std::move(sink.error()));
  return Create(std::unique_ptr<ByteSink>(std::move(*sink)), options);
}

Result<void> Writer::Append(std::span<const Session> sessions) {
  return state_->WriteTable(sessions);
}
Result<void> Writer::Append(std::span<const Image> images) { return state_->WriteTable(images); }
Result<void> Writer::Append(std::span<const Kernel> kernels) { return state_->WriteTable(kernels); }
Result<void> Writer::Append(std::span<const KernelFilter> filters) {
  return state_->WriteTable(filters);
}
Result<void> Writer::Append(std::span<const Declaration> declarations) {
  return state_->WriteTable(declarations);
}
Result<void> Writer::Append(std::span<const Attribute> attributes) {
  return state_->WriteTable(attributes);
}
Result<void> Writer::Append(std::span<const DeclaredEdge> edges) {
  return state_->WriteTable(edges);
}
Result<void> Writer::Append(std::span<const Context> contexts) {
  return state_->WriteTable(contexts);
}
Result<void> Writer::Append(std::span<const ClockExchange> exchanges) {
  return state_->WriteTable(exchanges);
}
Result<void> Writer::Append(std::span<const PlacedSm> placed) { return state_->WriteTable(placed); }
Result<void> Writer::Append(std::span<const Launch> launches) {
  return state_->WriteTable(launches);
}
Result<void> Writer::Append(std::span<const GraphNode> nodes) { return state_->WriteTable(nodes); }
Result<void> Writer::Append(std::span<const GraphLaunch> launches) {
  return state_->WriteTable(launches);
}
Result<void> Writer::Append(std::span<const Counter> counters) {
  return state_->WriteTable(counters);
}
Result<void> Writer::Append(std::span<const Note> notes) { return state_->WriteTable(notes); }

Result<void> Writer::Append(const Device& device) {
  if (state_->finished) {
    return Fail(ErrorKind::kUsage, "the capture was finished before this was appended");
  }
  const std::vector<std::byte> payload = EncodeDevice(device, state_->strings);
  Result<void> named = state_->WriteStrings();
  Result<void> written = state_->WriteChunk(wire::kDevice, payload);
  return named ? written : named;
}

Result<void> Writer::Append(const RingMoment& moment, std::span<const RingContents> rings) {
  if (state_->finished) {
    return Fail(ErrorKind::kUsage, "the capture was finished before this was appended");
  }
  for (const RingContents& ring : rings) {
    const uint64_t kept = ring.older.size_bytes() + ring.newer.size_bytes();
    if (ring.written % ring::kRecordBytes != 0 || ring.lag_bytes % ring::kRecordBytes != 0 ||
        ring.lag_bytes > ring.written || kept > ring.written - ring.lag_bytes) {
      return Fail(ErrorKind::kUsage,
                  "ring {}: {} bytes kept and {} lagging do not fit {} bytes written", ring.ring,
                  kept, ring.lag_bytes, ring.written);
    }
  }

  Result<void> first_error;
  std::vector<RingPiece> pieces;
  std::vector<Bytes> parts;
  size_t pieces_bytes = 0;
  const auto flush = [&](bool last_of_moment) {
    const std::vector<std::byte> table = EncodeRingTable(moment, last_of_moment, pieces);
    parts.assign({table});
    for (const RingPiece& piece : pieces) {
      parts.push_back(std::as_bytes(piece.older));
      parts.push_back(std::as_bytes(piece.newer));
    }
    if (Result<void> written = state_->WriteChunk(wire::kRing, parts, pieces); !written) {
      first_error = std::move(written);
    }
    pieces.clear();
    pieces_bytes = 0;
  };
  for (const RingContents& ring : rings) {
    std::span<const ring::Record> older = ring.older;
    std::span<const ring::Record> newer = ring.newer;
    do {
      const size_t left = older.size() + newer.size();
      constexpr size_t kNeeded = sizeof(wire::RingEntry) + sizeof(ring::Record);
      const size_t limit = state_->options.chunk_bytes;
      // A ring is split only if no chunk could hold it.
      const size_t whole = sizeof(wire::RingEntry) + left * sizeof(ring::Record);
      if (!pieces.empty() && pieces_bytes + std::min(whole, limit) > limit) flush(false);
      const size_t room = (limit - pieces_bytes - kNeeded) / sizeof(ring::Record) + 1;
      const size_t count = std::min(left, room);
      RingPiece piece{};
      piece.entry.ring = ring.ring;
      piece.entry.records = static_cast<uint32_t>(count);
      piece.entry.written = ring.written;
      piece.entry.first = ring.written - ring.lag_bytes - left * sizeof(ring::Record);
      piece.entry.header = ring.header;
      piece.older = older.first(std::min(older.size(), count));
      piece.newer = newer.first(count - piece.older.size());
      older = older.subspan(piece.older.size());
      newer = newer.subspan(piece.newer.size());
      pieces_bytes += sizeof(wire::RingEntry) + count * sizeof(ring::Record);
      pieces.push_back(piece);
    } while (!older.empty() || !newer.empty());
  }
  flush(true);
  return first_error;
}

Result<void> Writer::Finish() {
  if (state_->finished) return Fail(ErrorKind::kUsage, "the capture was finished twice");
  state_->finished = true;
  const wire::DoneHead head{
      .table = {.head_bytes = sizeof(head),
                .row_count = static_cast<uint32_t>(state_->chunks_by_kind.size()),
                .row_bytes = sizeof(wire::DoneRow),
                .reserved = 0},
      .chunks = state_->chunks_written(),
      .chunks_unwritten = state_->chunks_lost,
      .bytes_unwritten = state_->bytes_lost};
  std::vector<std::byte> payload(sizeof(head) +
                                 state_->chunks_by_kind.size() * sizeof(wire::DoneRow));
  std::memcpy(payload.data(), &head, sizeof(head));
  std::byte* row = payload.data() + sizeof(head);
  for (const auto& [kind, chunks] : state_->chunks_by_kind) {
    const wire::DoneRow done{.kind = kind, .reserved = 0, .chunks = chunks};
    std::memcpy(row, &done, sizeof(done));
    row += sizeof(done);
  }
  if (state_->sink->torn()) {
    return Fail(ErrorKind::kSystem, "the capture cannot be closed: {} of its chunks are lost",
                state_->chunks_lost);
  }
  if (auto done = state_->sink->CloseHoles(); !done) return done;
  const Bytes raw = payload;
  Result<void> written = state_->Emit(wire::kDone, std::span<const Bytes>(&raw, 1));
  Result<void> closed = state_->sink->Close();
  return written ? closed : written;
}

uint64_t Writer::chunks_lost() const { return state_->chunks_lost; }
uint64_t Writer::bytes_lost() const { return state_->bytes_lost; }
uint64_t Writer::chunks_written() const { return state_->chunks_written(); }
uint64_t Writer::file_bytes() const { return state_->file_bytes; }

}  // namespace iket::capture
