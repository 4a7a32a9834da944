#include "export/unpack.h"

#include <fmt/format.h>
#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

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
    Damaged(offset_, "no memory to unpack it");
    return std::nullopt;
  }
  if (!IsGzip(rest)) {
    Damaged(offset_, "bytes that are no gzip member");
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
        FindDamage();
        return std::nullopt;
    }
  }
}

void Unpacker::Damaged(uint64_t offset, std::string text) {
  damage_offset_ = offset;
  damage_ = std::move(text);
}

void Unpacker::FindDamage() {
  constexpr int kGzipAlone = 15 + 16;
  z_stream stream{};
  if (inflateInit2(&stream, kGzipAlone) != Z_OK) {
    return Damaged(offset_, "a gzip member that is damaged or cut");
  }
  std::array<Bytef, 1 << 16> discarded;
  std::span<const std::byte> rest = file_.subspan(offset_);
  int result = Z_OK;
  while (result == Z_OK) {
    if (stream.avail_in == 0 && !rest.empty()) {
      const auto piece =
          rest.first(std::min<size_t>(rest.size(), std::numeric_limits<uInt>::max()));
      // zlib's interface is older than const.
      stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(piece.data()));
      stream.avail_in = static_cast<uInt>(piece.size());
      rest = rest.subspan(piece.size());
    }
    stream.next_out = discarded.data();
    stream.avail_out = static_cast<uInt>(discarded.size());
    result = inflate(&stream, Z_NO_FLUSH);
  }
  const uint64_t at = file_.size() - rest.size() - stream.avail_in;
  if (result == Z_BUF_ERROR) {  // it wants more, and there is none
    Damaged(at, fmt::format("cut: the gzip member that begins at byte {} does not end", offset_));
  } else {
    Damaged(at, fmt::format("damaged: {}, in the gzip member that begins at byte {}",
                            stream.msg != nullptr ? stream.msg : "not to be unpacked", offset_));
  }
  inflateEnd(&stream);
}

}  // namespace iket::exporter
