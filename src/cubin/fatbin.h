// fatbin.h: the container in which nvcc packs cubins and PTX for several architectures.
//
// A fatbin is a 16-byte header and entries back to back; an entry is a header (64 bytes and an
// extension), and a payload that may be compressed (zstd, LZ4). In a program's memory a wrapper
// {magic, version, pointer} points at it.
//
// Guarantees: ReadFatbin checks every size against the bytes given; Decompress allocates at most
// kMaxUncompressed bytes, and above kAnyRatio at most kMaxRatio times the compressed ones, whatever
// the entry states;
// RebuildFatbin without replacements returns the same bytes, and with some leaves every other entry
// verbatim.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace iket::cubin {

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr uint64_t kFatbinHeaderSize = 16;

// Limits on what a compressed entry may expand to. The largest cubins of NVIDIA's libraries are a
// few hundred MB and compress to a third or a tenth; a table of zeros compresses to nearly nothing.
constexpr uint64_t kMaxUncompressed = uint64_t{1} << 30;
constexpr uint64_t kAnyRatio = uint64_t{64} << 20;
constexpr uint64_t kMaxRatio = 4096;

enum class EntryKind : uint16_t { kPtx = 1, kElf = 2, kLtoIr = 8 };
enum class Compression { kNone, kLz4, kZstd };

// Bits of an entry's flags.
constexpr uint64_t kEntryLz4 = 0x2000;
constexpr uint64_t kEntryZstd = 0x8000;
constexpr uint64_t kEntryArchSpecific = 0x100000;  // "a"
constexpr uint64_t kEntryFamily = 0x200000;        // "f"

// An entry as it lies in the file. Behind it comes the extension, up to header_size.
struct FatbinEntryHeader {
  uint16_t kind;
  uint16_t version;
  uint32_t header_size;
  uint64_t payload_size;  // a multiple of 8
  uint32_t compressed_size;
  uint32_t options_offset;  // of the options in the extension; 0: none
  uint16_t code_minor;
  uint16_t code_major;
  uint32_t sm;
  uint32_t name_offset;  // of the source's name in the extension
  uint32_t name_size;
  uint64_t flags;
  uint64_t hash;  // LTO-IR only
  uint64_t uncompressed_size;
};
static_assert(sizeof(FatbinEntryHeader) == 64);

struct FatbinEntry {
  EntryKind kind = EntryKind::kElf;  // may hold other values than those listed
  uint32_t sm = 0;                   // 90 for sm_90a
  uint64_t flags = 0;
  uint16_t code_major = 0;  // ELF: 1.8 with CUDA 13; PTX: the PTX version, 9.0
  uint16_t code_minor = 0;
  uint64_t uncompressed_size = 0;  // as stated; 0 if not compressed
  uint64_t offset = 0;             // of the entry in the fatbin
  UntrustedBytes header;           // with its extension
  UntrustedBytes payload;          // as stored, with padding behind it
  UntrustedBytes code;             // as stored, without the padding where the entry says its size

  Compression compression() const;
  // "sm_90a", "compute_90" for PTX and LTO-IR.
  std::string ArchName() const;
};

struct Fatbin {
  UntrustedBytes bytes;  // exactly header and entries; may be shorter than what was given
  std::vector<FatbinEntry> entries;
};

// The bytes that a fatbin's first 16 bytes say it has, headers included; nothing if they are not
// those of a fatbin.
std::optional<uint64_t> FatbinSize(UntrustedBytes bytes);

// All fatbins in a program, shared library or object file, found by their magic at multiples of 8
// and by a size that fits. One pass over the bytes.
std::vector<UntrustedBytes> FindFatbins(UntrustedBytes file);

// The views point into `bytes`, which must outlive them.
Result<Fatbin> ReadFatbin(UntrustedBytes bytes);

// The code of an entry, uncompressed. For an entry that is not compressed, a copy of it.
Result<std::vector<std::byte>> Decompress(const FatbinEntry& entry);

struct Replacement {
  size_t entry = 0;  // index in Fatbin::entries
  std::span<const std::byte> code;
};
// The fatbin with the code of some entries replaced (stored uncompressed).
Result<std::vector<std::byte>> RebuildFatbin(const Fatbin& fatbin,
                                             std::span<const Replacement> replacements);

}  // namespace iket::cubin
