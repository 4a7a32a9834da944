// Packing records: against a slow reading of docs/format.md, over records of every shape, and over
// bytes that no packer made. Buffers are as large as they must be, for sanitizers to see a byte
// more.
#include "capture/pack_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "base/checksum.h"
#include "capture/sample.h"
#include "capture/wire.h"

namespace iket::capture {
namespace {

using Bytes = std::vector<std::byte>;
using ring::Record;
using Rows = std::vector<std::vector<Record>>;
using Words = std::array<uint32_t, 4>;

std::vector<Words> WordsOf(const Rows& rows) {
  std::vector<Words> words;
  for (const auto& row : rows) {
    for (const Record& record : row) {
      words.push_back({record.clock, record.tag, record.low, record.high});
    }
  }
  return words;
}

size_t RecordsOf(const Rows& rows) { return WordsOf(rows).size(); }

std::vector<size_t> Sizes(const Rows& rows) {
  std::vector<size_t> sizes;
  for (const auto& row : rows) sizes.push_back(row.size());
  return sizes;
}

// ---- The slow reading of docs/format.md ----

std::optional<std::vector<Words>> SlowlyUnpacked(const Bytes& packed,
                                                 const std::vector<size_t>& rows) {
  struct Slot {
    uint32_t word = 0, cycles = 0;
    std::array<uint32_t, 2> newest{}, before{};  // of the payload
  };
  std::vector<Slot> slots(256);
  std::vector<size_t> next(1024);
  size_t tag_at = 0, at = 0;
  for (const size_t records : rows) at += records;
  const size_t records = at;
  const auto value = [&](int bytes) -> std::optional<uint32_t> {
    uint32_t sum = 0;
    for (int i = 0; i < bytes; ++i) {
      if (at >= packed.size()) return std::nullopt;
      sum += static_cast<uint32_t>(packed[at++]) << (8 * i);
    }
    return sum;
  };
  const auto size_of = [](uint32_t tag, int bit) {
    const uint32_t size_class = tag >> bit & 3;
    return size_class == 3 ? 4 : static_cast<int>(size_class);
  };
  const auto signed_of = [](uint32_t folded) {
    return folded % 2 == 0 ? folded / 2 : uint32_t{0} - folded / 2 - 1;
  };
  std::vector<Words> all;
  uint32_t identity = 0;
  if (records > packed.size()) return std::nullopt;
  for (const size_t count : rows) {
    if (count == 0) continue;
    const auto start = value(4);
    if (!start) return std::nullopt;
    uint32_t clock = *start;
    size_t history = 0;
    for (size_t i = 0; i < count; ++i) {
      const auto tag = static_cast<uint32_t>(packed[tag_at++]);
      std::optional<uint32_t> off = tag - 192, low = 0, high = 0;
      size_t slot = next[history];
      if (tag < 192) {
        off = value(size_of(tag, 4));
        if (tag / 64 == 1) {
          const auto given = value(1);
          if (!given) return std::nullopt;
          slot = *given;
        } else if (tag / 64 == 2) {
          const auto given = value(4);
          if (!given) return std::nullopt;
          slot = uint32_t{*given * 2654435761u} / (1u << 24);
          slots[slot].word = *given;
        }
        low = value(size_of(tag, 2));
        high = value(size_of(tag, 0));
        if (!off || !low || !high) return std::nullopt;
      }
      next[history] = slot;
      history = (history * 8 ^ slot) % 1024;
      Slot& seen = slots[slot];
      seen.cycles += signed_of(*off);
      uint32_t& base = (seen.word & 0x8000fc00u) == 0x80000c00u ? identity : clock;
      base += seen.cycles;
      std::array<uint32_t, 2> payload;
      for (size_t word = 0; word < 2; ++word) {
        payload[word] = seen.newest[word] + (seen.newest[word] - seen.before[word]) +
                        signed_of(word == 0 ? *low : *high);
      }
      seen.before = seen.newest;
      seen.newest = payload;
      all.push_back({base, seen.word, payload[0], payload[1]});
    }
  }
  if (at != packed.size()) return std::nullopt;
  return all;
}

// ---- The room's own ----

Bytes Packed(const Rows& rows, bool portable = false, size_t cut = 0) {
  const size_t records = RecordsOf(rows);
  Bytes room(RecordPacker::Room(records, rows.size()));
  RecordPacker packer(room.data(), records);
  if (portable) packer.UsePortable();
  for (const auto& row : rows) {
    const std::span<const Record> all = row;
    const size_t older = row.empty() ? 0 : cut % (row.size() + 1);
    packer.AddRow(all.first(older), all.subspan(older));
  }
  return {room.begin(), room.begin() + static_cast<ptrdiff_t>(packer.bytes())};
}

std::optional<std::vector<Words>> Unpacked(const Bytes& packed, const std::vector<size_t>& rows) {
  size_t records = 0;
  for (const size_t count : rows) records += count;
  const auto exact = std::make_unique<std::byte[]>(packed.size());
  std::ranges::copy(packed, exact.get());
  auto unpacker = RecordUnpacker::Of(UntrustedBytes(exact.get(), packed.size()), records);
  if (!unpacker) return std::nullopt;
  Rows all;
  for (const size_t count : rows) {
    std::vector<Record> row(count);
    if (!unpacker->TakeRow(row)) return std::nullopt;
    all.push_back(std::move(row));
  }
  if (!unpacker->AtEnd()) return std::nullopt;
  return WordsOf(all);
}

// ---- Records ----

enum Shape { kZeros, kLoop, kCounting, kNested, kShortWarps, kSlowClock, kFewWords, kAnything };
constexpr std::array kShapes = {kZeros,      kLoop,      kCounting, kNested,
                                kShortWarps, kSlowClock, kFewWords, kAnything};

Record RecordOf(Shape shape, uint32_t i, uint32_t& clock, std::mt19937& random) {
  const auto word = [&] { return static_cast<uint32_t>(random()); };
  switch (shape) {
    case kZeros:
      return {};
    case kLoop:
      clock += 1800 + word() % 50;
      return {.clock = clock, .tag = 1000 + i % 4, .low = 0, .high = 0};
    case kCounting:
      clock += 200 + word() % 200;
      return {.clock = clock, .tag = 1000 + i % 3, .low = i, .high = i % 2 == 0 ? 0 : word()};
    case kNested:
      clock += 30;
      return {.clock = clock, .tag = i % 4 == 3 ? 17u : 5u, .low = i / 4, .high = 0};
    case kShortWarps:
      if (i % 8 == 1) {
        return {.clock = i / 8, .tag = ring::kTagIdentity | i % 32, .low = 0, .high = 9};
      }
      clock += i % 8 == 0 ? 20'000 + word() % 1000 : 90;
      if (i % 8 == 0) {
        return {.clock = clock, .tag = ring::BeginTag(3), .low = word(), .high = clock - 300};
      }
      return {.clock = clock, .tag = i % 8, .low = 0, .high = 0};
    case kSlowClock:  // comes around
      clock += 0x3fffffff + word() % 3;
      return {.clock = clock, .tag = word() % 2, .low = clock, .high = 0 - i};
    case kFewWords: {
      // Sizes at the edges of their classes, tags that share slots.
      constexpr std::array<uint32_t, 12> kWords = {
          0, 1, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0xffffffff};
      const auto any = [&] { return kWords[word() % kWords.size()]; };
      return {.clock = any(), .tag = any() ^ (word() % 4 << 30), .low = any(), .high = any()};
    }
    case kAnything:
      return {.clock = word(), .tag = word(), .low = word(), .high = word()};
  }
  return {};
}

Rows Make(Shape shape, size_t rows, size_t most, std::mt19937& random) {
  Rows all(rows);
  uint32_t i = 0;
  for (auto& row : all) {
    uint32_t clock = static_cast<uint32_t>(random());
    for (size_t count = random() % (most + 1); row.size() < count; ++i) {
      row.push_back(RecordOf(shape, i, clock, random));
    }
  }
  return all;
}

Rows MakeAny(size_t rows, size_t most, std::mt19937& random) {
  Rows all;
  while (all.size() < rows) {
    all.push_back(Make(kShapes[random() % kShapes.size()], 1, most, random).front());
  }
  return all;
}

TEST(PackRecords, WhatGoesInComesOut) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const size_t rows = random() % 6;
    const size_t most = round % 4 == 0 ? 700 : 20;
    const Rows records = round % 9 == 8
                             ? MakeAny(rows, most, random)
                             : Make(kShapes[static_cast<size_t>(round) % 8], rows, most, random);
    const Bytes packed = Packed(records, false, random());
    ASSERT_EQ(packed, Packed(records, true, random())) << "round " << round;
    ASSERT_EQ(Unpacked(packed, Sizes(records)), WordsOf(records)) << "round " << round;
    ASSERT_EQ(SlowlyUnpacked(packed, Sizes(records)), WordsOf(records)) << "round " << round;
  }
}

