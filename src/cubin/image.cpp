#include "cubin/image.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "cubin/nvinfo.h"

namespace iket::cubin {
namespace {

constexpr uint32_t kMaxTable = std::numeric_limits<uint32_t>::max();

}  // namespace

bool HasFileBytes(uint32_t section_type) {
  switch (section_type) {
    case kSectionNull:
    case kSectionNoBits:
    case kSectionCudaGlobal:
    case kSectionCudaLocal:
    case kSectionCudaShared:
    case kSectionCudaSharedReserved:
      return false;
    default:
      return true;
  }
}

int Image::sm() const { return SmOf(header_.flags, header_.ident[kIdentAbiVersion]); }

bool Image::arch_specific() const {
  // `.nv.compat` has the record format of `.nv.info` with codes of its own; 9 says 1 for "a"
  // targets (compared over sm_90, 100, 103 and 120 with and without "a" and "f").
  constexpr uint8_t kCompatArchSpecific = 9;
  const auto section = FindSection(".nv.compat");
  if (!section) return false;
  AttributeReader reader(sections_[*section].data);
  while (const auto attribute = reader.Next()) {
    if (attribute->code == kCompatArchSpecific) return (attribute->value & 0xff) == 1;
  }
  return false;
}

std::string Image::ArchName() const {
  return fmt::format("sm_{}{}", sm(), arch_specific() ? "a" : "");
}

std::optional<uint32_t> Image::FindSection(std::string_view name) const {
  const auto found =
      std::lower_bound(sections_by_name_.begin(), sections_by_name_.end(), name,
                       [this](uint32_t i, std::string_view n) { return sections_[i].name < n; });
  if (found == sections_by_name_.end() || sections_[*found].name != name) return std::nullopt;
  return *found;
}

std::optional<uint32_t> Image::FindSymbol(std::string_view name) const {
  for (uint32_t i = 0; i < symbols_.size(); ++i) {
    if (symbols_[i].name == name) return i;
  }
  return std::nullopt;
}

std::span<const std::byte> Image::Keep(std::vector<std::byte> bytes) {
  edits_.push_back(std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
  return *edits_.back();
}

std::string_view Image::KeepName(const std::string& name) {
  const auto* first = reinterpret_cast<const std::byte*>(name.data());
  const auto kept = Keep(std::vector<std::byte>(first, first + name.size()));
  return {reinterpret_cast<const char*>(kept.data()), kept.size()};
}

Result<uint32_t> Image::AddName(uint32_t table, const std::string& name) {
  if (name.find('\0') != std::string::npos) {
    return Fail(ErrorKind::kUsage, "cubin: a name to be added holds a NUL");
  }
  auto added = std::find_if(added_names_.begin(), added_names_.end(),
                            [table](const AddedNames& a) { return a.section == table; });
  if (added == added_names_.end()) added = added_names_.insert(added, AddedNames{table, {}});
  const uint64_t offset = sections_[table].data.size() + added->bytes.size();
  if (offset > kMaxTable - name.size() - 1) {
    return Fail(ErrorKind::kBadInput, "cubin: string table {} is full", sections_[table].name);
  }
  const auto* first = reinterpret_cast<const std::byte*>(name.data());
  added->bytes.insert(added->bytes.end(), first, first + name.size());
  added->bytes.push_back(std::byte{0});
  return static_cast<uint32_t>(offset);
}

Result<void> Image::CheckSection(uint32_t section) const {
  if (section < sections_.size()) return {};
  return Fail(ErrorKind::kUsage, "cubin: there is no section {} (the image has {})", section,
              sections_.size());
}

bool Image::IsManaged(uint32_t section) const {
  if (section == names_section_) return true;
  if (symbol_section_ == 0) return false;
  return section == symbol_section_ || section == sections_[symbol_section_].link ||
         (symbol_indices_section_ != 0 && section == symbol_indices_section_);
}

Result<void> Image::SetSectionData(uint32_t section, std::vector<std::byte> data) {
  if (auto ok = CheckSection(section); !ok) return ok;
  if (!HasFileBytes(sections_[section].type)) {
    return Fail(ErrorKind::kUsage, "cubin: section {} has no bytes in the file",
                sections_[section].name);
  }
  if (IsManaged(section)) {
    return Fail(ErrorKind::kUsage, "cubin: section {} changes with its symbols and names only",
                sections_[section].name);
  }
  if (std::has_single_bit(sections_[section].align) && sections_[section].align > kMaxAlign) {
    return Fail(ErrorKind::kBadInput, "cubin: section {:.64} wants an alignment of {}",
                sections_[section].name, sections_[section].align);
  }
  uint32_t i = section;
  const auto kept = Keep(std::move(data));
  do {
    sections_[i].data = kept;
    sections_[i].size = kept.size();
    i = next_sharing_[i];
  } while (i != section);
  return {};
}

Result<void> Image::SetSectionAlign(uint32_t section, uint64_t align) {
  if (auto ok = CheckSection(section); !ok) return ok;
  if (!std::has_single_bit(align) || align > kMaxAlign) {
    return Fail(ErrorKind::kUsage, "cubin: {} is no alignment for section {}", align,
                sections_[section].name);
  }
  uint32_t i = section;
  do {
    sections_[i].align = align;
    realigned_[i] = true;
    i = next_sharing_[i];
  } while (i != section);
  return {};
}

Result<void> Image::SetSectionInfo(uint32_t section, uint32_t info) {
  if (auto ok = CheckSection(section); !ok) return ok;
  sections_[section].info = info;
  return {};
}

Result<uint32_t> Image::AddSection(NewSection section) {
  if (names_section_ == 0) {
    return Fail(ErrorKind::kBadInput, "cubin: the image has no section names, {} cannot be added",
                section.name);
  }
  if (!HasFileBytes(section.type) || !std::has_single_bit(section.align) ||
      section.align > kMaxAlign) {
    return Fail(ErrorKind::kUsage, "cubin: section {} cannot be added with type {:#x}, align {}",
                section.name, section.type, section.align);
  }
  const bool loaded = (section.flags & kFlagAlloc) != 0 && !segments_.empty();
  if (loaded && segments_.size() + added_loads_.size() >= kMaxSegments) {
    return Fail(ErrorKind::kBadInput, "cubin: no program header is left for section {}",
                section.name);
  }
  const auto name = AddName(names_section_, section.name);
  if (!name) return tl::unexpected(name.error());

  const auto index = static_cast<uint32_t>(sections_.size());
  Section added;
  added.name = KeepName(section.name);
  added.type = section.type;
  added.flags = section.flags;
  added.size = section.data.size();
  added.link = section.link;
  added.info = section.info;
  added.align = section.align;
  added.entry_size = section.entry_size;
  added.data = Keep(std::move(section.data));
  sections_.push_back(added);
  section_names_.push_back(*name);
  next_sharing_.push_back(index);
  realigned_.push_back(false);
  sections_by_name_.insert(
      std::upper_bound(sections_by_name_.begin(), sections_by_name_.end(), added.name,
                       [this](std::string_view n, uint32_t i) { return n < sections_[i].name; }),
      index);
  if (loaded) added_loads_.push_back(index);
  return index;
}

Result<Symbol*> Image::EditSymbol(uint32_t symbol) {
  if (symbol >= symbols_.size()) {
    return Fail(ErrorKind::kUsage, "cubin: there is no symbol {} (the image has {})", symbol,
                symbols_.size());
  }
  symbols_edited_ = true;
  return &symbols_[symbol];
}

Result<void> Image::SetSymbolSize(uint32_t symbol, uint64_t size) {
  return EditSymbol(symbol).map([size](Symbol* s) { s->size = size; });
}

Result<void> Image::SetSymbolValue(uint32_t symbol, uint64_t value) {
  return EditSymbol(symbol).map([value](Symbol* s) { s->value = value; });
}

Result<void> Image::SetSymbolBind(uint32_t symbol, uint8_t bind) {
  return EditSymbol(symbol).map([bind](Symbol* s) { s->bind = bind & 0xf; });
}

Result<uint32_t> Image::AddSymbol(NewSymbol symbol) {
  if (symbol_section_ == 0) {
    return Fail(ErrorKind::kBadInput, "cubin: the image has no symbol table, {} cannot be added",
                symbol.name);
  }
  if (auto ok = CheckSection(symbol.section); !ok) return tl::unexpected(ok.error());
  if (symbol.section >= kSectionIndexReserved && symbol_indices_section_ == 0) {
    return Fail(ErrorKind::kBadInput,
                "cubin: symbol {} needs a table of extended section numbers, the image has none",
                symbol.name);
  }
  const auto name = AddName(sections_[symbol_section_].link, symbol.name);
  if (!name) return tl::unexpected(name.error());

  const auto index = static_cast<uint32_t>(symbols_.size());
  Symbol added;
  added.name = KeepName(symbol.name);
  added.value = symbol.value;
  added.size = symbol.size;
  added.section = symbol.section;
  added.has_section = true;
  added.type = symbol.type & 0xf;
  added.bind = symbol.bind & 0xf;
  added.other = symbol.other;
  symbols_.push_back(added);
  symbol_names_.push_back(*name);
  symbols_edited_ = true;
  if (added.bind == kBindLocal) {
    uint32_t& first_global = sections_[symbol_section_].info;
    first_global = std::max(first_global, index + 1);
  }
  return index;
}

}  // namespace iket::cubin
