#include "export/unpack.h"

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <string>

namespace iket::exporter {
namespace {

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string All(Unpacker& unpacker) {
  std::string all;
  while (const auto block = unpacker.Next()) {
    all.append(reinterpret_cast<const char*>(block->data()), block->size());
  }
  return all;
}

TEST(Unpacker, GivesPlainBytesAsTheyAre) {
  std::string text(9 << 20, 'x');
  text[5 << 20] = 'y';
  Unpacker unpacker(BytesOf(text));
  EXPECT_EQ(All(unpacker), text);
  EXPECT_EQ(unpacker.damage(), "");
  EXPECT_EQ(unpacker.file_offset(), text.size());
}

std::string Member(const std::string& text) {
  libdeflate_compressor* const compressor = libdeflate_alloc_compressor(6);
  std::string member(libdeflate_gzip_compress_bound(compressor, text.size()), '\0');
  member.resize(
      libdeflate_gzip_compress(compressor, text.data(), text.size(), member.data(), member.size()));
  libdeflate_free_compressor(compressor);
  return member;
}

TEST(Unpacker, GivesMembersOfAnySize) {
  // More than the room that is made at first, then less.
  const std::string large(40 << 20, 'x');
  const std::string file = Member(large) + Member("") + Member("the end");
  Unpacker unpacker(BytesOf(file));
  EXPECT_TRUE(All(unpacker) == large + "the end");
  EXPECT_EQ(unpacker.damage(), "");
  EXPECT_EQ(unpacker.file_offset(), file.size());
}

TEST(Unpacker, SaysWhereDamageIs) {
  const std::string first = Member("first");
  for (std::string second : {Member("second"), std::string("no member")}) {
    second.back() = '?';
    const std::string file = first + second;
    Unpacker unpacker(BytesOf(file));
    EXPECT_EQ(All(unpacker), "first");
    EXPECT_NE(unpacker.damage(), "");
    EXPECT_EQ(unpacker.file_offset(), first.size());
    // The length at the end of a member is wrong, or none begins.
    EXPECT_EQ(unpacker.damage_offset(), second.starts_with("no") ? first.size() : file.size());
    EXPECT_FALSE(unpacker.Next());
  }
}

TEST(Unpacker, SaysWhereAMemberIsCut) {
  const std::string first = Member("first");
  const std::string file = first + Member("second");
  for (size_t size = first.size() + 2; size < file.size(); ++size) {
    Unpacker unpacker(BytesOf(file).first(size));
    EXPECT_EQ(All(unpacker), "first");
    EXPECT_EQ(unpacker.damage(), "cut: the gzip member that begins at byte " +
                                     std::to_string(first.size()) + " does not end");
    EXPECT_EQ(unpacker.damage_offset(), size);
  }
}

TEST(Unpacker, NothingGivesNothing) {
  Unpacker unpacker({});
  EXPECT_FALSE(unpacker.Next());
  EXPECT_EQ(unpacker.damage(), "");
}

}  // namespace
}  // namespace iket::exporter
