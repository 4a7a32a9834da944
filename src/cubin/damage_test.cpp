// Files cut short at every byte and files with one to a few bits flipped: nothing may crash (the
// sanitizer build watches), every failure has a message, and nothing allocates out of proportion.
#include <gtest/gtest.h>
#include <zstd.h>

#include <random>

#include "cubin/fatbin.h"
#include "cubin/image_kind.h"
#include "cubin/kernels.h"
#include "cubin/nvinfo.h"
#include "cubin/testing.h"
#include "cubin/testing_allocations.h"

namespace iket::cubin {
namespace {

using testing::Bytes;
using testing::Data;
using testing::ForgetAllocations;
using testing::LargestAllocation;

// A driver is given a pointer alone, and reads as far as the headers send it.
bool EndsWhereItsHeadersSay(const Bytes& bytes) {
  const auto image = UntrustedImageAt(bytes.data());
  return image && image->bytes.size() <= bytes.size();
}

// Parses, and if that works reads and writes everything. True if it parsed.
bool Exercise(const Bytes& bytes) {
  auto image = Image::Parse(UntrustedBytes(bytes));
  if (!image) {
    EXPECT_EQ(image.error().kind, ErrorKind::kBadInput);
    EXPECT_TRUE(image.error().message.starts_with("cubin: ")) << image.error().message;
    return false;
  }
  EXPECT_EQ(image->Serialize(), bytes);
  EXPECT_TRUE(EndsWhereItsHeadersSay(bytes));
  (void)ReadCallGraph(*image);
  (void)image->ArchName();
  const auto functions = Functions(*image);
  if (!functions) return true;
  for (const Function& function : *functions) {
    (void)ExitOffsets(*image, function.section);
    (void)Parameters(*image, function.section);
    (void)UsesSetMaxNReg(*image, function.section);
    (void)SetRegisterCount(*image, function.symbol, 24);
    (void)image->SetSectionData(function.section, Bytes(4096));
  }
  const Bytes edited = image->Serialize();
  EXPECT_TRUE(Image::Parse(UntrustedBytes(edited)));
  EXPECT_TRUE(EndsWhereItsHeadersSay(edited));
  return true;
}

bool ExerciseFatbin(const Bytes& bytes) {
  const auto fatbin = ReadFatbin(UntrustedBytes(bytes));
  if (!fatbin) {
    EXPECT_EQ(fatbin.error().kind, ErrorKind::kBadInput);
    EXPECT_TRUE(fatbin.error().message.starts_with("fatbin: ")) << fatbin.error().message;
    return false;
  }
  const auto rebuilt = RebuildFatbin(*fatbin, {});
  EXPECT_TRUE(rebuilt && std::ranges::equal(*rebuilt, fatbin->bytes.span()));
  return true;
}

// `bytes` with a few bits flipped; half of the time in the first bytes, where headers are.
Bytes Flipped(const Bytes& bytes, std::mt19937_64& random) {
  Bytes flipped = bytes;
  for (uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
    const size_t range = random() % 2 == 0 ? std::min<size_t>(bytes.size(), 160) : bytes.size();
    const size_t at = random() % range;
    flipped[at] ^= static_cast<std::byte>(1 << random() % 8);
  }
  return flipped;
}

constexpr int kFlips = 10000;

class Damage : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Cubins, Damage,
                         ::testing::Values("saxpy.sm_80.cubin", "saxpy.sm_90a.cubin",
                                           "saxpy.sm_100a.cubin"),
                         testing::TestName);

TEST_P(Damage, CutAnywhere) {
  const Bytes whole = Data(GetParam());
  for (size_t size = 0; size < whole.size(); ++size) {
    // The program headers end the file: without their last byte there are too few.
    EXPECT_FALSE(Exercise(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size))));
  }
  EXPECT_TRUE(Exercise(whole));
}

TEST_P(Damage, BitsFlipped) {
  const Bytes whole = Data(GetParam());
  std::mt19937_64 random(1);
  int parsed = 0;
  ForgetAllocations();
  for (int i = 0; i < kFlips; ++i) parsed += Exercise(Flipped(whole, random)) ? 1 : 0;
  EXPECT_GT(parsed, kFlips / 10);
  EXPECT_LT(parsed, kFlips);
  EXPECT_LE(LargestAllocation(), 4 * whole.size() + 8192);
}

class FatbinDamage : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Fatbins, FatbinDamage,
                         ::testing::Values("saxpy.zstd.fatbin", "saxpy.lz4.fatbin",
                                           "saxpy.ptx.fatbin", "saxpy.rdc.fatbin"),
                         testing::TestName);

TEST_P(FatbinDamage, CutAnywhere) {
  const Bytes whole = Data(GetParam());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(
        ExerciseFatbin(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size))));
  }
  EXPECT_TRUE(ExerciseFatbin(whole));
}

TEST_P(FatbinDamage, BitsFlipped) {
  const Bytes whole = Data(GetParam());
  std::mt19937_64 random(1);
  int read = 0;
  for (int i = 0; i < kFlips; ++i) {
    const Bytes bytes = Flipped(whole, random);
    ForgetAllocations();
    if (!ExerciseFatbin(bytes)) continue;
    ++read;
    EXPECT_LE(LargestAllocation(), 4 * whole.size() + 8192);
    const auto fatbin = ReadFatbin(UntrustedBytes(bytes)).value();
    for (const FatbinEntry& entry : fatbin.entries) {
      ForgetAllocations();
      (void)Decompress(entry);
      EXPECT_LE(LargestAllocation(),
                std::max(kAnyRatio, kMaxRatio * (entry.code.size() + 1)) + 8192);
    }
  }
  EXPECT_GT(read, kFlips / 10);
}

// Thousands of small entries may each announce that much: no memory is made, and zeroed, for a lie.
TEST(FatbinDamage, AnnouncedSizesCostNothing) {
  const Bytes frame_header = {std::byte{0x28}, std::byte{0xb5}, std::byte{0x2f}, std::byte{0xfd},
                              std::byte{0},    std::byte{0},    std::byte{0},    std::byte{0}};
  const Bytes zeros(1 << 20);
  Bytes fewer(ZSTD_compressBound(zeros.size()));
  fewer.resize(ZSTD_compress(fewer.data(), fewer.size(), zeros.data(), zeros.size(), 3));
  const Bytes nothing;
  const Bytes* const codes[] = {&frame_header, &fewer, &nothing};
  for (const Bytes* code : codes) {
    for (const uint64_t flags : {kEntryZstd, kEntryLz4}) {
      FatbinEntry entry;
      entry.flags = flags;
      entry.uncompressed_size = kAnyRatio;
      entry.code = UntrustedBytes(*code);
      ForgetAllocations();
      EXPECT_FALSE(Decompress(entry));
      EXPECT_LE(LargestAllocation(), 8192u);
    }
  }
}

}  // namespace
}  // namespace iket::cubin
