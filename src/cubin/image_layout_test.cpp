#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

#include "cubin/testing.h"

namespace iket::cubin {
namespace {

using testing::Bytes;
using testing::Data;
using testing::ParseData;
using testing::Peek;

// A file read in the plainest way, straight from its headers: what Serialize is held against.
struct RawFile {
  Bytes bytes;
  ElfHeader header;
  std::vector<ElfSection> sections;
  std::vector<ElfSegment> segments;

  explicit RawFile(Bytes file) : bytes(std::move(file)), header(Peek<ElfHeader>(bytes, 0)) {
    for (uint32_t i = 0; i < header.section_count; ++i) {
      sections.push_back(Peek<ElfSection>(bytes, header.sections_offset + i * sizeof(ElfSection)));
    }
    for (uint32_t i = 0; i < header.segment_count; ++i) {
      segments.push_back(Peek<ElfSegment>(bytes, header.segments_offset + i * sizeof(ElfSegment)));
    }
  }
  bool HasBytes(size_t i) const { return HasFileBytes(sections[i].type) && sections[i].size != 0; }
  Bytes Contents(size_t i) const {
    if (!HasBytes(i)) return {};
    const auto first = bytes.begin() + static_cast<ptrdiff_t>(sections[i].offset);
    return Bytes(first, first + static_cast<ptrdiff_t>(sections[i].size));
  }
  // The sections with bytes that lie wholly inside a segment, out of the first `count`.
  std::set<size_t> Covered(const ElfSegment& segment, size_t count) const {
    std::set<size_t> covered;
    for (size_t i = 0; i < count; ++i) {
      const ElfSection& s = sections[i];
      if (HasBytes(i) && s.offset >= segment.offset &&
          s.offset + s.size <= segment.offset + segment.file_size) {
        covered.insert(i);
      }
    }
    return covered;
  }
  // Sections with bytes in the order of the file, those that share bytes as one.
  std::vector<size_t> Order() const {
    std::map<uint64_t, size_t> by_offset;
    for (size_t i = sections.size(); i-- > 0;) {
      if (HasBytes(i)) by_offset[sections[i].offset] = i;
    }
    std::vector<size_t> order;
    for (const auto& [offset, i] : by_offset) order.push_back(i);
    return order;
  }
};

void CheckNothingOverlaps(const RawFile& file) {
  std::set<std::pair<uint64_t, uint64_t>> ranges = {
      {0, sizeof(ElfHeader)},
      {file.header.sections_offset, file.sections.size() * sizeof(ElfSection)}};
  if (!file.segments.empty()) {
    ranges.insert({file.header.segments_offset, file.segments.size() * sizeof(ElfSegment)});
  }
  for (size_t i = 0; i < file.sections.size(); ++i) {
    if (file.HasBytes(i)) ranges.insert({file.sections[i].offset, file.sections[i].size});
  }
  uint64_t end = 0;
  for (const auto& [offset, size] : ranges) {
    EXPECT_GE(offset, end);
    end = offset + size;
  }
  EXPECT_LE(end, file.bytes.size());
}

// What must hold between a file and its edited form whatever the edits were.
void CheckLayout(const RawFile& before, const RawFile& after) {
  const size_t count = before.sections.size();
  ASSERT_GE(after.sections.size(), count);
  CheckNothingOverlaps(after);
  for (size_t i = 0; i < count; ++i) {
    const ElfSection& old = before.sections[i];
    const ElfSection& now = after.sections[i];
    EXPECT_EQ(now.name, old.name) << i;
    EXPECT_EQ(now.type, old.type) << i;
    EXPECT_EQ(now.flags, old.flags) << i;
    EXPECT_EQ(now.link, old.link) << i;
    EXPECT_EQ(now.entry_size, old.entry_size) << i;
    if (old.align > 1 && old.offset % old.align == 0) {
      EXPECT_EQ(now.offset % now.align, 0u) << i;
    }
  }
  auto order = after.Order();
  std::erase_if(order, [&](size_t i) { return i >= count || !before.HasBytes(i); });
  EXPECT_EQ(order, before.Order());

  ASSERT_GE(after.segments.size(), before.segments.size());
  for (size_t i = 0; i < before.segments.size(); ++i) {
    const ElfSegment& old = before.segments[i];
    const ElfSegment& now = after.segments[i];
    EXPECT_EQ(now.type, old.type) << i;
    EXPECT_EQ(now.flags, old.flags) << i;
    EXPECT_EQ(now.memory_size - now.file_size, old.memory_size - old.file_size) << i;
    for (size_t j = 0; j < count && old.file_size != 0; ++j) {
      // Sections without bytes begin where the bytes of their segment end.
      if (before.sections[j].type == kSectionNoBits &&
          before.sections[j].offset == old.offset + old.file_size) {
        EXPECT_EQ(after.sections[j].offset, now.offset + now.file_size) << i << " section " << j;
      }
    }
    if (old.offset == before.header.segments_offset) {
      EXPECT_EQ(now.offset, after.header.segments_offset) << i;
      EXPECT_EQ(now.file_size, after.segments.size() * sizeof(ElfSegment)) << i;
    } else {
      EXPECT_EQ(after.Covered(now, after.sections.size()), before.Covered(old, count)) << i;
    }
  }
}

class EveryLayout : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Cubins, EveryLayout, ::testing::ValuesIn(testing::DataNames(".cubin")),
                         testing::TestName);

TEST_P(EveryLayout, KeepsItsShapeUnderRandomEdits) {
  const RawFile before(Data(GetParam()));
  std::mt19937_64 random(std::hash<std::string>()(GetParam()));
  const auto below = [&](uint64_t n) { return random() % n; };
  for (int round = 0; round < 200; ++round) {
    auto image = Image::Parse(UntrustedBytes(before.bytes)).value();
    std::map<uint32_t, Bytes> expected;
    std::vector<uint32_t> loads;
    for (uint64_t edits = 1 + below(6); edits > 0; --edits) {
      const auto section = static_cast<uint32_t>(below(before.sections.size()));
      Bytes data(1 + below(round % 2 == 0 ? 40 : 5000), static_cast<std::byte>(random()));
      if (below(4) == 0) {
        NewSection added;
        added.name = ".added";
        added.flags = below(2) == 0 ? 0 : kFlagAlloc | kFlagExecute;
        added.align = uint64_t{1} << below(9);
        added.data = data;
        const auto index = image.AddSection(added);
        ASSERT_TRUE(index);
        expected[*index] = data;
        if (added.flags != 0 && !before.segments.empty()) loads.push_back(*index);
      } else if (before.HasBytes(section) && image.SetSectionData(section, data)) {
        for (uint32_t i = 0; i < before.sections.size(); ++i) {
          if (before.HasBytes(i) && before.sections[i].offset == before.sections[section].offset) {
            expected[i] = data;
          }
        }
      }
    }
    const RawFile after(image.Serialize());
    CheckLayout(before, after);
    for (size_t i = 0; i < after.sections.size(); ++i) {
      const auto edited = expected.find(static_cast<uint32_t>(i));
      if (edited != expected.end()) {
        EXPECT_EQ(after.Contents(i), edited->second) << i;
      } else if (i != after.header.names_section) {
        EXPECT_EQ(after.Contents(i), before.Contents(i)) << i;
      }
    }
    ASSERT_EQ(after.segments.size(), before.segments.size() + loads.size());
    for (size_t i = 0; i < loads.size(); ++i) {
      const ElfSegment& load = after.segments[before.segments.size() + i];
      EXPECT_EQ(load.type, kSegmentLoad);
      EXPECT_EQ(load.flags, kSegmentRead | kSegmentExecute);
      EXPECT_EQ(load.offset, after.sections[loads[i]].offset);
      EXPECT_EQ(load.file_size, after.sections[loads[i]].size);
      EXPECT_EQ(load.memory_size, after.sections[loads[i]].size);
    }
    const auto again = Image::Parse(UntrustedBytes(after.bytes));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->Serialize(), after.bytes);
    if (HasFailure()) FAIL() << "in round " << round;
  }
}

