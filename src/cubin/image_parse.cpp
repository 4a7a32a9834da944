#include <algorithm>
#include <numeric>
#include <utility>

#include "cubin/image.h"

namespace iket::cubin {

// Builds an Image step by step; each step trusts only what the earlier ones have checked.
class ImageParser {
 public:
  Result<Image> Run(UntrustedBytes bytes);

 private:
  Result<void> ReadHeader();
  Result<void> ReadSections();
  Result<void> ReadNames();
  Result<void> ReadSymbols();
  Result<void> ReadSegments();
  Result<void> FindShared();
  Result<void> CheckTablesAreUnshared();

  // The NUL-terminated name at `offset` of a string table. Tables may share tails, but names that
  // add up to many times the table are an attempt to make every reader of them slow.
  struct NameTable {
    UntrustedBytes bytes;
    uint64_t budget = 0;
    explicit NameTable(std::span<const std::byte> data)
        : bytes(data), budget(16 * data.size() + 65536) {}
    std::optional<std::string_view> Name(uint64_t offset);
  };

  Image image_;
  UntrustedBytes file_;
};

std::optional<std::string_view> ImageParser::NameTable::Name(uint64_t offset) {
  const auto name = bytes.CString(offset);
  if (!name || name->size() > budget) return std::nullopt;
  budget -= name->size();
  return name;
}

Result<Image> Image::Parse(UntrustedBytes bytes) { return ImageParser().Run(bytes); }

Result<Image> ImageParser::Run(UntrustedBytes bytes) {
  image_.file_ =
      std::make_shared<const std::vector<std::byte>>(bytes.span().begin(), bytes.span().end());
  file_ = UntrustedBytes(*image_.file_);
  for (const auto step :
       {&ImageParser::ReadHeader, &ImageParser::ReadSections, &ImageParser::ReadNames,
        &ImageParser::ReadSegments, &ImageParser::FindShared, &ImageParser::ReadSymbols,
        &ImageParser::CheckTablesAreUnshared}) {
    if (auto ok = (this->*step)(); !ok) return tl::unexpected(ok.error());
  }
  return std::move(image_);
}

Result<void> ImageParser::ReadHeader() {
  const auto header = file_.Read<ElfHeader>(0);
  if (!header) {
    return Fail(ErrorKind::kBadInput, "cubin: {} bytes are too few for an ELF header",
                file_.size());
  }
  if (file_.Read<uint32_t>(0) != kElfMagic || header->ident[kIdentClass] != kClass64 ||
      header->ident[kIdentData] != kDataLittleEndian) {
    return Fail(ErrorKind::kBadInput, "cubin: not a 64-bit little-endian ELF file");
  }
  if (header->machine != kMachineCuda) {
    return Fail(ErrorKind::kBadInput, "cubin: ELF for machine {}, not for CUDA ({})",
                header->machine, kMachineCuda);
  }
  image_.header_ = *header;
  return {};
}

Result<void> ImageParser::ReadSections() {
  const ElfHeader& header = image_.header_;
  if (header.sections_offset == 0) {
    return Fail(ErrorKind::kBadInput, "cubin: no section headers");
  }
  if (header.section_entry_size != sizeof(ElfSection)) {
    return Fail(ErrorKind::kBadInput, "cubin: section headers of {} bytes, expected {}",
                header.section_entry_size, sizeof(ElfSection));
  }
  const auto first = file_.Read<ElfSection>(header.sections_offset);
  if (!first) {
    return Fail(ErrorKind::kBadInput,
                "cubin: section headers at offset {} lie outside the file's {} bytes",
                header.sections_offset, file_.size());
  }
  const uint64_t count = header.section_count != 0 ? header.section_count : first->size;
  if (count == 0 || count > file_.size() / sizeof(ElfSection) ||
      !file_.Contains(header.sections_offset, count * sizeof(ElfSection))) {
    return Fail(ErrorKind::kBadInput,
                "cubin: {} section headers at offset {} end past the file's {} bytes", count,
                header.sections_offset, file_.size());
  }
  image_.names_section_ =
      header.names_section == kSectionIndexExtended ? first->link : header.names_section;
  image_.sections_.resize(count);
  image_.section_names_.resize(count);
  image_.realigned_.resize(count);
  image_.parsed_sections_ = static_cast<uint32_t>(count);
  for (uint64_t i = 0; i < count; ++i) {
    const auto raw = file_.Read<ElfSection>(header.sections_offset + i * sizeof(ElfSection));
    Section& section = image_.sections_[i];
    section.type = raw->type;
    section.flags = raw->flags;
    section.address = raw->address;
    section.size = raw->size;
    section.link = raw->link;
    section.info = raw->info;
    section.align = raw->align;
    section.entry_size = raw->entry_size;
    section.parsed_offset = raw->offset;
    image_.section_names_[i] = raw->name;
    if (!HasFileBytes(raw->type) || raw->size == 0) continue;
    const auto data = file_.Slice(raw->offset, raw->size);
    if (!data) {
      return Fail(ErrorKind::kBadInput,
                  "cubin: section {} at offset {} with {} bytes ends past the file's {} bytes", i,
                  raw->offset, raw->size, file_.size());
    }
    section.data = data->span();
    section.parsed_size = raw->size;
  }
  return {};
}

Result<void> ImageParser::ReadNames() {
  auto& sections = image_.sections_;
  if (image_.names_section_ >= sections.size()) {
    return Fail(ErrorKind::kBadInput, "cubin: section names in section {} of {}",
                image_.names_section_, sections.size());
  }
  if (image_.names_section_ != 0) {
    if (sections[image_.names_section_].type != kSectionStringTable) {
      return Fail(ErrorKind::kBadInput,
                  "cubin: section names in section {}, which is no string table",
                  image_.names_section_);
    }
    NameTable names(sections[image_.names_section_].data);
    for (size_t i = 0; i < sections.size(); ++i) {
      const auto name = names.Name(image_.section_names_[i]);
      if (!name) {
        return Fail(ErrorKind::kBadInput,
                    "cubin: section {} has no readable name at {} of the {} bytes of names", i,
                    image_.section_names_[i], names.bytes.size());
      }
      sections[i].name = *name;
    }
  }
  auto& order = image_.sections_by_name_;
  order.resize(sections.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const int compared = sections[a].name.compare(sections[b].name);
    return compared != 0 ? compared < 0 : a < b;
  });
  return {};
}

