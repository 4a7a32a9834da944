#include "base/bytes.h"

namespace iket {

std::optional<UntrustedBytes> UntrustedBytes::Slice(uint64_t offset, uint64_t length) const {
  if (!Contains(offset, length)) return std::nullopt;
  return UntrustedBytes(bytes_.subspan(offset, length));
}

std::optional<std::string_view> UntrustedBytes::CString(uint64_t offset) const {
  if (offset >= bytes_.size()) return std::nullopt;
  const char* begin = reinterpret_cast<const char*>(bytes_.data()) + offset;
  const void* end = std::memchr(begin, 0, bytes_.size() - offset);
  if (end == nullptr) return std::nullopt;
  return std::string_view(begin, static_cast<const char*>(end) - begin);
}

}  // namespace iket
