#include "cubin/image_kind.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "cubin/elf.h"
#include "cubin/fatbin.h"
#include "cubin/image.h"

namespace iket::cubin {
namespace {

// No code image is larger; a header that says so is damaged.
constexpr uint64_t kMaxImage = uint64_t{1} << 32;
// More objects are in no program; a list that is longer has no end.
constexpr size_t kMaxPrelinked = size_t{1} << 16;

// The fatbin at an address, by its header; nothing if there is none.
std::optional<UntrustedBytes> FatbinAt(const void* address) {
  const UntrustedBytes header(address, kFatbinHeaderSize);
  const auto size = FatbinSize(header);
  if (!size || *size > kMaxImage) return std::nullopt;
  return UntrustedBytes(address, *size);
}

// Whether a text is PTX, which begins with the directive .version, behind nothing but white space
// and comments. Any C++ may begin with comments, so they do not decide. A text behind a bare
// pointer has no size: nothing is read beyond its NUL.
class PtxOpening {
 public:
  PtxOpening(const char* text, uint64_t limit) : text_(text), limit_(limit) {}

  bool IsPtx() {
    while (SkipSpace() || SkipComment()) {
    }
    return Take(".version") && IsSpace(Peek());
  }

 private:
  // NUL at the end.
  char Peek() const { return at_ < limit_ ? text_[at_] : '\0'; }
  static bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  bool Take(std::string_view word) {
    const uint64_t before = at_;
    for (const char c : word) {
      if (Peek() != c) {
        at_ = before;
        return false;
      }
      ++at_;
    }
    return true;
  }
  bool SkipSpace() {
    const uint64_t before = at_;
    while (IsSpace(Peek())) ++at_;
    return at_ != before;
  }
  bool SkipComment() {
    if (Take("//")) {
      while (Peek() != '\0' && Peek() != '\n') ++at_;
      return true;
    }
    if (!Take("/*")) return false;
    while (!Take("*/")) {
      if (Peek() == '\0') return false;
      ++at_;
    }
    return true;
  }