Result<void> ImageParser::ReadSegments() {
  const ElfHeader& header = image_.header_;
  if (header.segment_count == 0) return {};
  if (header.segment_count > kMaxSegments || header.segment_entry_size != sizeof(ElfSegment) ||
      !file_.Contains(header.segments_offset, header.segment_count * sizeof(ElfSegment))) {
    return Fail(ErrorKind::kBadInput,
                "cubin: {} program headers of {} bytes at offset {} do not fit the file's {} bytes",
                header.segment_count, header.segment_entry_size, header.segments_offset,
                file_.size());
  }
  for (uint32_t i = 0; i < header.segment_count; ++i) {
    const auto segment = *file_.Read<ElfSegment>(header.segments_offset + i * sizeof(ElfSegment));
    if (segment.file_size != 0 && !file_.Contains(segment.offset, segment.file_size)) {
      return Fail(ErrorKind::kBadInput,
                  "cubin: program header {} covers {} bytes at offset {}, past the file's {} bytes",
                  i, segment.file_size, segment.offset, file_.size());
    }
    image_.segments_.push_back(segment);
  }
  return {};
}

// Two sections may name the same bytes (sm_100's clones of constants do); any other overlap, also
// with the header tables, would make a section's contents depend on an edit of another.
Result<void> ImageParser::FindShared() {
  constexpr uint32_t kNotASection = 0xffffffff;
  struct Extent {
    uint64_t offset;
    uint64_t size;
    uint32_t section;
    const char* table;
  };
  const ElfHeader& header = image_.header_;
  const auto& sections = image_.sections_;
  std::vector<Extent> extents = {{0, sizeof(ElfHeader), kNotASection, "the ELF header"},
                                 {header.sections_offset, sections.size() * sizeof(ElfSection),
                                  kNotASection, "the section headers"}};
  if (!image_.segments_.empty()) {
    extents.push_back({header.segments_offset, image_.segments_.size() * sizeof(ElfSegment),
                       kNotASection, "the program headers"});
  }
  for (uint32_t i = 0; i < sections.size(); ++i) {
    if (sections[i].data.empty()) continue;
    extents.push_back({sections[i].parsed_offset, sections[i].size, i, nullptr});
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::pair(a.offset, a.section) < std::pair(b.offset, b.section);
  });

  image_.next_sharing_.resize(sections.size());
  std::iota(image_.next_sharing_.begin(), image_.next_sharing_.end(), 0u);
  for (size_t i = 1; i < extents.size(); ++i) {
    const Extent& before = extents[i - 1];
    const Extent& extent = extents[i];
    if (before.offset + before.size <= extent.offset) continue;
    if (extent.section != kNotASection && before.section != kNotASection &&
        before.offset == extent.offset && before.size == extent.size) {
      std::swap(image_.next_sharing_[before.section], image_.next_sharing_[extent.section]);
      continue;
    }
    const auto name = [&](const Extent& e) {
      return e.table != nullptr
                 ? std::string(e.table)
                 : fmt::format("section {} ({:.64})", e.section, sections[e.section].name);
    };
    return Fail(ErrorKind::kBadInput, "cubin: {} at offset {} overlaps {} at offset {}",
                name(extent), extent.offset, name(before), before.offset);
  }
  return {};
}

