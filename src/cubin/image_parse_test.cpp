// Each way in which a cubin can lie about itself, and the message that says where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cubin/testing.h"

namespace iket::cubin {
namespace {

using ::testing::AllOf;
using testing::Bytes;
using testing::Data;
using ::testing::HasSubstr;
using testing::HeaderOf;
using testing::ParseData;
using testing::Peek;
using testing::Poke;

constexpr const char* kFile = "saxpy.sm_90a.cubin";

std::string ErrorOf(const Bytes& bytes) {
  const auto image = Image::Parse(UntrustedBytes(bytes));
  if (image) return "parsed";
  EXPECT_EQ(image.error().kind, ErrorKind::kBadInput);
  return image.error().message;
}

// The message after a value in the ELF header was overwritten.
template <typename T>
std::string HeaderError(size_t offset, T value) {
  Bytes bytes = Data(kFile);
  Poke(bytes, offset, value);
  return ErrorOf(bytes);
}

// The message after a value in the header of the section `name` was overwritten.
template <typename T>
std::string SectionError(const char* name, size_t offset, T value) {
  Bytes bytes = Data(kFile);
  const uint32_t section = ParseData(kFile).FindSection(name).value();
  Poke(bytes, HeaderOf(bytes, section) + offset, value);
  return ErrorOf(bytes);
}

TEST(ImageParse, WhatIsNoCubin) {
  EXPECT_THAT(ErrorOf({}), HasSubstr("0 bytes"));
  EXPECT_THAT(ErrorOf(Bytes(4096)), HasSubstr("not a 64-bit"));
  EXPECT_THAT(HeaderError(kIdentClass, uint8_t{1}), HasSubstr("not a 64-bit"));
  EXPECT_THAT(HeaderError(kIdentData, uint8_t{2}), HasSubstr("little-endian"));
  EXPECT_THAT(HeaderError(offsetof(ElfHeader, machine), uint16_t{62}), HasSubstr("machine 62"));
}

TEST(ImageParse, HeaderTables) {
  EXPECT_THAT(HeaderError(offsetof(ElfHeader, sections_offset), uint64_t{0}),
              HasSubstr("no section headers"));
  EXPECT_THAT(HeaderError(offsetof(ElfHeader, sections_offset), ~uint64_t{0}),
              HasSubstr("outside the file"));
  EXPECT_THAT(HeaderError(offsetof(ElfHeader, section_entry_size), uint16_t{40}),
              HasSubstr("section headers of 40 bytes"));
  EXPECT_THAT(HeaderError(offsetof(ElfHeader, section_count), uint16_t{60000}),
              HasSubstr("60000 section headers"));
  EXPECT_THAT(HeaderError(offsetof(ElfHeader, section_count), uint16_t{0}),
              HasSubstr("0 section headers"))
      << "the first section does not say how many";
  EXPECT_THAT(HeaderError(offsetof(ElfHeader, names_section), uint16_t{500}),
              HasSubstr("section 500"));
  EXPECT_THAT(HeaderError(offsetof(ElfHeader, names_section), uint16_t{3}),
              HasSubstr("no string table"));
  EXPECT_THAT(HeaderError(offsetof(ElfHeader, segments_offset), ~uint64_t{0} - 100),
              HasSubstr("program headers"));
  EXPECT_THAT(HeaderError(offsetof(ElfHeader, segment_count), uint16_t{0xffff}),
              HasSubstr("65535 program headers"));
  EXPECT_THAT(HeaderError(offsetof(ElfHeader, segment_entry_size), uint16_t{8}),
              HasSubstr("program headers of 8 bytes"));
}

// A number of sections in the first section's header that nobody could have written.
TEST(ImageParse, ExtendedNumberOfSections) {
  Bytes bytes = Data(kFile);
  Poke(bytes, offsetof(ElfHeader, section_count), uint16_t{0});
  Poke(bytes, HeaderOf(bytes, 0) + offsetof(ElfSection, size), uint64_t{1} << 58);
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("section headers"));
}

TEST(ImageParse, Sections) {
  EXPECT_THAT(SectionError(".text.saxpy", offsetof(ElfSection, size), ~uint64_t{0} - 16),
              AllOf(HasSubstr("section 12"), HasSubstr("past the file")));
  EXPECT_THAT(SectionError(".text.saxpy", offsetof(ElfSection, offset), uint64_t{1} << 40),
              AllOf(HasSubstr("section 12"), HasSubstr("offset 1099511627776")));
  EXPECT_THAT(SectionError(".text.saxpy", offsetof(ElfSection, name), 0x7fffffffu),
              AllOf(HasSubstr("section 12"), HasSubstr("no readable name")));
}

TEST(ImageParse, OverlapsAreNamed) {
  const Image image = ParseData(kFile);
  const auto text = image.sections()[image.FindSection(".text.saxpy").value()];
  EXPECT_THAT(SectionError(".nv.info", offsetof(ElfSection, offset), text.parsed_offset + 16),
              AllOf(HasSubstr(".nv.info"), HasSubstr("overlaps"), HasSubstr(".text.saxpy")));
  EXPECT_THAT(SectionError(".nv.info", offsetof(ElfSection, offset), uint64_t{32}),
              AllOf(HasSubstr(".nv.info"), HasSubstr("overlaps the ELF header")));
  EXPECT_THAT(
      SectionError(".nv.info", offsetof(ElfSection, offset), image.header().sections_offset + 64),
      AllOf(HasSubstr(".nv.info"), HasSubstr("overlaps the section headers")));
  EXPECT_THAT(
      SectionError(".nv.info", offsetof(ElfSection, offset), image.header().segments_offset),
      AllOf(HasSubstr(".nv.info"), HasSubstr("the program headers")));
}

// Found by fuzzing: names added to one table appeared in the section that shared its bytes.
TEST(ImageParse, TablesShareNoBytes) {
  const Image image = ParseData(kFile);
  for (const char* table : {".shstrtab", ".strtab", ".symtab"}) {
    const Section& section = image.sections()[image.FindSection(table).value()];
    Bytes bytes = Data(kFile);
    const uint64_t header = HeaderOf(bytes, image.FindSection(".nv.info").value());
    Poke(bytes, header + offsetof(ElfSection, offset), section.parsed_offset);
    Poke(bytes, header + offsetof(ElfSection, size), section.size);
    EXPECT_THAT(ErrorOf(bytes), AllOf(HasSubstr(".nv.info"), HasSubstr("shares the bytes")));
  }
}

TEST(ImageParse, Segments) {
  Bytes bytes = Data(kFile);
  const auto header = Peek<ElfHeader>(bytes, 0);
  Poke(bytes, header.segments_offset + 2 * sizeof(ElfSegment) + offsetof(ElfSegment, file_size),
       ~uint64_t{0});
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("program header 2"));
}

