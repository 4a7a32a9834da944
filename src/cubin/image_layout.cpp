// Image::Serialize: gives everything in the file its new place and writes it.
//
// The parsed file is seen as a row of items (ELF header, contents of sections, header tables) with
// gaps between them. Items keep their order and get new offsets one after the other. A gap that is
// nothing but zeros up to the next item's alignment is made anew; any other gap (ptxas leaves some
// behind string tables) is copied. So an image without edits comes out as it went in, and one that
// grew is laid out as if it had been built that way.

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>

#include "cubin/image.h"

namespace iket::cubin {
namespace {

enum class What { kHeader, kSectionTable, kSegmentTable, kSection };

struct Item {
  What what = What::kHeader;
  uint32_t section = 0;
  uint64_t old_offset = 0;
  uint64_t old_size = 0;  // 0: a point, e.g. a section without bytes that says where it would be
  uint64_t align = 1;
  uint64_t new_offset = 0;
  uint64_t new_size = 0;
  uint64_t old_end() const { return old_offset + old_size; }
  uint64_t new_end() const { return new_offset + new_size; }
};

uint64_t AlignUp(uint64_t value, uint64_t align) { return (value + align - 1) & ~(align - 1); }

template <typename T>
void Put(std::vector<std::byte>& out, uint64_t offset, const T& value) {
  std::memcpy(out.data() + offset, &value, sizeof value);
}

}  // namespace

class ImageLayout {
 public:
  explicit ImageLayout(const Image& image)
      : image_(image),
        file_(*image.file_),
        extended_(image.sections_.size() >= kSectionIndexReserved ||
                  image.header_.section_count == 0) {}
  std::vector<std::byte> Write();

 private:
  void MakeContents();
  void MakeItems();
  void Place();
  uint64_t MapStart(uint64_t old_offset) const;
  uint64_t MapEnd(uint64_t old_offset) const;
  const Item* ItemCovering(uint64_t old_offset) const;
  uint64_t MapGap(uint64_t old_offset) const;
  void WriteSections(std::vector<std::byte>& out) const;
  void WriteSegments(std::vector<std::byte>& out) const;

  bool IsZero(uint64_t begin, uint64_t end) const {
    return std::all_of(file_.begin() + static_cast<ptrdiff_t>(begin),
                       file_.begin() + static_cast<ptrdiff_t>(end),
                       [](std::byte b) { return b == std::byte{0}; });
  }
  uint64_t segment_count() const { return image_.segments_.size() + image_.added_loads_.size(); }

  struct Gap {
    uint64_t old_offset, new_offset, size;
  };