Result<void> ImageParser::ReadSymbols() {
  auto& sections = image_.sections_;
  const auto find = [&](uint32_t type, auto&& fits) -> uint32_t {
    for (uint32_t i = 1; i < sections.size(); ++i) {
      if (sections[i].type == type && fits(sections[i])) return i;
    }
    return 0;
  };
  const uint32_t index = find(kSectionSymbolTable, [](const Section&) { return true; });
  if (index == 0) return {};
  const Section& table = sections[index];
  if (table.entry_size != sizeof(ElfSymbol) || table.data.size() % sizeof(ElfSymbol) != 0) {
    return Fail(ErrorKind::kBadInput,
                "cubin: symbol table (section {}) has {} bytes with entries of {}, expected {}",
                index, table.data.size(), table.entry_size, sizeof(ElfSymbol));
  }
  if (table.link == 0 || table.link >= sections.size() ||
      sections[table.link].type != kSectionStringTable) {
    return Fail(ErrorKind::kBadInput,
                "cubin: the names of symbol table (section {}) are said to be in section {}, which "
                "is no string table",
                index, table.link);
  }
  const size_t count = table.data.size() / sizeof(ElfSymbol);
  const uint32_t indices_section =
      find(kSectionSymbolIndices, [index](const Section& s) { return s.link == index; });
  const UntrustedBytes indices(sections[indices_section].data);
  if (indices_section != 0 && indices.size() != count * sizeof(uint32_t)) {
    return Fail(ErrorKind::kBadInput,
                "cubin: section {} has {} bytes for the section numbers of {} "
                "symbols",
                indices_section, indices.size(), count);
  }

  const UntrustedBytes raw_symbols(table.data);
  NameTable names(sections[table.link].data);
  image_.symbols_.resize(count);
  image_.symbol_names_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const auto raw = *raw_symbols.Read<ElfSymbol>(i * sizeof(ElfSymbol));
    const auto name = names.Name(raw.name);
    if (!name) {
      return Fail(ErrorKind::kBadInput,
                  "cubin: symbol {} has no readable name at {} of the {} bytes of section {}", i,
                  raw.name, names.bytes.size(), table.link);
    }
    Symbol& symbol = image_.symbols_[i];
    symbol.name = *name;
    symbol.value = raw.value;
    symbol.size = raw.size;
    symbol.section = raw.section;
    symbol.has_section = raw.section < kSectionIndexReserved;
    symbol.type = raw.info & 0xf;
    symbol.bind = raw.info >> 4;
    symbol.other = raw.other;
    if (raw.section == kSectionIndexExtended && indices_section != 0) {
      symbol.section = *indices.Read<uint32_t>(i * sizeof(uint32_t));
      symbol.has_section = true;
    }
    if (symbol.has_section && symbol.section >= sections.size()) {
      return Fail(ErrorKind::kBadInput, "cubin: symbol {} ({:.64}) lies in section {} of {}", i,
                  symbol.name, symbol.section, sections.size());
    }
    image_.symbol_names_[i] = raw.name;
  }
  image_.symbol_section_ = index;
  image_.symbol_indices_section_ = indices_section;
  return {};
}

// What is added to names and symbols would show in every section that shares the bytes of their
// tables.
Result<void> ImageParser::CheckTablesAreUnshared() {
  for (uint32_t i = 1; i < image_.sections_.size(); ++i) {
    if (image_.IsManaged(i) && image_.next_sharing_[i] != i) {
      return Fail(ErrorKind::kBadInput, "cubin: section {} ({:.64}) shares the bytes of section {}",
                  image_.next_sharing_[i], image_.sections_[image_.next_sharing_[i]].name, i);
    }
  }
  return {};
}

}  // namespace iket::cubin
