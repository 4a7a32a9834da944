#include "cli/tally.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ring/record.h"

namespace iket::cli {
namespace {

// Columns of events, ranges and marks, and the records that they are made from.
constexpr uint64_t kBytesARecord = 80;

struct Ring {
  uint64_t written = 0;     // bytes
  bool is_running = false;  // behind the cursor somebody ran, how many laps ago nobody knows
  uint64_t counted = 0;     // position behind the last record that was counted
};

}  // namespace

Tally TallyOf(const capture::Reader& reader, const Progress& progress) {
  Tally tally;
  std::map<std::pair<uint32_t, uint32_t>, Ring> rings;  // by context and ring
  // Recorded to pair others, and not shown.
  std::set<uint32_t> hidden;
  for (const capture::Declaration& declaration : reader.capture().declarations) {
    if (declaration.left_out) hidden.insert(declaration.event);
  }
  const auto is_shown = [&](const ring::Record& record) {
    return ring::KindOf(record) == ring::RecordKind::kEvent &&
           (hidden.empty() || !hidden.contains(record.tag));
  };
  uint64_t blocks = 0;
  reader.ForEachRingBlock([&](const capture::RingBlock& block) {
    for (const capture::RingRow& row : block.rows) {
      Ring& ring = rings[{block.moment.context, row.ring}];
      ring.written = std::max(ring.written, row.written);
      ring.is_running = static_cast<uint32_t>(row.written) != row.header.cursor;
      const uint64_t skipped = ring.counted > row.first ? ring.counted - row.first : 0;
      const size_t known = std::min<uint64_t>(skipped / ring::kRecordBytes, row.records.size());
      for (const ring::Record& record : row.records.subspan(known)) {
        tally.events += is_shown(record) ? 1 : 0;
        tally.warps += ring::KindOf(record) == ring::RecordKind::kBegin ? 1 : 0;
      }
      tally.kept += row.records.size() - known;
      ring.counted = std::max(ring.counted, row.first + row.records.size() * ring::kRecordBytes);
    }
    if (progress) progress(++blocks, reader.ring_block_count());
    return true;
  });
  for (const auto& [key, ring] : rings) {
    tally.written += ring.written / ring::kRecordBytes;
    tally.is_lower_bound |= ring.is_running;
  }
  tally.written = std::max(tally.written, tally.kept);
  return tally;
}

uint64_t DecodingBytes(const capture::Reader& reader) {
  return reader.ring_raw_bytes() / ring::kRecordBytes * kBytesARecord;
}

Result<uint64_t> MemoryForDecoding() {
  if (const char* const said = std::getenv("IKET_DECODE_BYTES"); said != nullptr && *said != 0) {
    uint64_t bytes = 0;
    const char* const end = said + std::strlen(said);
    if (const auto [at, error] = std::from_chars(said, end, bytes);
        error == std::errc() && at == end) {
      return bytes;
    }
    return Fail(ErrorKind::kUsage, "IKET_DECODE_BYTES={}: not a number of bytes", said);
  }
  std::ifstream file("/proc/meminfo");
  for (std::string name, rest; file >> name; std::getline(file, rest)) {
    uint64_t kib = 0;
    if (name == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  return UINT64_MAX;
}

}  // namespace iket::cli
