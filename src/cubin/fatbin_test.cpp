#include "cubin/fatbin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "cubin/image_kind.h"
#include "cubin/testing.h"

namespace iket::cubin {
namespace {

using testing::Bytes;
using testing::Data;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Poke;

class EveryFatbin : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Fatbins, EveryFatbin, ::testing::ValuesIn(testing::DataNames(".fatbin")),
                         testing::TestName);

TEST_P(EveryFatbin, ComesBackByteForByte) {
  const Bytes bytes = Data(GetParam());
  const auto fatbin = ReadFatbin(UntrustedBytes(bytes));
  ASSERT_TRUE(fatbin) << fatbin.error().message;
  EXPECT_EQ(fatbin->bytes.size(), bytes.size());
  EXPECT_GE(fatbin->entries.size(), 1u);
  EXPECT_EQ(RebuildFatbin(*fatbin, {}).value(), bytes);
}

TEST_P(EveryFatbin, ReplacedCubinsAreThereAndAllElseIsVerbatim) {
  const Bytes bytes = Data(GetParam());
  const auto before = ReadFatbin(UntrustedBytes(bytes)).value();
  for (size_t odd = 0; odd < 9; ++odd) {  // sizes that need padding and such that do not
    const Bytes code(100 + odd, std::byte{0xcb});
    for (size_t i = 0; i < before.entries.size(); ++i) {
      if (before.entries[i].kind != EntryKind::kElf) continue;
      const Replacement replacement{i, code};
      const auto rebuilt = RebuildFatbin(before, std::span(&replacement, 1));
      ASSERT_TRUE(rebuilt) << rebuilt.error().message;
      const auto after = ReadFatbin(UntrustedBytes(*rebuilt));
      ASSERT_TRUE(after) << after.error().message;
      ASSERT_EQ(after->entries.size(), before.entries.size());
      EXPECT_EQ(after->bytes.size(), rebuilt->size());
      for (size_t j = 0; j < before.entries.size(); ++j) {
        const FatbinEntry& old = before.entries[j];
        const FatbinEntry& now = after->entries[j];
        EXPECT_EQ(now.ArchName(), old.ArchName());
        EXPECT_EQ(now.offset % 8, 0u);
        if (i == j) {
          EXPECT_EQ(now.compression(), Compression::kNone);
          EXPECT_EQ(now.uncompressed_size, 0u);
          EXPECT_EQ(now.payload.size() % 8, 0u);
          EXPECT_TRUE(std::ranges::equal(now.payload.span().first(code.size()), code));
          EXPECT_TRUE(
              std::ranges::equal(now.header.span().subspan(64), old.header.span().subspan(64)))
              << "the extension";
        } else {
          EXPECT_TRUE(std::ranges::equal(now.header.span(), old.header.span()));
          EXPECT_TRUE(std::ranges::equal(now.payload.span(), old.payload.span()));
        }
      }
    }
  }
}

std::vector<std::string> Arches(const Fatbin& fatbin) {
  std::vector<std::string> arches;
  for (const FatbinEntry& entry : fatbin.entries) arches.push_back(entry.ArchName());
  return arches;
}

// The cubins inside are those that nvcc -cubin makes, whatever the compression.
TEST(Fatbin, HoldsTheSameCubinsUnderEveryCompression) {
  const std::pair<const char*, Compression> files[] = {{"saxpy.none.fatbin", Compression::kNone},
                                                       {"saxpy.default.fatbin", Compression::kNone},
                                                       {"saxpy.zstd.fatbin", Compression::kZstd},
                                                       {"saxpy.lz4.fatbin", Compression::kLz4}};
  for (const auto& [file, compression] : files) {
    const Bytes bytes = Data(file);
    const auto fatbin = ReadFatbin(UntrustedBytes(bytes)).value();
    EXPECT_THAT(Arches(fatbin), ElementsAre("sm_80", "sm_90a", "sm_100a", "compute_90"));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(fatbin.entries[i].compression(), compression) << file;
      const auto code = Decompress(fatbin.entries[i]);
      ASSERT_TRUE(code) << code.error().message;
      EXPECT_EQ(*code, Data("saxpy." + fatbin.entries[i].ArchName() + ".cubin")) << file;
    }
    const FatbinEntry& ptx = fatbin.entries[3];
    EXPECT_EQ(ptx.kind, EntryKind::kPtx);
    EXPECT_EQ(ptx.code_major, 9);
    const auto text = Decompress(ptx);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(KindOf(UntrustedBytes(*text)), ImageKind::kPtx);
    EXPECT_THAT(std::string(reinterpret_cast<const char*>(text->data()), text->size()),
                HasSubstr(".entry saxpy("));
  }
}

TEST(Fatbin, PtxOnlyAndLtoIr) {
  const Bytes ptx_bytes = Data("saxpy.ptx.fatbin");
  const auto ptx = ReadFatbin(UntrustedBytes(ptx_bytes)).value();
  ASSERT_EQ(ptx.entries.size(), 1u);
  EXPECT_EQ(ptx.entries[0].kind, EntryKind::kPtx);
  EXPECT_EQ(ptx.entries[0].ArchName(), "compute_90");
  const Replacement replacement{0, {}};
  EXPECT_FALSE(RebuildFatbin(ptx, std::span(&replacement, 1))) << "PTX is no cubin";

  const Bytes lto_bytes = Data("saxpy.lto.fatbin");
  const auto lto = ReadFatbin(UntrustedBytes(lto_bytes)).value();
  ASSERT_EQ(lto.entries.size(), 1u);
  EXPECT_EQ(lto.entries[0].kind, EntryKind::kLtoIr);
  EXPECT_EQ(lto.entries[0].ArchName(), "compute_90a");
}