TEST(ImageParse, SymbolTable) {
  EXPECT_THAT(SectionError(".symtab", offsetof(ElfSection, entry_size), uint64_t{16}),
              HasSubstr("entries of 16"));
  EXPECT_THAT(SectionError(".symtab", offsetof(ElfSection, size), uint64_t{25}),
              HasSubstr("25 bytes"));
  EXPECT_THAT(SectionError(".symtab", offsetof(ElfSection, link), 0xfffffffeu),
              HasSubstr("section 4294967294"));
  EXPECT_THAT(SectionError(".symtab", offsetof(ElfSection, link), 3u),
              HasSubstr("no string table"));

  const Image image = ParseData(kFile);
  const auto table = image.sections()[image.FindSection(".symtab").value()].parsed_offset;
  Bytes bytes = Data(kFile);
  Poke(bytes, table + 4 * sizeof(ElfSymbol) + offsetof(ElfSymbol, name), 0xffffffffu);
  EXPECT_THAT(ErrorOf(bytes), AllOf(HasSubstr("symbol 4"), HasSubstr("no readable name")));
  bytes = Data(kFile);
  Poke(bytes, table + 8 * sizeof(ElfSymbol) + offsetof(ElfSymbol, section), uint16_t{77});
  EXPECT_THAT(ErrorOf(bytes), AllOf(HasSubstr("saxpy"), HasSubstr("section 77")));
}

// Thousands of sections that all take the same long string for their name would make each reader of
// names take time that grows with the square of the file.
TEST(ImageParse, NamesThatAddUpToFarMoreThanTheirTable) {
  Image image = ParseData(kFile);
  for (int i = 0; i < 3000; ++i) {
    NewSection section;
    section.name = i == 0 ? std::string(60000, 'n') : "";
    ASSERT_TRUE(image.AddSection(section));
  }
  Bytes bytes = image.Serialize();
  ASSERT_TRUE(Image::Parse(UntrustedBytes(bytes)));
  const uint64_t last = image.sections().size() - 1;
  const auto name =
      Peek<ElfSection>(bytes, HeaderOf(bytes, static_cast<uint32_t>(last - 2999))).name;
  for (uint64_t i = last - 2999; i <= last; ++i) {
    Poke(bytes, HeaderOf(bytes, static_cast<uint32_t>(i)) + offsetof(ElfSection, name), name);
  }
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("no readable name"));
}

}  // namespace
}  // namespace iket::cubin
