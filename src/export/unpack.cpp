#include "export/unpack.h"

#include <libdeflate.h>

#include <algorithm>

namespace iket::exporter {
namespace {

// Of a file that is not compressed.
constexpr size_t kBlockBytes = 4 << 20;
constexpr size_t kFirstCapacity = 5 << 20;
// What deflate can make of a byte.
constexpr uint64_t kMaxInflation = 1032;

}  // namespace

bool IsGzip(std::span<const std::byte> untrusted) {
  return untrusted.size() >= 2 && untrusted[0] == std::byte{0x1f} &&
         untrusted[1] == std::byte{0x8b};
}

Unpacker::Unpacker(std::span<const std::byte> untrusted)
    : file_(untrusted), gzip_(IsGzip(untrusted)) {
  if (gzip_) decompressor_ = libdeflate_alloc_decompressor();
}

Unpacker::~Unpacker() { libdeflate_free_decompressor(decompressor_); }

std::optional<std::span<const std::byte>> Unpacker::Next() {
  if (offset_ == file_.size() || !damage_.empty()) return std::nullopt;
  if (gzip_) return NextMember();
  const auto block = file_.subspan(offset_, std::min(kBlockBytes, file_.size() - offset_));
  offset_ += block.size();
  return block;
}

std::optional<std::span<const std::byte>> Unpacker::NextMember() {
  const auto rest = file_.subspan(offset_);
  if (decompressor_ == nullptr) {
    damage_ = "no memory to unpack it";
    return std::nullopt;
  }
  if (!IsGzip(rest)) {
    damage_ = "bytes that are no gzip member";
    return std::nullopt;
  }
  const uint64_t most = rest.size() * kMaxInflation;
  for (;;) {
    if (capacity_ == 0) {
      capacity_ = std::min<uint64_t>(kFirstCapacity, most);
      block_ = std::make_unique_for_overwrite<std::byte[]>(capacity_);
    }
    size_t used = 0;
    size_t made = 0;
    switch (libdeflate_gzip_decompress_ex(decompressor_, rest.data(), rest.size(), block_.get(),
                                          capacity_, &used, &made)) {
      case LIBDEFLATE_SUCCESS:
        offset_ += used;
        return std::span<const std::byte>(block_.get(), made);
      case LIBDEFLATE_INSUFFICIENT_SPACE:
        if (capacity_ < most) {
          capacity_ = std::min<uint64_t>(capacity_ * 2, most);
          block_ = std::make_unique_for_overwrite<std::byte[]>(capacity_);
          continue;
        }
        [[fallthrough]];
      default:
        damage_ = "a gzip member that is damaged or cut";
        return std::nullopt;
    }
  }
}

}  // namespace iket::exporter
