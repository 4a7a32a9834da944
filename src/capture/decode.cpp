#include "capture/decode.h"

#include <fmt/format.h>
#include <libdeflate.h>

#include <limits>

#include "capture/pack_records.h"

namespace iket::capture {

std::optional<Payload> Payload::Of(const ChunkRef& chunk) {
  const uint64_t raw_bytes = chunk.header.raw_bytes;
  const UntrustedBytes stored = chunk.stored;
  if (raw_bytes > wire::kMaxRawBytes) return std::nullopt;
  Payload payload;
  if (chunk.header.codec == wire::kRaw) {
    if (raw_bytes != stored.size()) return std::nullopt;
    payload.bytes_ = stored;
    if (reinterpret_cast<uintptr_t>(stored.data()) % alignof(ring::Record) == 0) return payload;
    payload.owned_.resize(stored.size());
    std::memcpy(payload.owned_.data(), stored.data(), stored.size());
  } else {
    const bool made = chunk.header.codec == wire::kPackedRecords
                          ? payload.Unpack(stored, raw_bytes)
                          : payload.Inflate(stored, raw_bytes);
    if (!made) return std::nullopt;
  }
  payload.bytes_ = UntrustedBytes(payload.owned_.data(), raw_bytes);
  return payload;
}

bool Payload::Inflate(UntrustedBytes stored, uint64_t raw_bytes) {
  if (raw_bytes > stored.size() * wire::kMaxInflation + wire::kInflationSlack) return false;
  owned_.resize(raw_bytes);
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>
      decompressor(libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  if (decompressor == nullptr) return false;
  size_t stored_used = 0;
  size_t raw_made = 0;
  const libdeflate_result result =
      libdeflate_zlib_decompress_ex(decompressor.get(), stored.data(), stored.size(), owned_.data(),
                                    raw_bytes, &stored_used, &raw_made);
  return result == LIBDEFLATE_SUCCESS && stored_used == stored.size() && raw_made == raw_bytes;
}

// Of a RING payload: head and table as they are, the records behind them packed.
bool Payload::Unpack(UntrustedBytes stored, uint64_t raw_bytes) {
  const auto table = TableView::Of(stored, sizeof(wire::RingHead), sizeof(wire::RingEntry));
  if (!table) return false;
  // No overflow: fewer than 2^32 rows of fewer than 2^32 records.
  uint64_t records = 0;
  for (size_t i = 0; i < table->row_count; ++i) {
    records += table->rows.Read<wire::RingEntry>(i * table->row_bytes)->records;
  }
  const uint64_t table_bytes = stored.size() - table->data.size();
  if (records > wire::kMaxRawBytes || raw_bytes != table_bytes + records * ring::kRecordBytes) {
    return false;
  }
  auto unpacker = RecordUnpacker::Of(table->data, records);
  if (!unpacker) return false;
  owned_.resize(raw_bytes);
  std::memcpy(owned_.data(), stored.data(), table_bytes);
  // All sizes before this place are multiples of 8; records are plain words.
  auto* to = reinterpret_cast<ring::Record*>(owned_.data() + table_bytes);
  for (size_t i = 0; i < table->row_count; ++i) {
    const auto count = table->rows.Read<wire::RingEntry>(i * table->row_bytes)->records;
    if (!unpacker->TakeRow({to, count})) return false;
    to += count;
  }
  return unpacker->AtEnd();
}

std::optional<TableView> TableView::Of(UntrustedBytes payload, uint64_t min_head_bytes,
                                       uint64_t min_row_bytes) {
  const auto header = payload.Read<wire::TableHeader>(0);
  if (!header || header->head_bytes % 8 != 0 || header->row_bytes % 8 != 0) return std::nullopt;
  if (header->head_bytes < min_head_bytes || header->row_bytes < min_row_bytes) {
    return std::nullopt;
  }
  // No overflow: both factors have 32 bits.
  const uint64_t rows_bytes = uint64_t{header->row_count} * header->row_bytes;
  const auto head = payload.Slice(0, header->head_bytes);
  const auto rows = payload.Slice(header->head_bytes, rows_bytes);
  if (!head || !rows) return std::nullopt;
  const uint64_t data_at = header->head_bytes + rows_bytes;
  return TableView{.head = *head,
                   .rows = *rows,
                   .data = *payload.Slice(data_at, payload.size() - data_at),
                   .row_count = header->row_count,
                   .row_bytes = header->row_bytes};
}

bool StringIndex::Add(Payload payload) {
  const auto table =
      TableView::Of(payload.bytes(), sizeof(wire::StringsHead), sizeof(wire::StringRow));
  if (!table) return false;
  const uint32_t first = table->head.Read<wire::StringsHead>(0)->first_id;
  if (first == 0 || table->row_count > std::numeric_limits<uint32_t>::max() - first) return false;
  if (table->row_count == 0) return table->data.empty();

  const auto after = chunks_.lower_bound(first);
  if (after != chunks_.end() && after->first - first < table->row_count) return false;
  if (after != chunks_.begin()) {
    const auto before = std::prev(after);
    if (first - before->first < before->second.ends.size()) return false;
  }
  std::vector<uint32_t> ends;
  ends.reserve(table->row_count);
  uint64_t end = 0;
  for (size_t i = 0; i < table->row_count; ++i) {
    end += table->rows.Read<wire::StringRow>(i * table->row_bytes)->length;
    if (end > table->data.size()) return false;
    ends.push_back(static_cast<uint32_t>(end));
  }
  if (end != table->data.size()) return false;
  chunks_.emplace_hint(
      after, first,
      Chunk{.payload = std::move(payload), .ends = std::move(ends), .data = table->data});
  return true;
}

std::string StringIndex::Text(uint32_t id) {
  if (id == 0) return {};
  auto after = chunks_.upper_bound(id);
  if (after != chunks_.begin()) {
    const auto& [first, chunk] = *std::prev(after);
    const size_t row = id - first;
    if (row < chunk.ends.size()) {
      const size_t begin = row == 0 ? 0 : chunk.ends[row - 1];
      const size_t length = chunk.ends[row] - begin;
      if (length <= budget_) {
        budget_ -= length;
        return std::string(reinterpret_cast<const char*>(chunk.data.data()) + begin, length);
      }
    }
  }
  ++lost_;
  return fmt::format("lost#{}", id);
}

void RowDecoder::TextList(std::vector<std::string>& texts) {
  const std::string joined = strings_.Text(TakeU32());
  texts.clear();
  // Each text is followed by one NUL; a list that lacks the last one is taken as it is.
  for (size_t at = 0; at < joined.size();) {
    const size_t end = std::min(joined.find('\0', at), joined.size());
    texts.emplace_back(joined, at, end - at);
    at = end + 1;
  }
}

std::optional<Device> DecodeDevice(UntrustedBytes payload, StringIndex& strings) {
  using Head = wire::RowOf<Device>;
  using Row = wire::RowOf<SmPlace>;
  const auto table = TableView::Of(payload, sizeof(wire::TableHeader) + Head::kBytes, Row::kBytes);
  if (!table) return std::nullopt;
  Device device;
  RowDecoder head(
      wire::FieldCursor<const std::byte>(table->head.data() + sizeof(wire::TableHeader)), strings);
  Head::Describe(head, device);
  device.topology.resize(table->row_count);
  for (size_t i = 0; i < table->row_count; ++i) {
    RowDecoder row(wire::FieldCursor<const std::byte>(table->rows.data() + i * table->row_bytes),
                   strings);
    Row::Describe(row, device.topology[i]);
  }
  return device;
}

std::optional<RingBlock> DecodeRings(UntrustedBytes payload) {
  const auto table = TableView::Of(payload, sizeof(wire::RingHead), sizeof(wire::RingEntry));
  if (!table) return std::nullopt;
  const auto head = *table->head.Read<wire::RingHead>(0);
  RingBlock block;
  block.moment = {.context = head.context,
                  .live = (head.flags & wire::kRingLive) != 0,
                  .settled = (head.flags & wire::kRingSettled) != 0,
                  .number = head.moment,
                  .begin_ns = head.begin_ns};
  block.last_of_moment = (head.flags & wire::kRingLastOfMoment) != 0;
  block.rows.reserve(table->row_count);
  uint64_t data_at = 0;
  for (size_t i = 0; i < table->row_count; ++i) {
    const auto entry = *table->rows.Read<wire::RingEntry>(i * table->row_bytes);
    const uint64_t bytes = uint64_t{entry.records} * ring::kRecordBytes;
    const auto records = table->data.Slice(data_at, bytes);
    if (!records || entry.written % ring::kRecordBytes != 0 ||
        entry.first % ring::kRecordBytes != 0 || entry.first > entry.written ||
        bytes > entry.written - entry.first) {
      return std::nullopt;
    }
    data_at += bytes;
    // The payload is aligned, and so are all sizes before this place; records are plain words.
    block.rows.push_back(
        {.ring = entry.ring,
         .written = entry.written,
         .first = entry.first,
         .header = entry.header,
         .records = {reinterpret_cast<const ring::Record*>(records->data()), entry.records}});
  }
  if (data_at != table->data.size()) return std::nullopt;
  return block;
}

std::optional<wire::DoneHead> DecodeDone(UntrustedBytes payload) {
  const auto table = TableView::Of(payload, sizeof(wire::DoneHead), sizeof(wire::DoneRow));
  if (!table) return std::nullopt;
  return table->head.Read<wire::DoneHead>(0);
}

}  // namespace iket::capture
