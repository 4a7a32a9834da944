// proto_reader.h: reads protobuf wire format that nobody vouches for.
//
// Walks the fields of one message: `while (auto field = reader.Next())`, then ask failed(). Groups,
// which nobody writes any more, fail. No allocation; every access is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace iket::exporter {

struct ProtoField {
  uint32_t number = 0;
  uint64_t value = 0;    // of a varint or a fixed number; 0 for bytes
  UntrustedBytes bytes;  // of text or a nested message
  bool is_bytes = false;
  uint64_t offset = 0;  // of its tag in the message
};

class ProtoReader {
 public:
  explicit ProtoReader(UntrustedBytes message) : message_(message) {}

  std::optional<ProtoField> Next() {
    if (failed_ || offset_ == message_.size()) return std::nullopt;
    failed_ = true;  // until the field turns out to be whole
    ProtoField field;
    field.offset = offset_;
    const auto tag = Varint();
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > kMaxNumber) return std::nullopt;
    field.number = static_cast<uint32_t>(*tag >> 3);
    const bool whole = ReadValue(static_cast<uint32_t>(*tag & 7), field);
    if (!whole) return std::nullopt;
    failed_ = false;
    return field;
  }
  // True once a field was not whole; offset() is then in that field.
  bool failed() const { return failed_; }
  uint64_t offset() const { return offset_; }

 private:
  static constexpr uint64_t kMaxNumber = (uint64_t{1} << 29) - 1;

  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const auto byte = message_.Read<uint8_t>(offset_);
      if (!byte) return std::nullopt;
      ++offset_;
      if (shift == 63 && *byte > 1) return std::nullopt;
      value |= static_cast<uint64_t>(*byte & 0x7f) << shift;
      if (*byte < 0x80) return value;
    }
    return std::nullopt;
  }
  template <typename T>
  bool Fixed(ProtoField& field) {
    const auto value = message_.Read<T>(offset_);
    if (!value) return false;
    field.value = *value;
    offset_ += sizeof(T);
    return true;
  }
  bool ReadValue(uint32_t type, ProtoField& field) {
    switch (type) {
      case 0:
        if (const auto value = Varint()) {
          field.value = *value;
          return true;
        }
        return false;
      case 1:
        return Fixed<uint64_t>(field);
      case 2: {
        const auto length = Varint();
        const auto bytes = length ? message_.Slice(offset_, *length) : std::nullopt;
        if (!bytes) return false;
        field.bytes = *bytes;
        field.is_bytes = true;
        offset_ += *length;
        return true;
      }
      case 5:
        return Fixed<uint32_t>(field);
      default:
        return false;
    }
  }

  UntrustedBytes message_;
  uint64_t offset_ = 0;
  bool failed_ = false;
};

}  // namespace iket::exporter
