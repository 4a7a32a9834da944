// Packed records. The input is read as such, a byte of rows, a byte for the records of each, then
// tags and values; and as records. Whatever is made of it, packed again it unpacks to the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "capture/pack_records.h"
#include "ring/record.h"

namespace {

using iket::UntrustedBytes;
using iket::capture::RecordPacker;
using iket::capture::RecordUnpacker;
using iket::ring::Record;
using Rows = std::vector<std::vector<Record>>;

void Check(bool holds) {
  if (!holds) std::abort();
}

// Rows of these sizes; nothing if they are not.
std::optional<Rows> Unpacked(UntrustedBytes packed, std::span<const uint8_t> sizes) {
  size_t records = 0;
  for (const uint8_t size : sizes) records += size;
  auto unpacker = RecordUnpacker::Of(packed, records);
  if (!unpacker) return std::nullopt;
  Rows rows;
  for (const uint8_t size : sizes) {
    if (!unpacker->TakeRow(rows.emplace_back(size))) return std::nullopt;
  }
  return unpacker->AtEnd() ? std::optional(std::move(rows)) : std::nullopt;
}

std::vector<std::byte> Packed(const Rows& rows, bool portable) {
  size_t records = 0;
  for (const auto& row : rows) records += row.size();
  std::vector<std::byte> room(RecordPacker::Room(records, rows.size()));
  RecordPacker packer(room.data(), records);
  if (portable) packer.UsePortable();
  for (const auto& row : rows) packer.AddRow({}, row);
  Check(packer.bytes() <= room.size());
  room.resize(packer.bytes());
  return room;
}

void RoundTrip(const Rows& rows) {
  std::vector<uint8_t> sizes;
  for (const auto& row : rows) sizes.push_back(static_cast<uint8_t>(row.size()));
  // Exactly as large as it is: a sanitizer sees any read past its end.
  const std::vector<std::byte> vectors = Packed(rows, false);
  const std::vector<std::byte> packed(vectors.begin(), vectors.end());
  Check(packed == Packed(rows, true));
  const auto again = Unpacked(UntrustedBytes(packed), sizes);
  Check(again.has_value());
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t bytes = rows[i].size() * sizeof(Record);
    Check(bytes == 0 || std::memcmp((*again)[i].data(), rows[i].data(), bytes) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> input(data, size);
  if (!input.empty() && input.size() > input[0]) {
    const auto sizes = input.subspan(1, input[0]);
    const auto packed = input.subspan(1 + sizes.size());
    if (const auto rows = Unpacked(UntrustedBytes(std::as_bytes(packed)), sizes)) RoundTrip(*rows);
  }
  Rows rows(1);
  for (size_t at = 0; at + sizeof(Record) <= size; at += sizeof(Record)) {
    if (rows.back().size() == 255) rows.emplace_back();
    std::memcpy(&rows.back().emplace_back(), data + at, sizeof(Record));
  }
  RoundTrip(rows);
  return 0;
}
