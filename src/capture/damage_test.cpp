// Files that are cut, damaged or made in bad faith: every whole chunk comes back, everything else
// is counted. Accidents at random are in recovery_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/checksum.h"
#include "capture/reader.h"
#include "capture/sample.h"
#include "capture/scan.h"

namespace iket::capture {
namespace {

using Bytes = std::vector<std::byte>;

Scan ScanOf(const Bytes& file) {
  Result<Scan> scan = ScanChunks(UntrustedBytes(std::span<const std::byte>(file)), "test");
  EXPECT_TRUE(scan) << scan.error().message;
  return std::move(*scan);
}

Reader Read(const Bytes& file) {
  Result<Reader> reader = Reader::FromBytes(file, "test");
  EXPECT_TRUE(reader) << reader.error().message;
  return std::move(*reader);
}

// Where a chunk lies: [begin, payload_end) matters, [payload_end, end) is padding.
struct Extent {
  size_t begin;
  size_t payload_end;
  size_t end;
  uint32_t sequence;
};

std::vector<Extent> ExtentsOf(const Bytes& file) {
  const Scan scan = ScanOf(file);
  std::vector<Extent> extents;
  for (const ChunkRef& chunk : scan.chunks) {
    const size_t payload = static_cast<size_t>(chunk.stored.data() - file.data());
    const size_t payload_end = payload + chunk.stored.size();
    extents.push_back({payload - sizeof(wire::ChunkHeader), payload_end,
                       payload_end + wire::PaddingAfter(chunk.stored.size()),
                       chunk.header.sequence});
  }
  EXPECT_EQ(extents.front().begin, sizeof(wire::FileHeader));
  EXPECT_EQ(extents.back().end, file.size());
  return extents;
}

// A chunk with right checksums, whatever it holds.
void AppendChunk(Bytes& file, wire::ChunkHeader header, const Bytes& stored) {
  header.payload_crc = Crc32c(stored.data(), stored.size());
  header.header_crc = Crc32c(&header, offsetof(wire::ChunkHeader, header_crc));
  const auto* bytes = reinterpret_cast<const std::byte*>(&header);
  file.insert(file.end(), bytes, bytes + sizeof(header));
  file.insert(file.end(), stored.begin(), stored.end());
  file.resize(file.size() + wire::PaddingAfter(stored.size()));
}

Bytes FileHeaderBytes() {
  auto owned = std::make_unique<MemorySink>();
  const MemorySink& sink = *owned;
  Writer writer = *Writer::Create(std::move(owned));
  return sink.bytes();
}

template <typename... T>
Bytes BytesOf(const T&... values) {
  Bytes bytes;
  (bytes.insert(bytes.end(), reinterpret_cast<const std::byte*>(&values),
                reinterpret_cast<const std::byte*>(&values) + sizeof(values)),
   ...);
  return bytes;
}

TEST(Cut, EveryWholeChunkIsRecoveredAtEveryByte) {
  const Bytes whole = SampleFile(FixedSample(), {.compression_level = 1, .chunk_bytes = 4096});
  const std::vector<Extent> extents = ExtentsOf(whole);
  for (size_t size = 0; size <= whole.size(); ++size) {
    SCOPED_TRACE(size);
    const Bytes file(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    Result<Reader> reader = Reader::FromBytes(file, "cut");
    if (size < wire::kMagic.size()) {
      EXPECT_FALSE(reader);
      continue;
    }
    ASSERT_TRUE(reader) << reader.error().message;
    const Damage& damage = reader->capture().damage;
    size_t expected = 0;
    size_t whole_bytes = size < sizeof(wire::FileHeader) ? 0 : sizeof(wire::FileHeader);
    for (const Extent& extent : extents) {
      if (extent.payload_end > size) break;
      ++expected;
      whole_bytes = std::min(extent.end, size);
    }
    ASSERT_EQ(damage.chunks_whole, expected);
    EXPECT_EQ(damage.bytes_skipped, size - whole_bytes);
    EXPECT_EQ(damage.chunks_malformed, 0u);
    EXPECT_EQ(damage.cut, expected != extents.size());
  }
}

TEST(Damage, APieceThatIsMissingCostsNoNeighbour) {
  const Bytes whole = SampleFile(FixedSample(), {.compression_level = 0});
  const std::vector<Extent> extents = ExtentsOf(whole);
  for (size_t i = 0; i + 1 < extents.size(); ++i) {
    SCOPED_TRACE(i);
    Bytes file = whole;
    // From inside the payload of chunk i to its end: the header now promises too much.
    const auto begin = static_cast<ptrdiff_t>(extents[i].begin + sizeof(wire::ChunkHeader) + 8);
    file.erase(file.begin() + begin, file.begin() + static_cast<ptrdiff_t>(extents[i].end));
    const Scan scan = ScanOf(file);
    EXPECT_EQ(scan.chunks.size(), extents.size() - 1);
    EXPECT_EQ(scan.damage.chunks_damaged, 1u);
    EXPECT_EQ(scan.damage.bytes_skipped, sizeof(wire::ChunkHeader) + 8);
  }
}

TEST(Damage, AMissingChunkIsCounted) {
  const Bytes whole = SampleFile(FixedSample());
  const std::vector<Extent> extents = ExtentsOf(whole);
  Bytes file = whole;
  file.erase(file.begin() + static_cast<ptrdiff_t>(extents[2].begin),
             file.begin() + static_cast<ptrdiff_t>(extents[4].end));
  const Scan scan = ScanOf(file);
  EXPECT_EQ(scan.damage.chunks_missing, 3u);
  EXPECT_EQ(scan.damage.bytes_skipped, 0u);
}

TEST(Damage, LostStringsShowAndCount) {
  const Bytes whole = SampleFile(FixedSample(), {.compression_level = 0});
  Bytes file = whole;
  for (const ChunkRef& chunk : ScanOf(whole).chunks) {
    if (chunk.header.kind != wire::kStrings) continue;
    // The one with the kernels' names; the others must not shift.
    const std::string_view text(reinterpret_cast<const char*>(chunk.stored.data()),
                                chunk.stored.size());
    if (text.find("_Z4gemm") == text.npos) continue;
    file[static_cast<size_t>(chunk.stored.data() - whole.data())] ^= std::byte{1};
  }
  const Reader reader = Read(file);
  const Capture& capture = reader.capture();
  EXPECT_THAT(capture.kernels[0].mangled_name, testing::StartsWith("lost#"));
  EXPECT_EQ(capture.declarations[0].name, "load");
  EXPECT_EQ(capture.damage.chunks_damaged, 1u);
  EXPECT_GE(capture.damage.strings_lost, 4u);
  EXPECT_THAT(capture.damage.Summary(), testing::HasSubstr("1 chunk damaged"));
}

TEST(Damage, AnotherVersionIsRefusedByName) {
  Bytes file = FileHeaderBytes();
  for (size_t field : {size_t{8}, size_t{20}}) {
    Bytes changed = file;
    changed[field] = std::byte{2};
    const uint32_t crc = Crc32c(changed.data(), 28);
    std::memcpy(changed.data() + 28, &crc, 4);
    const auto reader = Reader::FromBytes(changed, "new.iketcap");
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(reader.error().message, testing::HasSubstr("new.iketcap: a capture of format"));
  }
}

TEST(Unknown, ChunksAreSkippedAndCounted) {
  Bytes file = SampleFile(FixedSample());
  const uint64_t chunks = ScanOf(file).chunks.size();
  const Bytes payload(13, std::byte{7});
  const wire::ChunkHeader known{.kind = wire::kNote,
                                .version = 1,
                                .codec = 0,
                                .stored_bytes = payload.size(),
                                .raw_bytes = payload.size(),
                                .sequence = static_cast<uint32_t>(chunks),
                                .reserved = 0,
                                .payload_crc = 0,
                                .header_crc = 0};
  wire::ChunkHeader chunk = known;
  chunk.kind = wire::Kind("NEWS");
  AppendChunk(file, chunk, payload);
  chunk = known;
  chunk.version = 2;
  chunk.sequence++;
  AppendChunk(file, chunk, payload);
  chunk.version = 1;
  chunk.codec = 2;
  chunk.sequence++;
  AppendChunk(file, chunk, payload);
  const Reader reader = Read(file);
  ExpectSame(FixedSample(), reader);
  EXPECT_EQ(reader.capture().damage.chunks_unknown, 3u);
  EXPECT_EQ(reader.capture().damage.chunks_whole, chunks + 3);
  EXPECT_EQ(reader.capture().damage.chunks_missing, 0u);
  EXPECT_EQ(reader.capture().damage.chunks_malformed, 0u);
}

TEST(Unknown, LongerHeadsAndRowsAreRead) {
  Bytes file = FileHeaderBytes();
  // One counter (unnamed) with 8 bytes more in head and row than we know.
  const Bytes payload = BytesOf(uint32_t{24}, uint32_t{1}, uint32_t{24}, uint32_t{0}, uint64_t{99},
                                uint32_t{0}, uint32_t{0}, uint64_t{77}, uint64_t{99});
  AppendChunk(file, {wire::kCounter, 1, 0, payload.size(), payload.size(), 0, 0, 0, 0}, payload);
  const Reader reader = Read(file);
  ASSERT_EQ(reader.capture().counters.size(), 1u);
  EXPECT_EQ(reader.capture().counters[0].value, 77u);
}

// Payloads with right checksums that break a rule, each in its own file.
TEST(Hostile, PayloadsAreCountedAsMalformed) {
  const auto table = [](uint32_t head, uint32_t count, uint32_t row) {
    return BytesOf(head, count, row, uint32_t{0});
  };
  const auto padded = [](Bytes bytes, size_t more) {
    bytes.resize(bytes.size() + more);
    return bytes;
  };
  const auto strings = [](uint32_t first, uint32_t count, uint32_t length, size_t text) {
    Bytes bytes = BytesOf(uint32_t{24}, count, uint32_t{8}, uint32_t{0}, first, uint32_t{0});
    for (uint32_t i = 0; i < count; ++i) {
      const Bytes row = BytesOf(length, uint32_t{0});
      bytes.insert(bytes.end(), row.begin(), row.end());
    }
    bytes.resize(bytes.size() + text);
    return bytes;
  };
  const auto ring = [](uint32_t records, uint64_t written, uint64_t first, size_t data) {
    Bytes bytes = BytesOf(uint32_t{48}, uint32_t{1}, uint32_t{96}, uint32_t{0});
    bytes.resize(48);
    const Bytes row = BytesOf(uint32_t{0}, records, written, first);
    bytes.insert(bytes.end(), row.begin(), row.end());
    bytes.resize(48 + 96 + data);
    return bytes;
  };
  struct Case {
    uint32_t kind;
    Bytes payload;
  };
  const std::vector<Case> cases = {
      {wire::kNote, {}},
      {wire::kNote, padded({}, 15)},
      {wire::kNote, table(0, 0, 24)},              // head too short
      {wire::kNote, table(24, 0, 24)},             // head past the end
      {wire::kNote, padded(table(17, 0, 24), 9)},  // head not a multiple of 8
      {wire::kNote, table(16, 0, 16)},             // row too short
      {wire::kNote, padded(table(16, 1, 25), 25)},
      {wire::kNote, padded(table(16, 2, 24), 47)},
      {wire::kNote, table(16, 0xffffffff, 0xfffffff8)},
      {wire::kLaunch, padded(table(16, 0xffffffff, 80), 160)},
      {wire::kDevice, table(16, 0, 8)},
      {wire::kDevice, padded(table(88, 0x10000000, 8), 72)},
      {wire::kDone, table(16, 0, 16)},
      {wire::kStrings, strings(0, 1, 1, 1)},  // id 0 is taken
      {wire::kStrings, strings(1, 2, 1, 1)},  // text too short
      {wire::kStrings, strings(1, 2, 1, 3)},  // text too long
      {wire::kStrings, strings(1, 2, 0xffffffff, 2)},
      {wire::kStrings, strings(0xffffffff, 2, 1, 2)},  // ids above 2^32
      {wire::kRing, table(16, 0, 96)},
      {wire::kRing, ring(2, 32, 0, 16)},   // records past the end
      {wire::kRing, ring(1, 32, 0, 32)},   // data left over
      {wire::kRing, ring(1, 33, 0, 16)},   // written not a multiple of 16
      {wire::kRing, ring(1, 32, 1, 16)},   // first neither
      {wire::kRing, ring(1, 16, 16, 16)},  // more kept than written
      {wire::kRing, ring(1, 0, ~uint64_t{15}, 16)},
      {wire::kRing, ring(0xffffffff, ~uint64_t{15}, 0, 16)},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const size_t size = cases[i].payload.size();
    Bytes file = FileHeaderBytes();
    AppendChunk(file, {cases[i].kind, 1, 0, size, size, 0, 0, 0, 0}, cases[i].payload);
    const Reader reader = Read(file);
    const RingWalk walk = reader.ForEachRingBlock([](const RingBlock&) { return true; });
    EXPECT_EQ(reader.capture().damage.chunks_malformed + walk.blocks_malformed, 1u);
    EXPECT_EQ(reader.capture().damage.chunks_whole, 1u);
  }
}

TEST(Hostile, StringsThatDefineAnIdTwice) {
  const auto strings = [](uint32_t first, uint32_t count) {
    Bytes bytes = BytesOf(uint32_t{24}, count, uint32_t{8}, uint32_t{0}, first, uint32_t{0});
    for (uint32_t i = 0; i < count; ++i) {
      const Bytes row = BytesOf(uint32_t{1}, uint32_t{0});
      bytes.insert(bytes.end(), row.begin(), row.end());
    }
    bytes.resize(bytes.size() + count, std::byte{'x'});
    return bytes;
  };
  Bytes file = FileHeaderBytes();
  uint32_t sequence = 0;
  for (const Bytes& payload : {strings(10, 5), strings(15, 5), strings(5, 5),  // fit
                               strings(14, 1), strings(9, 2), strings(4, 20), strings(19, 9)}) {
    AppendChunk(file, {wire::kStrings, 1, 0, payload.size(), payload.size(), sequence++, 0, 0, 0},
                payload);
  }
  EXPECT_EQ(Read(file).capture().damage.chunks_malformed, 4u);
}

TEST(Hostile, LengthsInHeaders) {
  const Bytes note = BytesOf(uint32_t{16}, uint32_t{0}, uint32_t{24}, uint32_t{0});
  const auto damage_of = [&](uint16_t codec, uint64_t stored, uint64_t raw) {
    Bytes file = FileHeaderBytes();
    AppendChunk(file, {wire::kNote, 1, codec, stored, raw, 0, 0, 0, 0}, note);
    return Read(file).capture().damage;
  };
  EXPECT_EQ(damage_of(0, 16, 16).chunks_malformed, 0u);
  EXPECT_EQ(damage_of(0, 16, 17).chunks_malformed, 1u);
  EXPECT_EQ(damage_of(0, 16, ~uint64_t{0}).chunks_malformed, 1u);
  EXPECT_EQ(damage_of(1, 16, 16).chunks_malformed, 1u);              // not zlib
  EXPECT_EQ(damage_of(1, 16, 16 * 1032 + 65).chunks_malformed, 1u);  // refused unseen
  EXPECT_EQ(damage_of(1, 16, uint64_t{1} << 40).chunks_malformed, 1u);
  EXPECT_EQ(damage_of(0, 17, 17).chunks_damaged, 1u);  // past the end
  EXPECT_EQ(damage_of(0, ~uint64_t{0}, ~uint64_t{0}).chunks_damaged, 1u);
  EXPECT_EQ(damage_of(0, ~uint64_t{0} - 39, 16).chunks_damaged, 1u);
}

TEST(Hostile, ManyBombsInOneFileStayWithinTheLimit) {
  // Chunks that inflate to 8 MiB each, 320 MB in all. Facts above FactLimit are refused before they
  // are inflated.
  const size_t raw_bytes = size_t{8} << 20;
  auto owned = std::make_unique<MemorySink>();
  const MemorySink& sink = *owned;
  Writer writer =
      *Writer::Create(std::move(owned), {.compression_level = 9, .chunk_bytes = raw_bytes});
  ASSERT_TRUE(writer.Append(std::span<const Note>(std::vector<Note>(raw_bytes / 24 - 1))));
  const Scan one = ScanOf(sink.bytes());
  ASSERT_EQ(one.chunks.size(), 1u);
  const Bytes stored(one.chunks[0].stored.span().begin(), one.chunks[0].stored.span().end());
  Bytes file = FileHeaderBytes();
  for (uint32_t i = 0; i < 40; ++i) {
    wire::ChunkHeader header = one.chunks[0].header;
    header.sequence = i;
    AppendChunk(file, header, stored);
  }
  const Reader reader = Read(file);
  const uint64_t allowed = FactLimit(file.size()) / one.chunks[0].header.raw_bytes;
  ASSERT_LT(allowed, 20u);
  EXPECT_EQ(reader.capture().damage.chunks_malformed, 40 - allowed);
}

TEST(Hostile, OneLongStringNamedOftenIsNotCopiedWithoutEnd) {
  auto owned = std::make_unique<MemorySink>();
  const MemorySink& sink = *owned;
  Writer writer = *Writer::Create(std::move(owned));
  const std::string text(size_t{1} << 20, 'x');
  ASSERT_TRUE(writer.Append(std::span<const Note>(std::vector<Note>(1000, Note{.text = text}))));
  const Reader reader = Read(sink.bytes());
  uint64_t bytes = 0;
  for (const Note& note : reader.capture().notes) bytes += note.text.size();
  EXPECT_EQ(reader.capture().notes.size(), 1000u);
  EXPECT_LE(bytes, FactLimit(sink.bytes().size()) + 1000 * 15);
  EXPECT_GT(reader.capture().damage.strings_lost, 0u);
}

TEST(Hostile, NestedHeadersDoNotCostTheSquareOfTheSize) {
  // Right headers one after the other, each promising a payload to just before the end of the file
  // whose checksum is wrong. Checked naively: 52,000 x 1 MB on average.
  Bytes file = FileHeaderBytes();
  constexpr size_t kBytes = size_t{2} << 20;
  while (file.size() < kBytes) {
    wire::ChunkHeader header{wire::kNote, 1, 0, kBytes - file.size() - 40, 16, 0, 0, 1, 0};
    header.header_crc = Crc32c(&header, offsetof(wire::ChunkHeader, header_crc));
    const Bytes bytes = BytesOf(header);
    file.insert(file.end(), bytes.begin(), bytes.end());
  }
  file.resize(kBytes + 800);
  const Scan scan = ScanOf(file);
  EXPECT_EQ(scan.chunks.size(), 0u);
  EXPECT_LE(scan.damage.chunks_damaged, 2 * kWastedPasses + 3);
  EXPECT_EQ(scan.damage.bytes_skipped, file.size() - sizeof(wire::FileHeader));
}

}  // namespace
}  // namespace iket::capture
