#include "cubin/decompress.h"

#include <lz4.h>
#include <zstd.h>

#include <array>
#include <limits>
#include <memory>

namespace iket::cubin {
namespace {

// Code expands less. What expands more (a table of zeros, or a lie) is decompressed piece by piece
// before memory is made for it: zeroing some MiB for each of a file's lies takes minutes.
constexpr uint64_t kUsualExpansion = 256;

// True if the data expands to exactly `size` bytes.
bool ZstdFills(UntrustedBytes compressed, uint64_t size) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  // What this makes for the window of a frame is not touched before there is data for it.
  constexpr int kWindowLog = 30;  // of kMaxUncompressed
  if (context == nullptr ||
      ZSTD_isError(ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kWindowLog)) != 0) {
    return false;
  }
  std::array<std::byte, size_t{64} << 10> piece;
  ZSTD_inBuffer in{compressed.data(), compressed.size(), 0};
  uint64_t written = 0;
  size_t left = 1;  // of the frame: 0 at its end
  for (bool full = false; (in.pos < in.size || (full && left != 0)) && written <= size;) {
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left) != 0) return false;
    written += out.pos;
    full = out.pos == out.size;
  }
  return left == 0 && written == size;
}

}  // namespace

Result<std::vector<std::byte>> DecompressZstd(UntrustedBytes compressed, uint64_t size) {
  if (size / kUsualExpansion > compressed.size() && !ZstdFills(compressed, size)) {
    return Fail(ErrorKind::kBadInput, "{} bytes are not zstd data of {} bytes", compressed.size(),
                size);
  }
  std::vector<std::byte> out(size);
  const size_t written =
      ZSTD_decompress(out.data(), out.size(), compressed.data(), compressed.size());
  if (ZSTD_isError(written) != 0) {
    return Fail(ErrorKind::kBadInput, "{} bytes are not zstd data of {} bytes: {}",
                compressed.size(), size, ZSTD_getErrorName(written));
  }
  if (written != size) {
    return Fail(ErrorKind::kBadInput, "zstd data holds {} bytes, {} were announced", written, size);
  }
  return out;
}

Result<std::vector<std::byte>> DecompressLz4(UntrustedBytes compressed, uint64_t size) {
  constexpr uint64_t kMost = std::numeric_limits<int>::max();
  // A block cannot expand more: each byte of a length adds at most 255.
  constexpr uint64_t kExpansion = 255;
  if (size > kMost || compressed.size() > kMost || size / kExpansion > compressed.size()) {
    return Fail(ErrorKind::kBadInput, "{} bytes cannot be LZ4 data of {} bytes", compressed.size(),
                size);
  }
  std::vector<std::byte> out(size);
  const int written = LZ4_decompress_safe(
      reinterpret_cast<const char*>(compressed.data()), reinterpret_cast<char*>(out.data()),
      static_cast<int>(compressed.size()), static_cast<int>(size));
  if (written < 0 || static_cast<uint64_t>(written) != size) {
    return Fail(ErrorKind::kBadInput, "{} bytes are not LZ4 data of {} bytes", compressed.size(),
                size);
  }
  return out;
}

}  // namespace iket::cubin