// Byte for byte, worked out by hand.
TEST(PackRecords, BytesAreThoseOfTheFormat) {
  const auto bytes = [](std::initializer_list<int> values) {
    Bytes all;
    for (const int value : values) all.push_back(static_cast<std::byte>(value));
    return all;
  };
  // Tag 0 is known from the start and foretold.
  EXPECT_EQ(Packed({{Record{}}}), bytes({0xc0, 0, 0, 0, 0}));
  // 5 * 0x9e3779b1 = 0x317156075, slot 0x17: new, then by its slot until the newest three are the
  // same, then foretold.
  static_assert((5 * 0x9e3779b1u) >> 24 == 0x17);
  const Rows loop = {{{1000, 5, 1, 0},
                      {1090, 5, 2, 0},
                      {1190, 5, 3, 0x300},
                      {1280, 5, 4, 0x600},
                      {1370, 5, 5, 0x900},
                      {1470, 5, 6, 0xc00}}};
  EXPECT_EQ(Packed(loop), bytes({0x84, 0x50, 0x52, 0x50, 0x40, 0xd4,  // tags
                                 0xe8, 3,    0,    0,                 // the clock of the first
                                 5,    0,    0,    0,    2,           // new; low + 1
                                 180,  0x17,                          // 90 cycles more than 0
                                 20,   0x17, 0,    6,                 // 10 more; high + 0x300
                                 19,   0x17,                          // 10 less
                                 0x17}));
}

