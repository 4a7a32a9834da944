// image.h: one cubin, taken apart so that it can be edited and put together again.
//
// Guarantees
// - Parse accepts only what Serialize can write back: every section, header table and segment lies
//   inside the file, and two sections share bytes only if they name exactly the same ones and are
//   no symbol or string tables.
// - Serialize of an unedited image returns the very bytes that were parsed.
// - Indices never change: sections and symbols are added at the end, nothing is renumbered.
// - Serialize lays the file out anew: sections keep their order, offsets follow from sizes and
//   alignments, gaps between them keep their bytes, and each segment covers the same sections as
//   before. Sections that shared their bytes with an edited one (the sm_100 `.nv.merc.*` clones of
//   constants) go on sharing them.
// - Nothing throws on bad bytes, nothing is printed, no global state. Memory: the file once, plus
//   about 120 bytes a section and 48 bytes a symbol, plus the edits.
//
// Lifetime: every name and every span handed out stays valid as long as the image or any copy of it
// lives, also across edits (an edit replaces a view, it does not write through it). Copies share
// the bytes and are independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "cubin/elf.h"

namespace iket::cubin {

struct Section {
  std::string_view name;
  uint32_t type = kSectionNull;
  uint64_t flags = 0;
  uint64_t address = 0;
  uint64_t size = 0;  // bytes in memory; data.size() is the same unless the section has no bytes
  uint32_t link = 0;
  uint32_t info = 0;
  uint64_t align = 0;
  uint64_t entry_size = 0;
  uint64_t parsed_offset = 0;       // where it lay in the parsed file; 0 for an added one
  uint64_t parsed_size = 0;         // how many bytes it had there
  std::span<const std::byte> data;  // empty if it has no bytes in the file (.nv.shared, .nv.global)
};

struct Symbol {
  std::string_view name;
  uint64_t value = 0;  // offset in its section
  uint64_t size = 0;
  uint32_t section = 0;  // section index, or a reserved one (>= 0xff00) if !has_section
  bool has_section = false;
  uint8_t type = kSymbolNoType;
  uint8_t bind = kBindLocal;
  uint8_t other = 0;
};

// A program header. Its offset and sizes are those of the parsed file; Serialize moves them along
// with the sections it covers.
using Segment = ElfSegment;

struct NewSection {
  std::string name;
  uint32_t type = kSectionProgBits;
  uint64_t flags = 0;  // with kFlagAlloc the section gets a PT_LOAD of its own (linked images)
  uint64_t align = 1;
  std::vector<std::byte> data;
  uint32_t link = 0;
  uint32_t info = 0;
  uint64_t entry_size = 0;
};

struct NewSymbol {
  std::string name;
  uint32_t section = kSectionIndexUndefined;
  uint64_t value = 0;
  uint64_t size = 0;
  uint8_t type = kSymbolObject;
  uint8_t bind = kBindGlobal;
  uint8_t other = 0;
};

// True if sections of this type take room in the file.
bool HasFileBytes(uint32_t section_type);

class Image {
 public:
  // Copies the bytes. Errors (kBadInput) name the section or table and its file offset.
  static Result<Image> Parse(UntrustedBytes bytes);

  // 90 for sm_90 and sm_90a.
  int sm() const;
  // True for "a" targets (sm_90a). Known from `.nv.compat`; false where that is absent (<= sm_89).
  bool arch_specific() const;
  // "sm_90", "sm_90a". A family target ("f") does not say so in the cubin and reads as plain.
  std::string ArchName() const;
  // False for a relocatable cubin (nvcc -rdc=true), which has relocations and no segments.
  bool linked() const { return header_.type == kTypeExecutable; }
  const ElfHeader& header() const { return header_; }

  const std::vector<Section>& sections() const { return sections_; }
  const std::vector<Symbol>& symbols() const { return symbols_; }
  const std::vector<Segment>& segments() const { return segments_; }
  size_t parsed_size() const { return file_->size(); }

  // The first section or symbol of that name. Cost: logarithmic, linear.
  std::optional<uint32_t> FindSection(std::string_view name) const;
  std::optional<uint32_t> FindSymbol(std::string_view name) const;

  // Replaces the contents, of the sections that share them too. Fails for a section without bytes
  // in the file, for the symbol table and the string tables (use the functions below; `data` of
  // those stays what was parsed) and for an index that is not there.
  Result<void> SetSectionData(uint32_t section, std::vector<std::byte> data);
  // A power of two.
  Result<void> SetSectionAlign(uint32_t section, uint64_t align);
  Result<void> SetSectionInfo(uint32_t section, uint32_t info);
  // Returns its index.
  Result<uint32_t> AddSection(NewSection section);

  Result<void> SetSymbolSize(uint32_t symbol, uint64_t size);
  Result<void> SetSymbolValue(uint32_t symbol, uint64_t value);
  Result<void> SetSymbolBind(uint32_t symbol, uint8_t bind);
  // Returns its index. Keeps sh_info of the symbol table past the last local symbol.
  Result<uint32_t> AddSymbol(NewSymbol symbol);

  std::vector<std::byte> Serialize() const;

 private:
  friend class ImageParser;
  friend class ImageLayout;
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;

  // Bytes that Serialize puts behind the parsed contents of a string table.
  struct AddedNames {
    uint32_t section = 0;
    std::vector<std::byte> bytes;
  };

  Image() = default;
  std::span<const std::byte> Keep(std::vector<std::byte> bytes);
  std::string_view KeepName(const std::string& name);
  // Returns the offset of the name in the table.
  Result<uint32_t> AddName(uint32_t table, const std::string& name);
  Result<void> CheckSection(uint32_t section) const;
  Result<Symbol*> EditSymbol(uint32_t symbol);
  // Whose contents only the functions for names and symbols may change.
  bool IsManaged(uint32_t section) const;

  ElfHeader header_{};
  Bytes file_;
  std::vector<Bytes> edits_;  // owns what the spans and names of edits point into
  std::vector<Section> sections_;
  uint32_t parsed_sections_ = 0;            // the first so many were parsed, the others added
  std::vector<uint32_t> section_names_;     // sh_name
  std::vector<uint32_t> sections_by_name_;  // indices, sorted by (name, index)
  std::vector<uint32_t> next_sharing_;      // ring of the sections that share their bytes
  std::vector<bool> realigned_;             // SetSectionAlign was used
  std::vector<Symbol> symbols_;
  std::vector<uint32_t> symbol_names_;  // st_name
  bool symbols_edited_ = false;
  std::vector<Segment> segments_;
  std::vector<uint32_t> added_loads_;  // sections that get a PT_LOAD of their own
  std::vector<AddedNames> added_names_;
  uint32_t names_section_ = 0;           // 0: none
  uint32_t symbol_section_ = 0;          // 0: none
  uint32_t symbol_indices_section_ = 0;  // 0: none
};

}  // namespace iket::cubin