TEST(Layout, ClonesOfConstantsFollowTheOriginal) {
  Image image = ParseData("pipeline.sm_100a.cubin");
  const uint32_t constant = image.FindSection(".nv.constant3").value();
  const uint32_t clone = image.FindSection(".nv.merc.nv.constant.user").value();
  const Bytes data(40, std::byte{0x5a});
  ASSERT_TRUE(image.SetSectionAlign(constant, 8));
  ASSERT_TRUE(image.SetSectionData(constant, data));
  EXPECT_EQ(image.sections()[clone].size, 40u);
  const RawFile file(image.Serialize());
  EXPECT_EQ(file.sections[clone].offset, file.sections[constant].offset);
  EXPECT_EQ(file.sections[constant].offset % 8, 0u);
  EXPECT_EQ(file.sections[clone].align, 8u);
  EXPECT_EQ(file.Contents(clone), data);
}

TEST(Layout, AddedSymbolsComeLastAndChangeNoIndex) {
  const Image before = ParseData("pipeline.sm_90a.cubin");
  Image image = before;
  NewSymbol global;
  global.name = "iket_ring";
  global.section = image.FindSection(".nv.constant3").value();
  global.value = 16;
  global.size = 8;
  EXPECT_EQ(image.AddSymbol(global), before.symbols().size());
  const auto again = Image::Parse(UntrustedBytes(image.Serialize())).value();
  ASSERT_EQ(again.symbols().size(), before.symbols().size() + 1);
  for (size_t i = 0; i < before.symbols().size(); ++i) {
    EXPECT_EQ(again.symbols()[i].name, before.symbols()[i].name);
    EXPECT_EQ(again.symbols()[i].value, before.symbols()[i].value);
    EXPECT_EQ(again.symbols()[i].section, before.symbols()[i].section);
  }
  const Symbol& added = again.symbols().back();
  EXPECT_EQ(added.name, "iket_ring");
  EXPECT_EQ(added.section, global.section);
  EXPECT_EQ(added.value, 16u);
  EXPECT_EQ(added.size, 8u);
  EXPECT_EQ(added.type, kSymbolObject);
  EXPECT_EQ(added.bind, kBindGlobal);
  const uint32_t table = again.FindSection(".symtab").value();
  EXPECT_EQ(again.sections()[table].info, before.sections()[table].info);

  NewSymbol local = global;
  local.name = "local";
  local.bind = kBindLocal;
  const auto index = image.AddSymbol(local);
  ASSERT_TRUE(index);
  EXPECT_EQ(image.sections()[table].info, *index + 1) << "sh_info is one past the last local";
}