TEST(PackRecords, LoopsTakeAByteOrTwo) {
  std::mt19937 random(2);
  const auto bytes_a_record = [&](Shape shape) {
    Rows rows;
    while (rows.size() < 32) {
      uint32_t clock = static_cast<uint32_t>(random());
      auto& row = rows.emplace_back();
      for (uint32_t i = 0; i < 500; ++i) row.push_back(RecordOf(shape, i, clock, random));
    }
    return static_cast<double>(Packed(rows).size()) / static_cast<double>(RecordsOf(rows));
  };
  EXPECT_LT(bytes_a_record(kLoop), 1.3);
  EXPECT_LT(bytes_a_record(kNested), 1.6);
  EXPECT_LT(bytes_a_record(kShortWarps), 3.5);
  EXPECT_LT(bytes_a_record(kAnything), 17.1);
}

TEST(PackRecords, EveryCutIsSeen) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    const Rows rows = MakeAny(3, 25, random);
    const Bytes packed = Packed(rows);
    for (size_t size = 0; size < packed.size(); ++size) {
      const Bytes cut(packed.begin(), packed.begin() + static_cast<ptrdiff_t>(size));
      ASSERT_EQ(Unpacked(cut, Sizes(rows)), std::nullopt) << size << " of " << packed.size();
    }
    Bytes longer = packed;
    longer.push_back({});
    ASSERT_EQ(Unpacked(longer, Sizes(rows)), std::nullopt);
  }
}

// Both readings say the same of bytes that no packer made.
TEST(PackRecords, DamageIsReadAsTheFormatSays) {
  std::mt19937 random(4);
  size_t readable = 0, unreadable = 0;
  for (int round = 0; round < 4000; ++round) {
    const Rows rows = MakeAny(1 + random() % 3, 40, random);
    Bytes packed = Packed(rows);
    for (size_t wounds = random() % 4; wounds > 0 && !packed.empty(); --wounds) {
      packed[random() % packed.size()] = static_cast<std::byte>(random());
    }
    if (round % 5 == 0) {
      for (std::byte& byte : packed) byte = static_cast<std::byte>(random());
    }
    const auto read = Unpacked(packed, Sizes(rows));
    ASSERT_EQ(read, SlowlyUnpacked(packed, Sizes(rows))) << "round " << round;
    ++(read ? readable : unreadable);
  }
  EXPECT_GT(readable, 500u);
  EXPECT_GT(unreadable, 500u);
}

