// pack_records.h: codec 2 of docs/format.md, records of rings in a byte or a few each.
//
// A warp repeats a few marks, so most of a record is what the records before it foretell: which
// event follows, how many cycles later, with which payload. A record becomes one byte that says
// which of its words came as foretold, and the bytes that did not. Any words come back as they
// were; nothing here knows what they mean, but that an identity has no clock. What was seen of one
// row of a chunk is remembered in the next: rings of one SM tell of the same kernel.
//
// Costs, on a core that others use too (bench/pack_bench.cpp): to pack 3 ns a record with AVX,
// whatever the records are, and 6 to 20 ns without; to unpack 4 to 6 ns; 9 KB of memory. Private to
// the room.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "ring/record.h"

namespace iket::capture {

// What the records so far foretell; the same in packer and unpacker.
struct RecordModel {
  static constexpr size_t kSlots = 256;
  static constexpr size_t kHistories = 1024;

  // Of records with one tag, or with several that share the slot.
  struct alignas(32) Slot {
    std::array<uint32_t, 4> last;      // words of the newest, the first as cycles since its base
    std::array<uint32_t, 4> foretold;  // of the next; the second is not used
  };

  std::array<Slot, kSlots> slots{};
  std::array<uint8_t, kHistories> next{};  // slot that followed, by history
  uint32_t history = 0;                    // of the slots of the newest three records
  uint32_t clock = 0;                      // of the newest record that is no identity
  uint32_t identity = 0;                   // word 0 of the newest identity
};

class RecordPacker {
 public:
  // Room that so many records in so many rows need at the most.
  static constexpr size_t Room(size_t records, size_t rows) {
    return records * (1 + sizeof(ring::Record)) + rows * sizeof(uint32_t) + kOverhang;
  }

  // For exactly so many records in all rows. `room` is of the size that Room() says.
  RecordPacker(std::byte* room, size_t records);

  // The records of the next row, in two parts as a ring has them.
  void AddRow(std::span<const ring::Record> older, std::span<const ring::Record> newer);
  // Packed so far, from the room's beginning; what was promised is counted already.
  size_t bytes() const { return static_cast<size_t>(values_ - room_); }

  // As on a machine without AVX. For tests: the bytes are the same.
  void UsePortable() { vectors_ = false; }

 private:
  // What is stored behind the end of a value.
  static constexpr size_t kOverhang = 16;

  void Add(std::span<const ring::Record> records);
  void AddPortable(std::span<const ring::Record> records);
  void AddVectors(std::span<const ring::Record> records);

  RecordModel model_;
  std::byte* room_;
  std::byte* tags_;    // where the next one goes
  std::byte* values_;  // likewise
  bool vectors_;
};

class RecordUnpacker {
 public:
  // `packed`: the tags of so many records, and values. Nothing if there are fewer bytes than tags.
  static std::optional<RecordUnpacker> Of(UntrustedBytes packed, size_t records);

  // Fills the records of the next row; of all rows no more than were announced. False: the bytes
  // end too early, or are none that a packer makes.
  bool TakeRow(std::span<ring::Record> records);
  // True if all was taken, and nothing is left.
  bool AtEnd() const { return tags_.empty() && values_.empty(); }

 private:
  RecordUnpacker(std::span<const std::byte> tags, std::span<const std::byte> values)
      : tags_(tags), values_(values) {}

  RecordModel model_;
  std::span<const std::byte> tags_;    // that are not taken yet
  std::span<const std::byte> values_;  // likewise
};

}  // namespace iket::capture
