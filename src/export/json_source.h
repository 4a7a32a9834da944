// json_source.h: a document that comes block by block as what nlohmann's parser reads. Private to
// the checks of this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <span>

namespace iket::exporter {

using NextBlock = std::function<std::optional<std::span<const std::byte>>()>;

// The document's bytes one after the other, for the parser.
class JsonSource {
 public:
  explicit JsonSource(const NextBlock& next) : next_(next) { Refill(); }

  bool AtEnd() const { return at_ == block_.size(); }
  char Now() const { return static_cast<char>(block_[at_]); }
  void Step() {
    if (++at_ == block_.size()) Refill();
  }
  uint64_t offset() const { return base_ + at_; }

 private:
  void Refill() {
    do {
      base_ += block_.size();
      at_ = 0;
      const auto block = next_();
      if (!block) {
        block_ = {};
        return;
      }
      block_ = *block;
    } while (block_.empty());
  }

  const NextBlock& next_;
  std::span<const std::byte> block_;
  size_t at_ = 0;
  uint64_t base_ = 0;
};

class JsonIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit JsonIterator(JsonSource* source) : source_(source) {}
  char operator*() const { return source_->Now(); }
  JsonIterator& operator++() {
    source_->Step();
    return *this;
  }
  // Only ever compared with the end, which has no source.
  bool operator==(const JsonIterator& other) const {
    const JsonSource* source = source_ != nullptr ? source_ : other.source_;
    return source == nullptr || source->AtEnd();
  }

 private:
  JsonSource* source_;
};

}  // namespace iket::exporter
