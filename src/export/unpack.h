// unpack.h: the bytes of a file, through gzip or as they are, block by block.
//
// A gzip file of any number of members gives a block a member. Cost: the memory of the largest
// member, which deflate bounds by 1032 times the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct libdeflate_decompressor;

namespace iket::exporter {

bool IsGzip(std::span<const std::byte> untrusted);

class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> untrusted);
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  ~Unpacker();

  // The next block, valid until the next call; nothing at the end or at damage.
  std::optional<std::span<const std::byte>> Next();

  // What is damaged, and up to where the file could be read; empty while nothing is.
  const std::string& damage() const { return damage_; }
  uint64_t damage_offset() const { return damage_offset_; }
  // How much of the file was given out.
  uint64_t file_offset() const { return offset_; }

 private:
  std::optional<std::span<const std::byte>> NextMember();
  void Damaged(uint64_t offset, std::string text);
  // In the member at hand: libdeflate does not say where, zlib does.
  void FindDamage();

  std::span<const std::byte> file_;
  bool gzip_;
  uint64_t offset_ = 0;
  libdeflate_decompressor* decompressor_ = nullptr;
  std::unique_ptr<std::byte[]> block_;
  size_t capacity_ = 0;
  std::string damage_;
  uint64_t damage_offset_ = 0;
};

}  // namespace iket::exporter
