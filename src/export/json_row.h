// json_row.h: one JSON object of known keys and numbers alone, put together without a search for
// what must be escaped: for the millions of rows of a .trace.json.
//
// Cost: a copy of the keys and the digits; no allocation.
#pragma once

#include <charconv>
#include <concepts>
#include <cstring>
#include <string_view>

namespace iket::exporter {

class JsonRow {
 public:
  // Rows that could be longer must not be written with it.
  static constexpr size_t kMostBytes = 4096;

  void Clear() { at_ = text_; }
  JsonRow& operator<<(std::string_view json) {
    std::memcpy(at_, json.data(), json.size());
    at_ += json.size();
    return *this;
  }
  template <typename T>
    requires std::integral<T>
  JsonRow& operator<<(T number) {
    at_ = std::to_chars(at_, text_ + kMostBytes, number).ptr;
    return *this;
  }
  std::string_view text() const { return {text_, static_cast<size_t>(at_ - text_)}; }

 private:
  char text_[kMostBytes];
  char* at_ = text_;
};

}  // namespace iket::exporter
