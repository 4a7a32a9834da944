// decode.h: from untrusted chunk payloads to the structs of content.h. Private to the room.
//
// Nothing here can fail in a way that stops a reader: a payload against the rules is false or
// nullopt, and the caller counts it. Memory stays within a small multiple of the payloads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/column.h"
#include "capture/scan.h"
#include "capture/wire.h"

namespace iket::capture {

// The raw payload of a chunk: in place for codec 0, else unpacked into memory of its own. Aligned
// to at least 4 bytes either way. Nothing when the lengths break the rules or it does not unpack.
class Payload {
 public:
  static std::optional<Payload> Of(const ChunkRef& chunk);
  UntrustedBytes bytes() const { return bytes_; }

 private:
  bool Inflate(UntrustedBytes stored, uint64_t raw_bytes);
  bool Unpack(UntrustedBytes stored, uint64_t raw_bytes);

  Column<std::byte> owned_;
  UntrustedBytes bytes_;
};

// A payload's head, table and data (section 5), checked against the sizes that a kind needs.
struct TableView {
  UntrustedBytes head;  // at least as long as asked for
  UntrustedBytes rows;  // row_count * row_bytes
  UntrustedBytes data;
  uint32_t row_count = 0;
  uint32_t row_bytes = 0;

  static std::optional<TableView> Of(UntrustedBytes payload, uint64_t min_head_bytes,
                                     uint64_t min_row_bytes);
};

// The strings of all STRS chunks, by id.
class StringIndex {
 public:
  // `budget` bounds the bytes of all strings that Text hands out in sum, so that one long string
  // that is named very often cannot fill the memory.
  explicit StringIndex(uint64_t budget) : budget_(budget) {}

  // Takes a STRS payload over; false if it is malformed.
  bool Add(Payload payload);
  // `lost#ID` (counted) for ids that nobody defined, and when the budget is used up.
  std::string Text(uint32_t id);
  uint64_t lost() const { return lost_; }

 private:
  struct Chunk {
    Payload payload;
    std::vector<uint32_t> ends;  // of each string, within `data`
    UntrustedBytes data;
  };
  std::map<uint32_t, Chunk> chunks_;  // by first id; their ranges do not overlap
  uint64_t budget_;
  uint64_t lost_ = 0;
};

// The `Io` of wire.h that reads one row. The caller has checked that the row is long enough.
class RowDecoder {
 public:
  RowDecoder(wire::FieldCursor<const std::byte> cursor, StringIndex& strings)
      : cursor_(cursor), strings_(strings) {}

  template <typename T>
  void Number(T& value) {
    std::memcpy(&value, cursor_.Next(sizeof(value)), sizeof(value));
  }
  template <typename Enum>
  void Small(Enum& value) {
    static_assert(sizeof(Enum) == 1);
    Number(value);
  }
  void Text(std::string& text) { text = strings_.Text(TakeU32()); }
  void TextList(std::vector<std::string>& texts);
  void Flags(auto... flag) {
    const uint32_t flags = TakeU32();
    ((flag.on = (flags & flag.value) != 0), ...);
  }
  void Skip(size_t bytes) { cursor_.Next(bytes); }

 private:
  uint32_t TakeU32() {
    uint32_t value = 0;
    Number(value);
    return value;
  }

  wire::FieldCursor<const std::byte> cursor_;
  StringIndex& strings_;
};

// Appends the rows of a plain table; false if it is malformed.
template <typename T>
bool DecodeTable(UntrustedBytes payload, StringIndex& strings, std::vector<T>& rows) {
  using Row = wire::RowOf<T>;
  const auto table = TableView::Of(payload, sizeof(wire::TableHeader), Row::kBytes);
  if (!table) return false;
  for (size_t i = 0; i < table->row_count; ++i) {
    RowDecoder decoder(
        wire::IsTransposed<T>()
            ? wire::FieldCursor<const std::byte>(table->rows.data(), i, table->row_count)
            : wire::FieldCursor<const std::byte>(table->rows.data() + i * table->row_bytes),
        strings);
    Row::Describe(decoder, rows.emplace_back());
  }
  return true;
}

std::optional<Device> DecodeDevice(UntrustedBytes payload, StringIndex& strings);
// The spans of the block point into the payload.
std::optional<RingBlock> DecodeRings(UntrustedBytes payload);
// The head of DONE.
std::optional<wire::DoneHead> DecodeDone(UntrustedBytes payload);

}  // namespace iket::capture
