#include "cubin/decompress.h"

#include <lz4.h>
#include <zstd.h>

#include <limits>

namespace iket::cubin {

Result<std::vector<std::byte>> DecompressZstd(UntrustedBytes compressed, uint64_t size) {
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
