#include "capture/scan.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/checksum.h"
#include "base/evictable.h"

namespace iket::capture {
namespace {

constexpr bool IsKind(uint32_t kind) {
  for (int i = 0; i < 4; ++i, kind >>= 8) {
    const uint32_t letter = kind & 0xff;
    if (letter < 'A' || letter > 'Z') return false;
  }
  return true;
}

class Scanner {
 public:
  Scanner(UntrustedBytes file, const Progress& progress) : file_(file), progress_(progress) {}

  Scan Run(uint64_t first_chunk, bool file_header_damaged) {
    scan_.damage.file_header_damaged = file_header_damaged;
    uint64_t at = first_chunk;
    if (file_header_damaged) at = SearchFrom(at);
    // A file is mapped, and may be larger than memory.
    constexpr uint64_t kEvictBytes = uint64_t{256} << 20;
    for (uint64_t evict_at = kEvictBytes; at < file_.size();) {
      at = Step(at);
      if (progress_) progress_(at, file_.size());
      if (at < evict_at) continue;
      EvictAll();
      evict_at = at + kEvictBytes;
    }
    std::ranges::sort(scan_.chunks, {},
                      [](const ChunkRef& chunk) { return chunk.header.sequence; });
    // All bytes but the file header's and those of whole chunks. A damaged file header is skipped
    // too.
    const uint64_t header_bytes = file_header_damaged ? 0 : first_chunk;
    scan_.damage.bytes_skipped = file_.size() - header_bytes - whole_bytes_;
    scan_.damage.chunks_whole = scan_.chunks.size();
    scan_.damage.chunks_damaged = whole_by_number_.size() - scan_.chunks.size();
    if (!whole_by_number_.empty()) {
      const uint64_t numbers = uint64_t{last_number_} + 1;
      scan_.damage.chunks_missing = numbers - whole_by_number_.size();
    }
    return std::move(scan_);
  }

 private:
  // The header at `at` if it is right.
  std::optional<wire::ChunkHeader> RightHeader(uint64_t at) const {
    const auto header = file_.Read<wire::ChunkHeader>(at);
    if (!header || !IsKind(header->kind)) return std::nullopt;
    if (Crc32c(&*header, offsetof(wire::ChunkHeader, header_crc)) != header->header_crc) {
      return std::nullopt;
    }
    return header;
  }

  // Takes what stands at `at`; where to go on.
  uint64_t Step(uint64_t at) {
    const std::optional<wire::ChunkHeader> header = RightHeader(at);
    if (!header) return SearchFrom(at + 1);
    last_number_ = std::max(last_number_, header->sequence);
    bool& found_whole = whole_by_number_[header->sequence];
    const uint64_t payload_at = at + sizeof(wire::ChunkHeader);
    const std::optional<UntrustedBytes> stored = file_.Slice(payload_at, header->stored_bytes);
    if (!stored) return SearchFrom(payload_at);
    const uint64_t end = std::min<uint64_t>(
        file_.size(), payload_at + header->stored_bytes + wire::PaddingAfter(header->stored_bytes));
    if (Crc32c(stored->data(), stored->size()) == header->payload_crc) {
      if (found_whole) return end;  // a copy: its bytes are skipped
      found_whole = true;
      scan_.chunks.push_back({*header, *stored});
      // Where padding is missing the next chunk begins in what should be it.
      const uint64_t payload_end = payload_at + header->stored_bytes;
      const uint64_t next = end == file_.size() || RightHeader(end) ? end : SearchFrom(payload_end);
      whole_bytes_ += std::min(end, next) - at;
      return next;
    }
    // The usual case: the neighbour stands where it should. Its number matters, since bytes that
    // are missing may make this chunk reach over it to a later one.
    const std::optional<wire::ChunkHeader> next = RightHeader(end);
    if (next && next->sequence == header->sequence + 1) return end;
    wasted_bytes_ += stored->size();
    return SearchFrom(payload_at);
  }

  // The next place at or after `at` where a right header with a payload inside the file stands.
  uint64_t SearchFrom(uint64_t at) const {
    if (wasted_bytes_ / kWastedPasses > file_.size()) return file_.size();
    for (; at < file_.size(); ++at) {
      const std::optional<wire::ChunkHeader> header = RightHeader(at);
      if (header && file_.Contains(at + sizeof(*header), header->stored_bytes)) return at;
    }
    return file_.size();
  }

  UntrustedBytes file_;
  const Progress& progress_;
  Scan scan_;
  uint64_t whole_bytes_ = 0;
  uint64_t wasted_bytes_ = 0;
  // The sequence numbers of all right headers, and which of them a whole chunk has.
  std::unordered_map<uint32_t, bool> whole_by_number_;
  uint32_t last_number_ = 0;
};

}  // namespace

Result<Scan> ScanChunks(UntrustedBytes file, const std::string& name, const Progress& progress) {
  const auto magic = file.Read<std::array<char, 8>>(0);
  if (!magic || *magic != wire::kMagic) {
    return Fail(ErrorKind::kBadInput, "{}: not an iket capture ({})", name,
                file.empty() ? "the file is empty" : "it does not begin with the word iketcap");
  }
  const auto header = file.Read<wire::FileHeader>(0);
  if (!header || Crc32c(&*header, offsetof(wire::FileHeader, crc)) != header->crc ||
      header->header_bytes < sizeof(*header) || header->header_bytes > file.size() ||
      header->header_bytes % wire::kChunkAlignment != 0) {
    return Scanner(file, progress).Run(sizeof(wire::kMagic), /*file_header_damaged=*/true);
  }
  if (header->version != wire::kFormatVersion || header->required_flags != 0) {
    return Fail(ErrorKind::kBadInput,
                "{}: a capture of format version {} with flags {:#x}; this iket reads version {} "
                "without flags: use the iket that wrote it, or a newer one",
                name, header->version, header->required_flags, wire::kFormatVersion);
  }
  return Scanner(file, progress).Run(header->header_bytes, /*file_header_damaged=*/false);
}

}  // namespace iket::capture
