#include "cli/code_images.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cubin/elf.h"
#include "cubin/fatbin.h"
#include "cubin/image_kind.h"

namespace iket::cli {
namespace {

constexpr std::string_view kElfMagic =
    "\x7f"
    "ELF";
constexpr std::string_view kArchiveMagic = "!<arch>\n";

bool StartsWith(UntrustedBytes bytes, std::string_view magic) {
  return bytes.Contains(0, magic.size()) &&
         std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

std::string KindName(cubin::EntryKind kind) {
  switch (kind) {
    case cubin::EntryKind::kElf:
      return "cubin";
    case cubin::EntryKind::kPtx:
      return "PTX";
    case cubin::EntryKind::kLtoIr:
      return "LTO-IR";
  }
  return fmt::format("entry of kind {}", static_cast<unsigned>(kind));
}

// What lies in a file, by position.
struct Found {
  uint64_t offset = 0;
  UntrustedBytes bytes;
  enum class Kind { kCubin, kPtx, kFatbin } kind = Kind::kCubin;
};

// Where a bare cubin ends: its header tables stand behind its sections.
uint64_t CubinSize(UntrustedBytes from) {
  const auto header = from.Read<cubin::ElfHeader>(0);
  if (!header) return 0;
  const uint64_t sections = uint64_t{header->section_count} * sizeof(cubin::ElfSection);
  const uint64_t segments = uint64_t{header->segment_count} * sizeof(cubin::ElfSegment);
  if (!from.Contains(header->sections_offset, sections)) return 0;
  if (segments != 0 && !from.Contains(header->segments_offset, segments)) return 0;
  return std::max(header->sections_offset + sections,
                  segments == 0 ? 0 : header->segments_offset + segments);
}

// Programs that use the driver API carry cubins as data, without a fatbin around them.
void FindBareCubins(UntrustedBytes file, std::vector<Found>& found) {
  const auto* const begin = reinterpret_cast<const char*>(file.data());
  const char* const end = begin + file.size();
  const std::vector<Found> fatbins = found;
  for (const char* at = begin; at != end; ++at) {
    at = static_cast<const char*>(
        memmem(at, static_cast<size_t>(end - at), kElfMagic.data(), kElfMagic.size()));
    if (at == nullptr) return;
    const auto offset = static_cast<uint64_t>(at - begin);
    const auto rest = file.Slice(offset, file.size() - offset);
    if (cubin::KindOf(*rest) != cubin::ImageKind::kElf) continue;
    if (std::any_of(fatbins.begin(), fatbins.end(), [&](const Found& fatbin) {
          return offset >= fatbin.offset && offset < fatbin.offset + fatbin.bytes.size();
        })) {
      continue;
    }
    const auto bytes = rest->Slice(0, CubinSize(*rest));
    if (!bytes || bytes->empty()) continue;
    found.push_back({offset, *bytes, Found::Kind::kCubin});
    at += bytes->size() - 1;
  }
}

std::vector<Found> FindCode(UntrustedBytes file) {
  switch (cubin::KindOf(file)) {
    case cubin::ImageKind::kElf:
      return {{0, file, Found::Kind::kCubin}};
    case cubin::ImageKind::kFatbin:
      return {{0, file, Found::Kind::kFatbin}};
    case cubin::ImageKind::kPtx:
      return {{0, file, Found::Kind::kPtx}};
    default:
      break;
  }
  std::vector<Found> found;
  for (const UntrustedBytes& fatbin : cubin::FindFatbins(file)) {
    found.push_back(
        {static_cast<uint64_t>(fatbin.data() - file.data()), fatbin, Found::Kind::kFatbin});
  }
  FindBareCubins(file, found);
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.offset < b.offset; });
  return found;
}

uint64_t VisitFatbin(const Found& found, size_t number, bool alone,
                     const std::function<void(const CodeImage&)>& visit) {
  const auto fatbin = cubin::ReadFatbin(found.bytes);
  const std::string name = alone ? "" : fmt::format("fatbin {}, ", number);
  if (!fatbin) {
    CodeImage image;
    image.where = fmt::format("{}at {:#x}", name, found.offset);
    image.kind = "fatbin";
    image.problem = fatbin.error().message;
    visit(image);
    return 1;
  }
  for (size_t i = 0; i < fatbin->entries.size(); ++i) {
    const cubin::FatbinEntry& entry = fatbin->entries[i];
    CodeImage image;
    image.where = fmt::format("{}entry {}", name, i + 1);
    image.arch = entry.ArchName();
    image.kind = KindName(entry.kind);
    if (image.is_cubin() || image.is_ptx()) {
      auto code = cubin::Decompress(entry);
      if (code) {
        image.code = std::move(*code);
      } else {
        image.problem = code.error().message;
      }
    }
    visit(image);
  }
  return fatbin->entries.size();
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const auto fail = [&] {
    return Fail(ErrorKind::kSystem, "{}: cannot read: {}", path, std::strerror(errno));
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail();
  struct stat status = {};
  if (fstat(fd, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    close(fd);
    return Fail(ErrorKind::kBadInput, "{}: not a regular file", path);
  }
  if (fstat(fd, &status) != 0 || S_ISDIR(status.st_mode)) {
    if (errno == 0 || S_ISDIR(status.st_mode)) errno = EISDIR;
    auto error = fail();
    close(fd);
    return error;
  }
  const auto size = static_cast<size_t>(status.st_size);
  void* data = nullptr;
  if (size != 0) data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (data == MAP_FAILED) return fail();
  return MappedFile(data, size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (size_ != 0) munmap(data_, size_);
}

std::string FileKind(UntrustedBytes file) {
  switch (cubin::KindOf(file)) {
    case cubin::ImageKind::kElf:
      return "cubin";
    case cubin::ImageKind::kFatbin:
      return "fatbin";
    case cubin::ImageKind::kPtx:
      return "PTX";
    default:
      break;
  }
  if (StartsWith(file, kElfMagic)) return "ELF file";
  if (StartsWith(file, kArchiveMagic)) return "archive";
  return {};
}

uint64_t ForEachCodeImage(UntrustedBytes file, const std::function<void(const CodeImage&)>& visit,
                          const std::function<void(uint64_t, uint64_t)>& progress) {
  const std::vector<Found> found = FindCode(file);
  const bool alone = found.size() == 1 && found[0].offset == 0;
  uint64_t count = 0;
  size_t fatbins = 0;
  for (const Found& part : found) {
    if (part.kind == Found::Kind::kFatbin) {
      count += VisitFatbin(part, ++fatbins, alone, visit);
    } else {
      CodeImage image;
      if (!alone) image.where = fmt::format("cubin at {:#x}", part.offset);
      image.kind = part.kind == Found::Kind::kPtx ? "PTX" : "cubin";
      const auto bytes = part.bytes.span();
      image.code.assign(bytes.begin(), bytes.end());
      visit(image);
      ++count;
    }
    progress(part.offset + part.bytes.size(), file.size());
  }
  return count;
}

}  // namespace iket::cli
