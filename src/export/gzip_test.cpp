#include "export/gzip.h"

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <string>

namespace iket::exporter {
namespace {

// All members of a gzip file.
std::string Unpack(const std::string& file, size_t room) {
  libdeflate_decompressor* const decompressor = libdeflate_alloc_decompressor();
  std::string all;
  for (size_t at = 0; at < file.size();) {
    std::string member(room, '\0');
    size_t used = 0, got = 0;
    EXPECT_EQ(libdeflate_gzip_decompress_ex(decompressor, file.data() + at, file.size() - at,
                                            member.data(), member.size(), &used, &got),
              LIBDEFLATE_SUCCESS);
    if (used == 0) break;
    all += member.substr(0, got);
    at += used;
  }
  libdeflate_free_decompressor(decompressor);
  return all;
}

TEST(Gzip, AnyPieces) {
  for (const size_t piece : {1u, 1000u, 5u << 20, 9u << 20}) {
    std::string text(piece == 1 ? 5000 : 10u << 20, 'x');
    for (size_t i = 0; i < text.size(); i += 7) text[i] = static_cast<char>('a' + i / 7 % 26);
    std::string file;
    const Sink sink = [&](std::string_view bytes) {
      file += bytes;
      return Result<void>();
    };
    GzipStream gzip(sink);
    for (size_t at = 0; at < text.size(); at += piece) {
      ASSERT_TRUE(gzip.Write(std::string_view(text).substr(at, piece)));
    }
    ASSERT_TRUE(gzip.Finish());
    EXPECT_EQ(Unpack(file, 4u << 20), text);
    EXPECT_LT(file.size(), text.size() / 2);
  }
}

TEST(Gzip, NothingIsAFileToo) {
  std::string file;
  const Sink sink = [&](std::string_view bytes) {
    file += bytes;
    return Result<void>();
  };
  GzipStream gzip(sink);
  ASSERT_TRUE(gzip.Finish());
  EXPECT_FALSE(file.empty());
  EXPECT_EQ(Unpack(file, 16), "");
}

TEST(Gzip, SaysWhatTheSinkSaid) {
  const Sink full = [](std::string_view) -> Result<void> {
    return Fail(ErrorKind::kSystem, "no space");
  };
  GzipStream gzip(full);
  ASSERT_TRUE(gzip.Write("text"));  // still in memory
  const auto finished = gzip.Finish();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().message, "no space");
}

}  // namespace
}  // namespace iket::exporter