TEST(Layout, EditsOfSymbolsReachTheFile) {
  Image image = ParseData("saxpy.sm_90a.cubin");
  const uint32_t symbol = image.FindSymbol("saxpy").value();
  ASSERT_TRUE(image.SetSymbolSize(symbol, 0x1000));
  ASSERT_TRUE(image.SetSymbolValue(symbol, 0x10));
  ASSERT_TRUE(image.SetSymbolBind(symbol, kBindWeak));
  const auto again = Image::Parse(UntrustedBytes(image.Serialize())).value();
  EXPECT_EQ(again.symbols()[symbol].size, 0x1000u);
  EXPECT_EQ(again.symbols()[symbol].value, 0x10u);
  EXPECT_EQ(again.symbols()[symbol].bind, kBindWeak);
  EXPECT_EQ(again.symbols()[symbol].type, kSymbolFunction);
  EXPECT_EQ(again.symbols()[symbol].other, kOtherCudaEntry);
}

TEST(Layout, SectionsWithoutBytesKeepOddOffsets) {
  Bytes bytes = Data("pipeline.sm_90a.cubin");
  const Image parsed = ParseData("pipeline.sm_90a.cubin");
  const uint32_t inside = parsed.FindSection(".nv.shared.work32").value();
  const uint32_t beyond = parsed.FindSection(".nv.shared.work64").value();
  const uint32_t text = parsed.FindSection(".text.work32").value();
  const uint64_t text_offset = parsed.sections()[text].parsed_offset;
  constexpr uint64_t kOffset = offsetof(ElfSection, offset);
  testing::Poke(bytes, testing::HeaderOf(bytes, inside) + kOffset, text_offset + 33);
  testing::Poke(bytes, testing::HeaderOf(bytes, beyond) + kOffset, ~uint64_t{0} - 5);

  auto image = Image::Parse(UntrustedBytes(bytes)).value();
  EXPECT_EQ(image.Serialize(), bytes);
  const uint32_t strings = image.FindSection(".nv.info").value();
  ASSERT_TRUE(image.SetSectionData(strings, Bytes(4096)));
  const RawFile after(image.Serialize());
  EXPECT_EQ(after.sections[inside].offset, after.sections[text].offset + 33) << "moves along";
  EXPECT_EQ(after.sections[beyond].offset, ~uint64_t{0} - 5) << "stays";
}

// .nv.global.init ends where .nv.shared, aligned to 16, begins; when it grows by half of that, the
// segment takes the padding along.
TEST(Layout, SegmentsEndWhereSectionsWithoutBytesBegin) {
  Image image = ParseData("pipeline.sm_90a.cubin");
  const uint32_t data = image.FindSection(".nv.global.init").value();
  ASSERT_TRUE(image.SetSectionData(data, Bytes(32)));
  const RawFile before(image.Serialize());
  const uint32_t shared = image.FindSection(".nv.shared.work64").value();
  ASSERT_EQ(before.sections[data].offset + 32, before.sections[shared].offset);
  auto again = Image::Parse(UntrustedBytes(before.bytes)).value();
  ASSERT_TRUE(again.SetSectionData(data, Bytes(40)));
  CheckLayout(before, RawFile(again.Serialize()));
}