TEST(Fatbin, FoundInsideAProgram) {
  const Bytes first = Data("saxpy.zstd.fatbin");
  const Bytes second = Data("saxpy.ptx.fatbin");
  Bytes program(1024, std::byte{0x90});
  Poke(program, 64, kFatbinMagic);  // the number alone is no fatbin
  program.insert(program.end(), first.begin(), first.end());
  program.insert(program.end(), second.begin(), second.end());
  program.insert(program.end(), second.begin(), second.end() - 1);  // cut short
  const auto found = FindFatbins(UntrustedBytes(program));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(std::ranges::equal(found[0].span(), first));
  EXPECT_TRUE(std::ranges::equal(found[1].span(), second));
}

TEST(Fatbin, InsideAFatbinIsNotFoundAgain) {
  const Bytes inner = Data("saxpy.ptx.fatbin");
  const Bytes bytes = Data("saxpy.none.fatbin");
  const auto fatbin = ReadFatbin(UntrustedBytes(bytes)).value();
  const Replacement replacement{0, inner};
  const Bytes outer = RebuildFatbin(fatbin, std::span(&replacement, 1)).value();
  const auto found = FindFatbins(UntrustedBytes(outer));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].size(), outer.size());
}

TEST(Fatbin, WhatLiesAboutItsSizes) {
  const Bytes whole = Data("saxpy.zstd.fatbin");
  const auto error = [&](uint64_t offset, auto value) {
    Bytes bytes = whole;
    Poke(bytes, offset, value);
    const auto fatbin = ReadFatbin(UntrustedBytes(bytes));
    if (!fatbin) return fatbin.error().message;
    const auto code = Decompress(fatbin->entries[0]);
    return code ? std::string("read") : code.error().message;
  };
  constexpr uint64_t kEntry = kFatbinHeaderSize;
  EXPECT_THAT(error(0, 0u), HasSubstr("do not begin with a fatbin header"));
  EXPECT_THAT(error(4, uint16_t{9}), HasSubstr("do not begin with a fatbin header"));
  EXPECT_THAT(error(8, uint64_t{1} << 40), HasSubstr("cut short"));
  EXPECT_THAT(error(8, ~uint64_t{0}), HasSubstr("do not begin with a fatbin header"));
  EXPECT_THAT(error(kEntry + offsetof(FatbinEntryHeader, header_size), 8u),
              HasSubstr("offset 16 has a header size of 8"));
  EXPECT_THAT(error(kEntry + offsetof(FatbinEntryHeader, header_size), ~0u),
              HasSubstr("header size"));
  EXPECT_THAT(error(kEntry + offsetof(FatbinEntryHeader, payload_size), ~uint64_t{0} - 7),
              HasSubstr("payload size"));
  EXPECT_THAT(error(kEntry + offsetof(FatbinEntryHeader, compressed_size), 1u << 30),
              HasSubstr("compressed size"));
  // Far more than any image, more than so few bytes can hold, and wrong by one.
  constexpr uint64_t kStated = kEntry + offsetof(FatbinEntryHeader, uncompressed_size);
  EXPECT_THAT(error(kStated, ~uint64_t{0}), HasSubstr("more than any real image"));
  EXPECT_THAT(error(kStated, uint64_t{1} << 29), HasSubstr("more than any real image"));
  EXPECT_THAT(error(kStated, Data("saxpy.sm_80.cubin").size() - 1), HasSubstr("zstd"));
  EXPECT_THAT(error(kStated, Data("saxpy.sm_80.cubin").size() + 1), HasSubstr("announced"));
}

// A table of zeros, which compresses 6,000-fold.
TEST(Fatbin, UnpacksWhatCompressesToNearlyNothing) {
  const Bytes zeros(12 << 20);
  Bytes compressed(ZSTD_compressBound(zeros.size()));
  compressed.resize(
      ZSTD_compress(compressed.data(), compressed.size(), zeros.data(), zeros.size(), 3));
  ASSERT_GT(zeros.size() / compressed.size(), kMaxRatio);
  FatbinEntry entry;
  entry.flags = kEntryZstd;
  entry.uncompressed_size = zeros.size();
  entry.code = UntrustedBytes(compressed);
  EXPECT_EQ(Decompress(entry).value(), zeros);
}

TEST(Fatbin, DamagedLz4) {
  Bytes bytes = Data("saxpy.lz4.fatbin");
  constexpr uint64_t kStated = kFatbinHeaderSize + offsetof(FatbinEntryHeader, uncompressed_size);
  const auto stated = testing::Peek<uint64_t>(bytes, kStated);
  for (const uint64_t lie : {stated - 1, stated + 1, stated * 300}) {
    Poke(bytes, kStated, lie);
    const auto fatbin = ReadFatbin(UntrustedBytes(bytes)).value();
    EXPECT_THAT(Decompress(fatbin.entries[0]).error().message, HasSubstr("LZ4")) << lie;
  }
}

}  // namespace
}  // namespace iket::cubin
