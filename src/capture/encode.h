// encode.h: from the structs of content.h to the bytes of docs/format.md. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "capture/wire.h"

namespace iket::capture {

// Gives every string an id, and knows which strings are not in the file yet.
class StringTable {
 public:
  // The id of `text`; 0 for the empty string. Texts above kMaxStringBytes are cut there.
  uint32_t Intern(std::string_view text);

  bool has_pending() const { return !pending_.empty(); }
  // The payload of a STRS chunk with pending strings, oldest first, up to about `limit` bytes; they
  // are pending no more.
  std::vector<std::byte> TakePending(size_t limit);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> pending_;  // keys of ids_, which do not move
  uint32_t next_id_ = 1;
};

// The `Io` of wire.h that writes one row, interning its strings.
class RowEncoder {
 public:
  RowEncoder(wire::FieldCursor<std::byte> cursor, StringTable& strings)
      : cursor_(cursor), strings_(strings) {}

  template <typename T>
  void Number(const T& value) {
    std::memcpy(cursor_.Next(sizeof(value)), &value, sizeof(value));
  }
  template <typename Enum>
  void Small(const Enum& value) {
    static_assert(sizeof(Enum) == 1);
    Number(value);
  }
  void Text(const std::string& text) { Number(strings_.Intern(text)); }
  void TextList(const std::vector<std::string>& texts) {
    std::string joined;
    for (const std::string& text : texts) joined.append(text).push_back('\0');
    Text(joined);
  }
  void Flags(const auto&... flag) {
    Number(static_cast<uint32_t>(((flag.on ? flag.value : 0u) | ...)));
  }
  void Skip(size_t bytes) { std::memset(cursor_.Next(bytes), 0, bytes); }

 private:
  wire::FieldCursor<std::byte> cursor_;
  StringTable& strings_;
};

// The payload of a chunk that is a plain table of `rows`.
template <typename T>
std::vector<std::byte> EncodeTable(std::span<const T> rows, StringTable& strings) {
  using Row = wire::RowOf<T>;
  const wire::TableHeader header{.head_bytes = sizeof(wire::TableHeader),
                                 .row_count = static_cast<uint32_t>(rows.size()),
                                 .row_bytes = Row::kBytes,
                                 .reserved = 0};
  std::vector<std::byte> payload(sizeof(header) + rows.size() * Row::kBytes);
  std::memcpy(payload.data(), &header, sizeof(header));
  std::byte* table = payload.data() + sizeof(header);
  for (size_t i = 0; i < rows.size(); ++i) {
    RowEncoder encoder(wire::IsTransposed<T>()
                           ? wire::FieldCursor<std::byte>(table, i, rows.size())
                           : wire::FieldCursor<std::byte>(table + i * Row::kBytes),
                       strings);
    Row::Describe(encoder, rows[i]);
  }
  return payload;
}

// The payload of DEVC.
std::vector<std::byte> EncodeDevice(const Device& device, StringTable& strings);

// One row of RING, and the records that belong to it.
struct RingPiece {
  wire::RingEntry entry;
  std::span<const ring::Record> older;
  std::span<const ring::Record> newer;
};

// The payload of RING up to its data, which is the records of all pieces.
std::vector<std::byte> EncodeRingTable(const RingMoment& moment, bool last_of_moment,
                                       std::span<const RingPiece> pieces);

}  // namespace iket::capture