// ---- Whole captures ----

std::vector<wire::ChunkHeader*> RingHeaders(Bytes& file) {
  std::vector<wire::ChunkHeader*> headers;
  for (size_t at = sizeof(wire::FileHeader); at < file.size();) {
    auto* const header = reinterpret_cast<wire::ChunkHeader*>(&file[at]);
    if (header->kind == wire::kRing) headers.push_back(header);
    at += sizeof(*header) + header->stored_bytes + wire::PaddingAfter(header->stored_bytes);
  }
  return headers;
}

void Seal(wire::ChunkHeader& header) {
  header.payload_crc = Crc32c(&header + 1, header.stored_bytes);
  header.header_crc = Crc32c(&header, offsetof(wire::ChunkHeader, header_crc));
}

Sample LoopSample(Shape shape, size_t records) {
  std::mt19937 random(5);
  Sample sample;
  SampleMoment& moment = sample.moments.emplace_back();
  moment.moment = {.context = 3, .settled = true, .number = 8};
  for (uint32_t ring = 0; ring < 5; ++ring) {
    SampleRing& one = moment.rings.emplace_back();
    one.ring = ring;
    uint32_t clock = 77;
    for (uint32_t i = 0; i < records * ring; ++i) {
      one.records.push_back(RecordOf(shape, i, clock, random));
    }
    one.written = 160 + one.records.size() * sizeof(Record);
    one.older = one.records.size() / 3;
  }
  return sample;
}

constexpr WriterOptions kPack = {.compression_level = 0, .pack_rings = true};

TEST(PackedChunks, AreReadAsTheyWereWritten) {
  std::mt19937_64 random(6);
  for (const bool shared : {false, true}) {
    for (int round = 0; round < 30; ++round) {
      const Sample sample = RandomSample(random);
      WriterOptions options = kPack;
      options.shared = shared;
      options.chunk_bytes = round % 2 == 0 ? 4096 : 4 << 20;
      const Bytes file = SampleFile(sample, options);
      const Result<Reader> reader = Reader::FromBytes(file, "packed");
      ASSERT_TRUE(reader) << reader.error().message;
      ExpectSame(sample, *reader);
    }
  }
}

TEST(PackedChunks, ArePackedWhereItGains) {
  const size_t raw = SampleFile(LoopSample(kLoop, 200), {.compression_level = 0}).size();
  Bytes loop = SampleFile(LoopSample(kLoop, 200), kPack);
  ASSERT_EQ(RingHeaders(loop).size(), 1u);
  EXPECT_EQ(RingHeaders(loop)[0]->codec, wire::kPackedRecords);
  EXPECT_LT(loop.size(), raw / 8);
  Bytes anything = SampleFile(LoopSample(kAnything, 200), kPack);
  EXPECT_EQ(RingHeaders(anything)[0]->codec, wire::kRaw);
  EXPECT_EQ(anything.size(), raw);
  Bytes nothing = SampleFile(LoopSample(kLoop, 0), kPack);
  EXPECT_EQ(RingHeaders(nothing)[0]->codec, wire::kRaw);
}

TEST(PackedChunks, ALengthThatDoesNotFitIsMalformed) {
  for (const int64_t off : {-16, -1, 1, 16, 1 << 30}) {
    Bytes file = SampleFile(LoopSample(kLoop, 20), kPack);
    wire::ChunkHeader& header = *RingHeaders(file)[0];
    header.raw_bytes += static_cast<uint64_t>(off);
    Seal(header);
    const Result<Reader> reader = Reader::FromBytes(file, "packed");
    ASSERT_TRUE(reader);
    EXPECT_EQ(reader->ForEachRingBlock([](const RingBlock&) { return true; }).blocks_malformed, 1u);
  }
}

