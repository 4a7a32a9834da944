#include "cubin/fatbin.h"

#include <algorithm>
#include <cstring>

#include "cubin/decompress.h"

namespace iket::cubin {
namespace {

struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_size;
  uint64_t entries_size;
};
static_assert(sizeof(FatbinHeader) == kFatbinHeaderSize);

std::optional<FatbinHeader> ReadHeader(UntrustedBytes bytes) {
  const auto header = bytes.Read<FatbinHeader>(0);
  if (!header || header->magic != kFatbinMagic || header->version != 1 ||
      header->header_size < sizeof(FatbinHeader)) {
    return std::nullopt;
  }
  return header;
}

Result<FatbinEntry> ReadEntry(UntrustedBytes bytes, uint64_t offset) {
  const auto raw = bytes.Read<FatbinEntryHeader>(offset);
  const auto bad = [offset](const char* what, uint64_t value) {
    return Fail(ErrorKind::kBadInput, "fatbin: entry at offset {} has a {} of {}", offset, what,
                value);
  };
  const auto header = bytes.Slice(offset, raw->header_size);
  if (!header || raw->header_size < sizeof(FatbinEntryHeader)) {
    return bad("header size", raw->header_size);
  }
  const auto payload = bytes.Slice(offset + raw->header_size, raw->payload_size);
  if (!payload) return bad("payload size", raw->payload_size);

  FatbinEntry entry;
  entry.kind = static_cast<EntryKind>(raw->kind);
  entry.sm = raw->sm;
  entry.flags = raw->flags;
  entry.code_major = raw->code_major;
  entry.code_minor = raw->code_minor;
  entry.uncompressed_size = raw->uncompressed_size;
  entry.offset = offset;
  entry.header = *header;
  entry.payload = *payload;
  entry.code = *payload;
  if (entry.compression() != Compression::kNone && raw->compressed_size != 0) {
    const auto code = payload->Slice(0, raw->compressed_size);
    if (!code) return bad("compressed size", raw->compressed_size);
    entry.code = *code;
  }
  return entry;
}

}  // namespace

Compression FatbinEntry::compression() const {
  if ((flags & kEntryZstd) != 0) return Compression::kZstd;
  return (flags & kEntryLz4) != 0 ? Compression::kLz4 : Compression::kNone;
}

std::string FatbinEntry::ArchName() const {
  const char* suffix = (flags & kEntryArchSpecific) != 0 ? "a"
                       : (flags & kEntryFamily) != 0     ? "f"
                                                         : "";
  return fmt::format("{}_{}{}", kind == EntryKind::kElf ? "sm" : "compute", sm, suffix);
}

std::optional<uint64_t> FatbinSize(UntrustedBytes bytes) {
  const auto header = ReadHeader(bytes);
  if (!header || header->entries_size > UINT64_MAX - header->header_size) return std::nullopt;
  return header->header_size + header->entries_size;
}

std::vector<UntrustedBytes> FindFatbins(UntrustedBytes file) {
  // Members of an archive stand at even offsets, whatever the alignment inside of them.
  constexpr uint32_t kArchive = 0x72613c21;  // "!<ar"
  const uint64_t align = file.Read<uint32_t>(0) == kArchive ? 2 : 8;
  std::vector<UntrustedBytes> found;
  for (uint64_t at = 0; file.Contains(at, sizeof(FatbinHeader)); at += align) {
    if (file.Read<uint32_t>(at) != kFatbinMagic) continue;
    const auto size = FatbinSize(*file.Slice(at, file.size() - at));
    if (!size || !file.Contains(at, *size)) continue;
    found.push_back(*file.Slice(at, *size));
    at += (*size - 1) / align * align;
  }
  return found;
}

Result<Fatbin> ReadFatbin(UntrustedBytes bytes) {
  const auto header = ReadHeader(bytes);
  const auto size = FatbinSize(bytes);
  if (!header || !size) {
    return Fail(ErrorKind::kBadInput, "fatbin: {} bytes do not begin with a fatbin header",
                bytes.size());
  }
  const auto all = bytes.Slice(0, *size);
  if (!all) {
    return Fail(ErrorKind::kBadInput, "fatbin: cut short, {} of {} bytes are there", bytes.size(),
                *size);
  }
  Fatbin fatbin;
  fatbin.bytes = *all;
  // What is too short for an entry is padding.
  uint64_t at = header->header_size;
  while (all->Contains(at, sizeof(FatbinEntryHeader))) {
    auto entry = ReadEntry(*all, at);
    if (!entry) return tl::unexpected(std::move(entry).error());
    at += entry->header.size() + entry->payload.size();
    fatbin.entries.push_back(*entry);
  }
  return fatbin;
}

Result<std::vector<std::byte>> Decompress(const FatbinEntry& entry) {
  const Compression compression = entry.compression();
  if (compression == Compression::kNone) {
    return std::vector<std::byte>(entry.code.span().begin(), entry.code.span().end());
  }
  if (entry.uncompressed_size > kMaxUncompressed ||
      (entry.uncompressed_size > kAnyRatio &&
       entry.uncompressed_size / kMaxRatio > entry.code.size())) {
    return Fail(
        ErrorKind::kBadInput,
        "fatbin: entry at offset {} wants {} bytes for {} compressed ones, which is more than "
        "any real image",
        entry.offset, entry.uncompressed_size, entry.code.size());
  }
  auto code = compression == Compression::kZstd
                  ? DecompressZstd(entry.code, entry.uncompressed_size)
                  : DecompressLz4(entry.code, entry.uncompressed_size);
  if (!code) return FailIn(fmt::format("fatbin: entry at offset {}", entry.offset), code.error());
  return code;
}

Result<std::vector<std::byte>> RebuildFatbin(const Fatbin& fatbin,
                                             std::span<const Replacement> replacements) {
  constexpr uint64_t kAlign = 8;
  std::vector<const Replacement*> of_entry(fatbin.entries.size());
  uint64_t size = fatbin.bytes.size();
  for (const Replacement& replacement : replacements) {
    if (replacement.entry >= fatbin.entries.size() ||
        fatbin.entries[replacement.entry].kind != EntryKind::kElf) {
      return Fail(ErrorKind::kUsage, "fatbin: entry {} of {} is no cubin that could be replaced",
                  replacement.entry, fatbin.entries.size());
    }
    of_entry[replacement.entry] = &replacement;
    size += replacement.code.size() + kAlign;
  }

  std::vector<std::byte> out;
  out.reserve(size);
  const auto append = [&out](std::span<const std::byte> bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  const auto all = fatbin.bytes.span();
  uint64_t copied = 0;
  for (size_t i = 0; i < fatbin.entries.size(); ++i) {
    if (of_entry[i] == nullptr) continue;
    const FatbinEntry& entry = fatbin.entries[i];
    const auto code = of_entry[i]->code;
    append(all.subspan(copied, entry.offset - copied));
    FatbinEntryHeader header = *entry.header.Read<FatbinEntryHeader>(0);
    header.payload_size = (code.size() + kAlign - 1) / kAlign * kAlign;
    header.compressed_size = 0;
    header.flags &= ~(kEntryLz4 | kEntryZstd);
    header.uncompressed_size = 0;
    append(std::as_bytes(std::span(&header, 1)));
    append(entry.header.span().subspan(sizeof header));
    append(code);
    out.resize(out.size() + header.payload_size - code.size());
    copied = entry.offset + entry.header.size() + entry.payload.size();
  }
  append(all.subspan(copied));
  FatbinHeader header;
  std::memcpy(&header, out.data(), sizeof header);
  header.entries_size = out.size() - header.header_size;
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

}  // namespace iket::cubin
