#include "capture/writer.h"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/checksum.h"
#include "capture/encode.h"
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

struct Writer::State {
  std::unique_ptr<ByteSink> sink;
  WriterOptions options;
  std::unique_ptr<libdeflate_compressor, FreeCompressor> compressor;
  std::vector<std::byte> compressed;  // reused from chunk to chunk
  StringTable strings;
  std::map<uint32_t, uint64_t> chunks_by_kind;
  uint64_t chunks = 0;
  uint64_t file_bytes = 0;
  uint64_t chunks_lost = 0;
  uint64_t bytes_lost = 0;
  bool failed = false;  // a chunk could not be written; all but DONE are dropped from then on
  bool finished = false;

  Result<void> WriteChunk(uint32_t kind, std::span<const std::byte> raw);
  Result<void> Emit(uint32_t kind, std::span<const std::byte> raw);
  Result<void> WriteStrings();
  template <typename T>
  Result<void> WriteTable(std::span<const T> rows);
  std::span<const std::byte> Compress(std::span<const std::byte> raw);
};

// The zlib form of `raw`, or nothing when that is not worth it.
std::span<const std::byte> Writer::State::Compress(std::span<const std::byte> raw) {
  if (compressor == nullptr || raw.size() < kMinCompressedBytes) return {};
  // Room for what is worth it and no more: deflate gives up when it is reached.
  const size_t worth = raw.size() - raw.size() / 16;
  if (compressed.size() < worth) compressed.resize(worth);
  const size_t bytes =
      libdeflate_zlib_compress(compressor.get(), raw.data(), raw.size(), compressed.data(), worth);
  return {compressed.data(), bytes};
}

// Puts one chunk into the sink, whatever happened before.
Result<void> Writer::State::Emit(uint32_t kind, std::span<const std::byte> raw) {
  const std::span<const std::byte> zlib = Compress(raw);
  const std::span<const std::byte> stored = zlib.empty() ? raw : zlib;
  wire::ChunkHeader header{.kind = kind,
                           .version = wire::kChunkVersion,
                           .codec = zlib.empty() ? wire::kRaw : wire::kZlib,
                           .stored_bytes = stored.size(),
                           .raw_bytes = raw.size(),
                           .sequence = static_cast<uint32_t>(chunks),
                           .reserved = 0,
                           .payload_crc = Crc32c(stored.data(), stored.size()),
                           .header_crc = 0};
  header.header_crc = Crc32c(&header, offsetof(wire::ChunkHeader, header_crc));
  constexpr std::array<std::byte, wire::kChunkAlignment> kZeros{};
  const std::array<std::span<const std::byte>, 3> parts = {
      std::as_bytes(std::span(&header, 1)), stored,
      std::span(kZeros).first(wire::PaddingAfter(stored.size()))};
  if (Result<void> written = sink->Write(parts); !written) return written;
  ++chunks;
  ++chunks_by_kind[kind];
  for (const std::span<const std::byte>& part : parts) file_bytes += part.size();
  return {};
}

Result<void> Writer::State::WriteChunk(uint32_t kind, std::span<const std::byte> raw) {
  if (raw.size() > wire::kMaxRawBytes) {
    return Fail(ErrorKind::kUsage, "a capture chunk of {} bytes is above the limit of {}",
                raw.size(), wire::kMaxRawBytes);
  }
  if (!failed) {
    Result<void> written = Emit(kind, raw);
    if (written) return {};
    failed = true;
    ++chunks_lost;
    bytes_lost += raw.size();
    return written;
  }
  ++chunks_lost;
  bytes_lost += raw.size();
  return {};
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
  if (options.compression_level > 0) {
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
Result<void> Writer::Append(std::span<const Context> contexts) {
  return state_->WriteTable(contexts);
}
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
  size_t pieces_bytes = 0;
  const auto flush = [&](bool last_of_moment) {
    const std::vector<std::byte> payload = EncodeRings(moment, last_of_moment, pieces);
    if (Result<void> written = state_->WriteChunk(wire::kRing, payload); !written) {
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
      .chunks = state_->chunks,
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
  Result<void> written = state_->Emit(wire::kDone, payload);
  Result<void> closed = state_->sink->Close();
  return written ? closed : written;
}

uint64_t Writer::chunks_lost() const { return state_->chunks_lost; }
uint64_t Writer::bytes_lost() const { return state_->bytes_lost; }
uint64_t Writer::chunks_written() const { return state_->chunks; }
uint64_t Writer::file_bytes() const { return state_->file_bytes; }

}  // namespace iket::capture