// More records than there are tags, as many as a row can say: refused before memory is taken.
TEST(PackedChunks, ARowOfTooManyRecordsIsMalformed) {
  for (const uint32_t records : {61u, 59u, 0u, 0x3fffffu, 0xffffffffu}) {
    Bytes file = SampleFile(LoopSample(kLoop, 20), kPack);
    wire::ChunkHeader& header = *RingHeaders(file)[0];
    auto* const row =
        reinterpret_cast<wire::RingEntry*>(reinterpret_cast<std::byte*>(&header + 1) +
                                           sizeof(wire::RingHead) + 3 * sizeof(wire::RingEntry));
    ASSERT_EQ(row->records, 60u);
    header.raw_bytes += (uint64_t{records} - row->records) * sizeof(Record);
    row->records = records;
    row->written = uint64_t{1} << 40;
    Seal(header);
    const Result<Reader> reader = Reader::FromBytes(file, "packed");
    ASSERT_TRUE(reader);
    EXPECT_EQ(reader->ForEachRingBlock([](const RingBlock&) { return true; }).blocks_malformed, 1u)
        << records;
  }
}

// A table that a later writer made longer is passed over in the packed form, too.
TEST(PackedChunks, LaterHeadsAndRowsAreRead) {
  const std::vector<Record> records = {{100, 5, 1, 0}, {190, 5, 2, 0}, {280, 5, 3, 0}};
  const Bytes packed = Packed({records, records});
  const wire::TableHeader table{.head_bytes = 64, .row_count = 2, .row_bytes = 104, .reserved = 0};
  Bytes payload(table.head_bytes + table.row_count * table.row_bytes);
  std::memcpy(payload.data(), &table, sizeof(table));
  for (size_t i = 0; i < 2; ++i) {
    const wire::RingEntry row{
        .ring = 7, .records = 3, .written = 96, .first = 48 * i, .reserved = 0, .header = {}};
    std::memcpy(&payload[64 + 104 * i], &row, sizeof(row));
  }
  const size_t raw_bytes = payload.size() + 6 * sizeof(Record);
  payload.insert(payload.end(), packed.begin(), packed.end());
  // Its place between the chunks of a file that is whole.
  Bytes file = SampleFile(Sample{}, kPack);
  Bytes chunk(sizeof(wire::ChunkHeader));
  chunk.insert(chunk.end(), payload.begin(), payload.end());
  chunk.resize(chunk.size() + wire::PaddingAfter(payload.size()));
  auto& header = *reinterpret_cast<wire::ChunkHeader*>(chunk.data());
  header = {.kind = wire::kRing,
            .version = 1,
            .codec = wire::kPackedRecords,
            .stored_bytes = payload.size(),
            .raw_bytes = raw_bytes,
            .sequence = 100,
            .reserved = 0,
            .payload_crc = 0,
            .header_crc = 0};
  Seal(header);
  file.insert(file.end(), chunk.begin(), chunk.end());
  const Result<Reader> reader = Reader::FromBytes(file, "packed");
  ASSERT_TRUE(reader);
  std::vector<Words> read;
  const RingWalk walk = reader->ForEachRingBlock([&](const RingBlock& block) {
    for (const RingRow& row : block.rows) {
      for (const Words& words : WordsOf({{row.records.begin(), row.records.end()}})) {
        read.push_back(words);
      }
    }
    return true;
  });
  EXPECT_EQ(walk.blocks, 1u);
  EXPECT_EQ(read, WordsOf({records, records}));
}

TEST(PackedChunks, AreRingsAndNothingElse) {
  Bytes file = SampleFile(FixedSample(), {.compression_level = 0});
  size_t notes = 0;
  for (size_t at = sizeof(wire::FileHeader); at < file.size();) {
    auto& header = *reinterpret_cast<wire::ChunkHeader*>(&file[at]);
    if (header.kind == wire::kNote) {
      header.codec = wire::kPackedRecords;
      Seal(header);
      ++notes;
    }
    at += sizeof(header) + header.stored_bytes + wire::PaddingAfter(header.stored_bytes);
  }
  ASSERT_GT(notes, 0u);
  const Result<Reader> reader = Reader::FromBytes(file, "packed");
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->capture().damage.chunks_unknown, notes);
  EXPECT_EQ(reader->capture().damage.chunks_malformed, 0u);
}

}  // namespace
}  // namespace iket::capture
