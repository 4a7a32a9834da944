// The files of tests/data/capture: what this writer made once must stay readable for ever, and the
// raw and packed forms must not change by a byte without a change of docs/format.md.
//
// Each run leaves the files as the present writer makes them in <build>/capture_golden.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/checksum.h"
#include "capture/sample.h"
#include "capture/wire.h"

namespace iket::capture {
namespace {

using Bytes = std::vector<std::byte>;

Bytes Kept(const std::string& name) {
  std::ifstream file(std::string(IKET_SOURCE_DIR "/tests/data/capture/") + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Bytes Made(const std::string& name, Bytes bytes) {
  const std::filesystem::path folder = IKET_BINARY_DIR "/capture_golden";
  std::filesystem::create_directories(folder);
  std::ofstream file(folder / name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(file.flush()) << name;
  return bytes;
}

Bytes Raw() { return SampleFile(FixedSample(), {.compression_level = 0}); }

Bytes Packed() { return SampleFile(FixedSample(), {.compression_level = 0, .pack_rings = true}); }

// A bit of the file header, of the second chunk's header and of a payload near the end flipped.
Bytes Damaged() {
  Bytes file = Raw();
  for (size_t at : {size_t{17}, size_t{73}, file.size() - 480}) file[at] ^= std::byte{16};
  return file;
}

// The end missing in the middle of a chunk.
Bytes Cut() {
  Bytes file = Raw();
  file.resize(file.size() / 2);
  return file;
}

// A chunk of a kind, and one of a version, that do not exist yet.
Bytes Future() {
  Bytes file = Raw();
  for (uint16_t version : {uint16_t{1}, uint16_t{2}}) {
    wire::ChunkHeader header{.kind = version == 1 ? wire::Kind("NEWS") : wire::kNote,
                             .version = version,
                             .codec = 0,
                             .stored_bytes = 8,
                             .raw_bytes = 8,
                             .sequence = 100,
                             .reserved = 0,
                             .payload_crc = Crc32c("tomorrow", 8),
                             .header_crc = 0};
    header.header_crc = Crc32c(&header, offsetof(wire::ChunkHeader, header_crc));
    const auto bytes = std::as_bytes(std::span(&header, 1));
    file.insert(file.end(), bytes.begin(), bytes.end());
    const auto payload = std::as_bytes(std::span("tomorrow", 8));
    file.insert(file.end(), payload.begin(), payload.end());
  }
  return file;
}

TEST(Golden, RawFilesAreMadeByteForByte) {
  EXPECT_EQ(Made("raw.iketcap", Raw()), Kept("raw.iketcap"));
  EXPECT_EQ(Made("packed.iketcap", Packed()), Kept("packed.iketcap"));
  EXPECT_EQ(Made("damaged.iketcap", Damaged()), Kept("damaged.iketcap"));
  EXPECT_EQ(Made("cut.iketcap", Cut()), Kept("cut.iketcap"));
  EXPECT_EQ(Made("future.iketcap", Future()), Kept("future.iketcap"));
}

// Bytes of a compressed file depend on the version of libdeflate; what they say does not.
TEST(Golden, AllCodecsSayTheSame) {
  Made("zlib.iketcap", SampleFile(FixedSample(), {.compression_level = 6}));
  for (const char* name : {"raw.iketcap", "zlib.iketcap", "packed.iketcap", "future.iketcap"}) {
    SCOPED_TRACE(name);
    const Bytes file = Kept(name);
    Result<Reader> reader = Reader::FromBytes(file, name);
    ASSERT_TRUE(reader) << reader.error().message;
    ExpectSame(FixedSample(), *reader);
  }
}

TEST(Golden, DamageIsCounted) {
  const Bytes file = Kept("damaged.iketcap");
  Result<Reader> reader = Reader::FromBytes(file, "damaged.iketcap");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->capture().damage.Summary(),
            "file header damaged, 2 chunks damaged, 296 bytes skipped, 6 strings lost");
}

}  // namespace
}  // namespace iket::capture