// A segment may end behind its last section. When that section grows into the gap, the segment must
// not grow into the next one.
TEST(Layout, SegmentThatEndsInAGap) {
  Bytes bytes = Data("pipeline.sm_90a.cubin");
  const Image parsed = ParseData("pipeline.sm_90a.cubin");
  const uint32_t constant = parsed.FindSection(".nv.constant3").value();
  const Section& section = parsed.sections()[constant];
  const uint32_t text = constant + 1;
  const uint64_t gap = parsed.sections()[text].parsed_offset - section.parsed_offset - section.size;
  ASSERT_GE(gap, 16u);
  constexpr uint32_t kSegment = 2;
  testing::Poke(bytes,
                parsed.header().segments_offset + kSegment * sizeof(ElfSegment) +
                    offsetof(ElfSegment, file_size),
                parsed.segments()[kSegment].file_size + 8);
  for (uint64_t growth = 0; growth < 2 * gap; ++growth) {
    auto image = Image::Parse(UntrustedBytes(bytes)).value();
    ASSERT_TRUE(image.SetSectionData(constant, Bytes(section.size + growth)));
    const RawFile file(image.Serialize());
    const ElfSegment& segment = file.segments[kSegment];
    const uint64_t end = segment.offset + segment.file_size;
    EXPECT_GE(end, file.sections[constant].offset + file.sections[constant].size) << growth;
    EXPECT_LE(end, file.sections[text].offset) << growth;
  }
}

TEST(Layout, AlignmentThatWasSetIsKept) {
  for (const uint64_t align : {8, 64, 1024}) {
    Image image = ParseData("pipeline.sm_90a.cubin");
    const uint32_t constant = image.FindSection(".nv.constant3").value();
    ASSERT_TRUE(image.SetSectionAlign(constant, align));
    const RawFile file(image.Serialize());
    EXPECT_EQ(file.sections[constant].align, align);
    EXPECT_EQ(file.sections[constant].offset % align, 0u);
    CheckNothingOverlaps(file);
  }
}

// Found by fuzzing. An empty section may claim any offset and alignment; when it is given bytes
// they must not land before the ELF header, nor a terabyte away.
TEST(Layout, EmptySectionsWithAbsurdPlaces) {
  Bytes bytes = Data("pipeline.sm_90a.cubin");
  const uint32_t section =
      ParseData("pipeline.sm_90a.cubin").FindSection(".rela.text.work32").value();
  const uint64_t header = testing::HeaderOf(bytes, section);
  ASSERT_EQ(Peek<ElfSection>(bytes, header).size, 0u);
  for (const uint64_t offset : {uint64_t{0}, uint64_t{33}, uint64_t{1} << 40}) {
    testing::Poke(bytes, header + offsetof(ElfSection, offset), offset);
    auto image = Image::Parse(UntrustedBytes(bytes)).value();
    EXPECT_EQ(image.Serialize(), bytes);
    ASSERT_TRUE(image.SetSectionData(section, Bytes(48, std::byte{7})));
    const RawFile after(image.Serialize());
    EXPECT_EQ(after.Contents(section), Bytes(48, std::byte{7}));
    CheckLayout(RawFile(bytes), after);
  }
  testing::Poke(bytes, header + offsetof(ElfSection, align), uint64_t{1} << 40);
  auto image = Image::Parse(UntrustedBytes(bytes)).value();
  EXPECT_EQ(image.Serialize(), bytes);
  EXPECT_FALSE(image.SetSectionData(section, Bytes(48)));
}

// More sections than e_shnum can say: the number moves into the first section's header.
TEST(Layout, ManySections) {
  Image image = ParseData("saxpy.sm_90a.cubin");
  constexpr uint32_t kCount = 0xff10;
  while (image.sections().size() < kCount) {
    NewSection section;
    section.name = "s";
    section.data.resize(1);
    ASSERT_TRUE(image.AddSection(section));
  }
  const Bytes bytes = image.Serialize();
  EXPECT_EQ(Peek<ElfHeader>(bytes, 0).section_count, 0);
  const auto again = Image::Parse(UntrustedBytes(bytes));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->sections().size(), kCount);
  EXPECT_EQ(again->Serialize(), bytes);

  NewSymbol symbol;
  symbol.name = "far";
  symbol.section = kCount - 1;
  EXPECT_FALSE(image.AddSymbol(symbol)) << "its section number does not fit in 16 bits";
  NewSection indices;
  indices.name = ".symtab_shndx";
  indices.type = kSectionSymbolIndices;
  indices.link = image.FindSection(".symtab").value();
  indices.data.resize(4 * image.symbols().size());
  ASSERT_TRUE(image.AddSection(indices));
  auto extended = Image::Parse(UntrustedBytes(image.Serialize())).value();
  const auto index = extended.AddSymbol(symbol);
  ASSERT_TRUE(index) << index.error().message;
  const auto far = Image::Parse(UntrustedBytes(extended.Serialize())).value();
  EXPECT_EQ(far.symbols()[*index].section, kCount - 1);
  EXPECT_EQ(far.symbols()[far.FindSymbol("saxpy").value()].section,
            image.FindSection(".text.saxpy").value());
}

}  // namespace
}  // namespace iket::cubin
