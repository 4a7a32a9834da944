// bytes.h: reading little-endian data that nobody vouches for.
//
// UntrustedBytes is a view over bytes that came from a file, a cubin or a GPU buffer. Every access
// is checked against the view; an access outside yields nothing and never reads. Views are cheap to
// copy and own nothing: the bytes must outlive them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace iket {

class UntrustedBytes {
 public:
  UntrustedBytes() = default;
  explicit UntrustedBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  UntrustedBytes(const void* data, size_t size)
      : bytes_(static_cast<const std::byte*>(data), size) {}

  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  const std::byte* data() const { return bytes_.data(); }
  std::span<const std::byte> span() const { return bytes_; }

  // True if [offset, offset + length) lies inside; safe for any 64-bit values.
  bool Contains(uint64_t offset, uint64_t length) const {
    return offset <= bytes_.size() && length <= bytes_.size() - offset;
  }

  // The value of T at `offset`, unaligned, or nothing if it would end past the view.
  template <typename T>
    requires std::is_trivially_copyable_v<T>
  std::optional<T> Read(uint64_t offset) const {
    if (!Contains(offset, sizeof(T))) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  // The view [offset, offset + length), or nothing if it is not inside.
  std::optional<UntrustedBytes> Slice(uint64_t offset, uint64_t length) const;

  // The text from `offset` up to the next NUL, which must lie inside the view; nothing otherwise.
  std::optional<std::string_view> CString(uint64_t offset) const;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace iket
