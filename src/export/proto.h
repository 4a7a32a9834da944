// proto.h: writes protobuf wire format into a growing buffer.
//
// Only what the Perfetto writer needs: varints, fixed64, doubles, text and nested messages. Fields
// come out in the order of the calls. A nested message is written in place and its length patched
// in when it closes, so nothing is encoded twice; lengths are always of minimal size. A buffer
// never fails: when memory is gone the process ends, as with std::string.
//
// Cost: one capacity check a field through the class; the loop that writes events asks for room
// once an event and uses the free functions below (`PutVarint` and friends).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace iket::exporter {

enum class WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2 };

inline constexpr size_t kMaxVarintBytes = 10;

constexpr uint32_t WireTag(uint32_t field, WireType type) {
  return field << 3 | static_cast<uint32_t>(type);
}

// Writes `value` at `out`, which must have kMaxVarintBytes of room; returns the end.
inline uint8_t* PutVarint(uint8_t* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<uint8_t>(value);
  return out;
}

// Field number and value; room for 5 + kMaxVarintBytes. Negative numbers of int32/int64 fields are
// passed as their 64-bit two's complement, as protobuf wants them.
inline uint8_t* PutVarintField(uint8_t* out, uint32_t field, uint64_t value) {
  return PutVarint(PutVarint(out, WireTag(field, WireType::kVarint)), value);
}

inline uint8_t* PutFixed64Field(uint8_t* out, uint32_t field, uint64_t value) {
  out = PutVarint(out, WireTag(field, WireType::kFixed64));
  std::memcpy(out, &value, sizeof(value));  // little-endian hosts only, as is CUDA
  return out + sizeof(value);
}

inline uint8_t* PutDoubleField(uint8_t* out, uint32_t field, double value) {
  return PutFixed64Field(out, field, std::bit_cast<uint64_t>(value));
}

class ProtoWriter {
 public:
  // Closes its message when it goes out of scope; scopes must nest.
  class Scope {
   public:
    Scope(ProtoWriter& writer, uint32_t field) : writer_(writer), start_(writer.Open(field)) {}
    ~Scope() { writer_.Close(start_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ProtoWriter& writer_;
    size_t start_;
  };

  // Opens the nested message `field`. Use as `auto packet = writer.Message(1);`.
  [[nodiscard]] Scope Message(uint32_t field) { return Scope(*this, field); }

  void Varint(uint32_t field, uint64_t value) {
    Commit(PutVarintField(Reserve(5 + kMaxVarintBytes), field, value));
  }
  void Fixed64(uint32_t field, uint64_t value) {
    Commit(PutFixed64Field(Reserve(5 + sizeof(value)), field, value));
  }
  void Double(uint32_t field, double value) {
    Commit(PutDoubleField(Reserve(5 + sizeof(value)), field, value));
  }
  void Text(uint32_t field, std::string_view text) {
    uint8_t* out = Reserve(5 + kMaxVarintBytes + text.size());
    out = PutVarint(out, WireTag(field, WireType::kLength));
    out = PutVarint(out, text.size());
    if (!text.empty()) std::memcpy(out, text.data(), text.size());
    Commit(out + text.size());
  }

  // Room for `bytes` more; write there, then say with Commit() where the writing ended.
  uint8_t* Reserve(size_t bytes) {
    if (capacity_ - size_ < bytes) Grow(bytes);
    return data_.get() + size_;
  }
  void Commit(const uint8_t* end) { size_ = static_cast<size_t>(end - data_.get()); }

  std::string_view bytes() const { return {reinterpret_cast<const char*>(data_.get()), size_}; }
  size_t size() const { return size_; }
  void Clear() { size_ = 0; }

 private:
  size_t Open(uint32_t field) {
    uint8_t* out = PutVarint(Reserve(6), WireTag(field, WireType::kLength));
    Commit(out + 1);  // one byte of length, which fits nearly every message
    return size_;
  }
  void Close(size_t start) {
    const size_t length = size_ - start;
    uint8_t prefix[kMaxVarintBytes];
    const size_t prefix_bytes = static_cast<size_t>(PutVarint(prefix, length) - prefix);
    if (prefix_bytes > 1) {
      Reserve(prefix_bytes);
      std::memmove(data_.get() + start + prefix_bytes - 1, data_.get() + start, length);
      size_ += prefix_bytes - 1;
    }
    std::memcpy(data_.get() + start - 1, prefix, prefix_bytes);
  }
  void Grow(size_t bytes) {
    const size_t wanted = size_ + bytes;
    capacity_ = wanted < 4096 ? 4096 : wanted + wanted / 2;
    auto grown = std::make_unique_for_overwrite<uint8_t[]>(capacity_);
    if (size_ != 0) std::memcpy(grown.get(), data_.get(), size_);
    data_ = std::move(grown);
  }

  std::unique_ptr<uint8_t[]> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace iket::exporter
