#include "session/ring_image.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"

namespace iket::session {
namespace {

using ring::IsYounger;
using ring::KindOf;
using ring::Record;
using ring::RecordKind;
using ring::RingHeader;

// A warp has started since the last one ended: its begin stands at the cursor, or (when it has
// lapped the ring) something in it is younger than that end.
bool SeemsRunning(const RingHeader& header, std::span<const Record> records) {
  const Record& next = records[header.cursor / ring::kRecordBytes % records.size()];
  if (KindOf(next) == RecordKind::kBegin && next.high == header.end_clock) return true;
  return std::any_of(records.begin(), records.end(), [&](const Record& record) {
    return KindOf(record) == RecordKind::kEvent && IsYounger(record.clock, header.end_clock);
  });
}

}  // namespace

bool IsUsed(const RingHeader& header) {
  return header.cursor != 0 || header.end_timer() != 0 || header.identity.tag != 0;
}

capture::RingContents ContentsOf(uint32_t ring, const RingHeader& header,
                                 std::span<const Record> untrusted_records) {
  const std::span<const Record> records = untrusted_records;
  const uint64_t ring_bytes = records.size() * uint64_t{ring::kRecordBytes};
  const uint64_t cursor = header.cursor / ring::kRecordBytes * uint64_t{ring::kRecordBytes};
  capture::RingContents contents{.ring = ring, .written = cursor, .header = header};
  const size_t at = cursor / ring::kRecordBytes % records.size();
  if (SeemsRunning(header, records)) contents.written = cursor + ring_bytes;
  if (contents.written < ring_bytes) {
    contents.newer = records.first(at);
  } else {
    contents.older = records.subspan(at);
    contents.newer = records.first(at);
  }
  return contents;
}

std::vector<UsedRing> FindUsedRings(std::span<const std::byte> untrusted_table, uint32_t first,
                                    uint32_t count) {
  const UntrustedBytes headers(untrusted_table);
  std::vector<UsedRing> used;
  for (uint32_t index = first; index < first + count; ++index) {
    const auto header = headers.Read<RingHeader>(uint64_t{index} * ring::kHeaderStride);
    if (header && IsUsed(*header)) used.push_back({.ring = index, .header = *header});
  }
  return used;
}

Result<void> CopyUsedRings(const ring::Layout& layout, const WindowCopy& copy,
                           const VisitSm& visit) {
  std::vector<std::byte> table(layout.table_bytes());
  if (auto done = copy.table(table.data(), table.size()); !done) return done;
  const size_t records_per_ring = layout.ring_bytes / ring::kRecordBytes;
  const uint64_t bytes_per_sm = uint64_t{ring::kSlotsPerSm} * layout.ring_bytes;
  std::vector<Record> records;
  for (uint32_t sm = 0; sm < layout.sm_count; ++sm) {
    std::vector<UsedRing> used = FindUsedRings(table, sm * ring::kSlotsPerSm, ring::kSlotsPerSm);
    if (used.empty()) continue;
    records.resize(records_per_ring * ring::kSlotsPerSm);
    if (auto done = copy.rings(records.data(), sm * bytes_per_sm, bytes_per_sm); !done) {
      return done;
    }
    for (UsedRing& ring : used) {
      ring.untrusted_records = std::span(records).subspan(
          ring.ring % ring::kSlotsPerSm * records_per_ring, records_per_ring);
    }
    visit(used, records);
  }
  return {};
}

Result<void> ReadRings(const ring::Layout& layout, const WindowCopy& copy,
                       const std::function<void(SmRings)>& visit) {
  return CopyUsedRings(
      layout, copy, [&](std::span<const UsedRing> rings, std::vector<Record>& records) {
        SmRings read;
        for (const UsedRing& ring : rings) {
          read.rings.push_back(ContentsOf(ring.ring, ring.header, ring.untrusted_records));
        }
        read.records = std::move(records);  // which moves nothing that `rings` points at
        visit(std::move(read));
      });
}

}  // namespace iket::session