  const char* text_;
  uint64_t limit_;
  uint64_t at_ = 0;
};

// Those of a null-terminated list that are fatbins.
std::vector<UntrustedBytes> PrelinkedFatbins(const void* list) {
  std::vector<UntrustedBytes> all;
  const void* const* at = static_cast<const void* const*>(list);
  for (size_t i = 0; at != nullptr && at[i] != nullptr && i < kMaxPrelinked; ++i) {
    if (const auto fatbin = FatbinAt(at[i])) all.push_back(*fatbin);
  }
  return all;
}

// Where the last part of an ELF file ends, as its headers say.
Result<uint64_t> ElfSize(const std::byte* image) {
  ElfHeader header;
  std::memcpy(&header, image, sizeof header);
  uint64_t end = sizeof header;
  // What has no bytes lies nowhere, whatever its offset says: where it points, memory may end.
  const auto cover = [&end](uint64_t offset, uint64_t size) {
    if (size == 0) return true;
    if (offset > kMaxImage || size > kMaxImage - offset) return false;
    end = std::max(end, offset + size);
    return true;
  };
  const auto bad = [](const char* what) {
    return Fail(ErrorKind::kBadInput, "cubin: {} would lie beyond 4 GiB", what);
  };
  if (!cover(header.segments_offset, uint64_t{header.segment_count} * sizeof(ElfSegment))) {
    return bad("the program headers");
  }
  if (header.sections_offset == 0 || header.section_entry_size != sizeof(ElfSection)) {
    return Fail(ErrorKind::kBadInput, "cubin: no section headers");
  }
  if (!cover(header.sections_offset, sizeof(ElfSection))) return bad("the section headers");
  const auto section = [&](uint64_t index) {
    ElfSection raw;
    std::memcpy(&raw, image + header.sections_offset + index * sizeof raw, sizeof raw);
    return raw;
  };
  const uint64_t count = header.section_count != 0 ? header.section_count : section(0).size;
  if (count > kMaxImage / sizeof(ElfSection) ||
      !cover(header.sections_offset, count * sizeof(ElfSection))) {
    return bad("the section headers");
  }
  for (uint64_t i = 0; i < count; ++i) {
    const ElfSection raw = section(i);
    if (HasFileBytes(raw.type) && !cover(raw.offset, raw.size)) return bad("a section");
  }
  return end;
}

}  // namespace

ImageKind KindOf(UntrustedBytes bytes) {
  const auto magic = bytes.Read<uint32_t>(0);
  if (magic == kFatbinMagic) return ImageKind::kFatbin;
  if (magic == kWrapperMagic) return ImageKind::kWrapper;
  if (magic == kElfMagic) {
    const auto header = bytes.Read<ElfHeader>(0);
    return header && header->machine == kMachineCuda && header->ident[kIdentClass] == kClass64
               ? ImageKind::kElf
               : ImageKind::kUnknown;
  }
  PtxOpening opening(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return opening.IsPtx() ? ImageKind::kPtx : ImageKind::kUnknown;
}

const char* KindName(ImageKind kind) {
  switch (kind) {
    case ImageKind::kElf:
      return "cubin";
    case ImageKind::kFatbin:
      return "fatbin";
    case ImageKind::kWrapper:
      return "fatbin wrapper";
    case ImageKind::kPtx:
      return "PTX";
    case ImageKind::kUnknown:
      break;
  }
  return "unknown";
}

Result<UntrustedImage> UntrustedImageAt(const void* image) {
  if (image == nullptr) return Fail(ErrorKind::kBadInput, "image: null pointer");
  const auto* bytes = static_cast<const std::byte*>(image);
  UntrustedImage found;
  // Four bytes decide how many more may be read.
  uint32_t magic;
  std::memcpy(&magic, bytes, sizeof magic);
  if (magic == kWrapperMagic) {
    FatbinWrapper wrapper;
    std::memcpy(&wrapper, bytes, sizeof wrapper);
    found.wrapper_version = wrapper.version;
    if (wrapper.fatbin == nullptr) {
      return Fail(ErrorKind::kBadInput, "image: a fatbin wrapper without a fatbin");
    }
    bytes = static_cast<const std::byte*>(wrapper.fatbin);
    std::memcpy(&magic, bytes, sizeof magic);
    if (magic != kFatbinMagic) {
      return Fail(ErrorKind::kBadInput, "image: a fatbin wrapper points at {:#x}, not at a fatbin",
                  magic);
    }
    if (wrapper.version == 2) found.prelinked = PrelinkedFatbins(wrapper.extra);
  }
  if (magic == kFatbinMagic) {
    const auto fatbin = FatbinAt(bytes);
    if (!fatbin) return Fail(ErrorKind::kBadInput, "image: a fatbin with a damaged header");
    found.kind = ImageKind::kFatbin;
    found.bytes = *fatbin;
    return found;
  }
  if (magic == kElfMagic) {
    found.kind = KindOf(UntrustedBytes(bytes, sizeof(ElfHeader)));
    if (found.kind != ImageKind::kElf) {
      return Fail(ErrorKind::kBadInput, "image: an ELF file, but no 64-bit cubin");
    }
    const auto size = ElfSize(bytes);
    if (!size) return tl::unexpected(size.error());
    found.bytes = UntrustedBytes(bytes, *size);
    return found;
  }
  const auto* text = reinterpret_cast<const char*>(bytes);
  if (!PtxOpening(text, kMaxImage).IsPtx()) {
    return Fail(ErrorKind::kBadInput, "image: neither cubin nor fatbin nor PTX (begins with {:#x})",
                magic);
  }
  found.kind = ImageKind::kPtx;
  found.bytes = UntrustedBytes(text, strnlen(text, kMaxImage));
  return found;
}

}  // namespace iket::cubin