  const Image& image_;
  const std::vector<std::byte>& file_;
  const bool extended_;  // the number of sections is in the first section's header
  std::vector<std::span<const std::byte>> contents_;  // of each section, as it will be written
  std::vector<std::vector<std::byte>> made_;          // owns those that are made here
  std::vector<Item> items_;                           // of the parsed file, in its order
  std::vector<Item> added_;                           // without a place in the parsed file
  std::vector<uint64_t> offsets_;                     // new sh_offset of each section
  std::vector<Gap> gaps_;                             // to be copied
  uint64_t sections_offset_ = 0;
  uint64_t segments_offset_ = 0;
  uint64_t end_ = 0;
};

std::vector<std::byte> Image::Serialize() const { return ImageLayout(*this).Write(); }

std::vector<std::byte> ImageLayout::Write() {
  MakeContents();
  MakeItems();
  Place();
  std::vector<std::byte> out(end_);
  for (const Gap& gap : gaps_) {
    std::copy_n(file_.begin() + static_cast<ptrdiff_t>(gap.old_offset), gap.size,
                out.begin() + static_cast<ptrdiff_t>(gap.new_offset));
  }
  ElfHeader header = image_.header_;
  header.sections_offset = sections_offset_;
  if (segment_count() != 0) {
    header.segments_offset = segments_offset_;
    header.segment_count = static_cast<uint16_t>(segment_count());
  } else if (end_ != file_.size()) {
    header.segments_offset = 0;  // a place in the parsed file, and in this one nothing
  }
  header.section_count = static_cast<uint16_t>(extended_ ? 0 : image_.sections_.size());
  Put(out, 0, header);
  WriteSections(out);
  WriteSegments(out);
  return out;
}

// The bytes of every section: what the image holds, and behind it the names added to a string
// table; the symbol table anew if a symbol was edited.
void ImageLayout::MakeContents() {
  contents_.reserve(image_.sections_.size());
  for (const Section& section : image_.sections_) contents_.push_back(section.data);
  made_.reserve(image_.added_names_.size() + 2);
  const auto set = [&](uint32_t section, std::vector<std::byte> bytes) {
    made_.push_back(std::move(bytes));
    uint32_t i = section;
    do {
      contents_[i] = made_.back();
      i = image_.next_sharing_[i];
    } while (i != section);
  };
  for (const auto& names : image_.added_names_) {
    const auto old = contents_[names.section];
    std::vector<std::byte> bytes(old.begin(), old.end());
    bytes.insert(bytes.end(), names.bytes.begin(), names.bytes.end());
    set(names.section, std::move(bytes));
  }
  if (!image_.symbols_edited_) return;

  const auto& symbols = image_.symbols_;
  std::vector<std::byte> table(symbols.size() * sizeof(ElfSymbol));
  std::vector<std::byte> indices(symbols.size() * sizeof(uint32_t));
  for (size_t i = 0; i < symbols.size(); ++i) {
    const Symbol& symbol = symbols[i];
    const bool extended = symbol.has_section && symbol.section >= kSectionIndexReserved;
    ElfSymbol raw{};
    raw.name = image_.symbol_names_[i];
    raw.info = static_cast<uint8_t>(symbol.bind << 4 | symbol.type);
    raw.other = symbol.other;
    raw.section = static_cast<uint16_t>(extended ? kSectionIndexExtended : symbol.section);
    raw.value = symbol.value;
    raw.size = symbol.size;
    Put(table, i * sizeof raw, raw);
    Put(indices, i * sizeof(uint32_t), extended ? symbol.section : 0u);
  }
  set(image_.symbol_section_, std::move(table));
  if (image_.symbol_indices_section_ != 0) {
    set(image_.symbol_indices_section_, std::move(indices));
  }
}

// A section that shares its bytes with earlier ones makes no item. Nor does one without bytes whose
// offset points into another item or past the file: it covers nothing, so its offset follows or
// stays. (If it was given bytes, they come last.)
void ImageLayout::MakeItems() {
  const auto& sections = image_.sections_;
  items_.push_back({What::kHeader, 0, 0, sizeof(ElfHeader), 1, 0, sizeof(ElfHeader)});
  items_.push_back({What::kSectionTable, 0, image_.header_.sections_offset,
                    image_.parsed_sections_ * sizeof(ElfSection), 8, 0,
                    sections.size() * sizeof(ElfSection)});
  if (!image_.segments_.empty()) {
    items_.push_back({What::kSegmentTable, 0, image_.header_.segments_offset,
                      image_.segments_.size() * sizeof(ElfSegment), 8, 0,
                      segment_count() * sizeof(ElfSegment)});
  }
  std::vector<bool> seen(sections.size());
  std::vector<Item> points;
  for (uint32_t i = 0; i < sections.size(); ++i) {
    const Section& section = sections[i];
    if (section.type == kSectionNull || seen[i]) continue;
    for (uint32_t j = image_.next_sharing_[i]; j != i; j = image_.next_sharing_[j]) seen[j] = true;
    const uint64_t align = std::has_single_bit(section.align) ? section.align : 1;
    const Item item{What::kSection, i, section.parsed_offset, section.parsed_size,
                    align,          0, contents_[i].size()};
    if (i >= image_.parsed_sections_) {
      added_.push_back(item);
    } else if (item.old_size != 0) {
      items_.push_back(item);
    } else {
      points.push_back(item);
    }
  }
  const auto before = [](const Item& a, const Item& b) {
    return std::tuple(a.old_offset, a.old_size != 0, a.section) <
           std::tuple(b.old_offset, b.old_size != 0, b.section);
  };
  std::sort(items_.begin(), items_.end(), before);
  std::vector<Item> placed;
  for (const Item& point : points) {
    const Item* covering = ItemCovering(point.old_offset);
    if ((covering == nullptr || covering->old_offset == point.old_offset) &&
        point.old_offset >= sizeof(ElfHeader) && point.old_offset <= file_.size()) {
      placed.push_back(point);
    } else if (point.new_size != 0) {
      added_.push_back(point);
    }
  }
  items_.insert(items_.end(), placed.begin(), placed.end());
  std::sort(items_.begin(), items_.end(), before);
}

void ImageLayout::Place() {
  offsets_.resize(image_.sections_.size());
  size_t last_section = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].what == What::kSection) last_section = i;
  }
  uint64_t old_end = 0;
  uint64_t new_end = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    const uint64_t align = item.what == What::kSection && image_.realigned_[item.section]
                               ? item.align
                               : (item.old_offset % item.align == 0 ? item.align : 1);
    const uint64_t gap = item.old_offset - old_end;
    if (gap < item.align && AlignUp(old_end, item.align) == item.old_offset &&
        IsZero(old_end, item.old_offset)) {
      item.new_offset = AlignUp(new_end, align);
    } else {
      gaps_.push_back({old_end, new_end, gap});
      item.new_offset = AlignUp(new_end + gap, align);
    }
    old_end = item.old_end();
    new_end = item.new_end();
    if (i != last_section) continue;
    for (Item& added : added_) {
      added.new_offset = AlignUp(new_end, added.align);
      new_end = added.new_end();
    }
  }
  gaps_.push_back({old_end, new_end, file_.size() - old_end});
  end_ = new_end + gaps_.back().size;

  for (uint32_t i = 0; i < image_.parsed_sections_; ++i) {
    const Section& section = image_.sections_[i];
    const bool follows = section.type != kSectionNull && section.parsed_offset <= file_.size();
    offsets_[i] = follows ? MapStart(section.parsed_offset) : section.parsed_offset;
  }
  const auto set = [&](const Item& item) {
    if (item.what == What::kSectionTable) sections_offset_ = item.new_offset;
    if (item.what == What::kSegmentTable) segments_offset_ = item.new_offset;
    if (item.what == What::kSection) offsets_[item.section] = item.new_offset;
  };
  std::for_each(items_.begin(), items_.end(), set);
  std::for_each(added_.begin(), added_.end(), set);
}

// The item with bytes that contains this offset of the parsed file.
const Item* ImageLayout::ItemCovering(uint64_t old_offset) const {
  const auto next = std::upper_bound(items_.begin(), items_.end(), old_offset,
                                     [](uint64_t o, const Item& i) { return o < i.old_offset; });
  if (next == items_.begin()) return nullptr;
  const Item& item = *std::prev(next);
  return old_offset < item.old_end() ? &item : nullptr;
}

// Where an offset that no item contains has gone: it keeps its distance from the item before it, as
// far as there is room.
uint64_t ImageLayout::MapGap(uint64_t old_offset) const {
  const auto next = std::lower_bound(items_.begin(), items_.end(), old_offset,
                                     [](const Item& i, uint64_t o) { return i.old_offset < o; });
  if (next != items_.end() && next->old_offset == old_offset) return next->new_offset;
  const Item& before = *std::prev(next);  // the ELF header, if nothing else
  const uint64_t moved = before.new_end() + (old_offset - before.old_end());
  return next == items_.end() ? moved : std::min(moved, next->new_offset);
}

// The new offset of what began at `old_offset`.
uint64_t ImageLayout::MapStart(uint64_t old_offset) const {
  const Item* item = ItemCovering(old_offset);
  if (item == nullptr) return MapGap(old_offset);
  return item->new_offset + std::min(old_offset - item->old_offset, item->new_size);
}

// The new end of what ended at `old_end` > 0: the end of the same item, or of the gap behind it.
uint64_t ImageLayout::MapEnd(uint64_t old_end) const {
  const Item* item = ItemCovering(old_end - 1);
  if (item == nullptr) return MapGap(old_end);
  if (old_end < item->old_end()) {
    return item->new_offset + std::min(old_end - item->old_offset, item->new_size);
  }
  // Sections without bytes (.nv.shared, .nv.global) begin where their segment's bytes end.
  uint64_t end = item->new_end();
  for (const Item* next = item + 1; next != items_.data() + items_.size(); ++next) {
    if (next->old_offset != old_end || next->old_size != 0 || next->new_size != 0) break;
    end = next->new_offset;
  }
  return end;
}

void ImageLayout::WriteSections(std::vector<std::byte>& out) const {
  for (const auto* items : {&items_, &added_}) {
    for (const Item& item : *items) {
      if (item.what != What::kSection) continue;
      std::copy(contents_[item.section].begin(), contents_[item.section].end(),
                out.begin() + static_cast<ptrdiff_t>(item.new_offset));
    }
  }
  const uint64_t count = image_.sections_.size();
  for (uint64_t i = 0; i < count; ++i) {
    const Section& section = image_.sections_[i];
    ElfSection raw{};
    raw.name = image_.section_names_[i];
    raw.type = section.type;
    raw.flags = section.flags;
    raw.address = section.address;
    raw.offset = offsets_[i];
    raw.size = HasFileBytes(section.type) ? contents_[i].size() : section.size;
    if (i == 0 && extended_) raw.size = count;
    raw.link = section.link;
    raw.info = section.info;
    raw.align = section.align;
    raw.entry_size = section.entry_size;
    Put(out, sections_offset_ + i * sizeof raw, raw);
  }
}

void ImageLayout::WriteSegments(std::vector<std::byte>& out) const {
  uint64_t at = segments_offset_;
  for (ElfSegment segment : image_.segments_) {
    if (segment.file_size != 0) {
      const uint64_t old_size = segment.file_size;
      const uint64_t old_end = segment.offset + old_size;
      segment.offset = MapStart(segment.offset);
      segment.file_size = MapEnd(old_end) - segment.offset;
      // What memory has beyond the file (sections without bytes) stays as much as it was.
      if (segment.memory_size >= old_size) segment.memory_size += segment.file_size - old_size;
    } else if (segment.offset <= file_.size()) {
      segment.offset = MapStart(segment.offset);
    }
    Put(out, at, segment);
    at += sizeof segment;
  }
  for (const uint32_t section : image_.added_loads_) {
    const uint64_t flags = image_.sections_[section].flags;
    const uint64_t size = contents_[section].size();
    ElfSegment segment{};
    segment.type = kSegmentLoad;
    segment.flags = kSegmentRead | ((flags & kFlagWrite) != 0 ? kSegmentWrite : 0) |
                    ((flags & kFlagExecute) != 0 ? kSegmentExecute : 0);
    segment.offset = offsets_[section];
    segment.file_size = size;
    segment.memory_size = size;
    segment.align = 8;  // as ptxas writes it, also for code aligned to 128
    Put(out, at, segment);
    at += sizeof segment;
  }
}

}  // namespace iket::cubin
