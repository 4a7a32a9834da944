// open_tokens.h: the ranges of one warp that tokens opened. Private to the room.
//
// Cost: to open one bit is looked for, to close one the open ones are, newest first.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "trace/model.h"

namespace iket::trace {

class OpenTokens {
 public:
  static constexpr size_t kMost = 1024;  // at once; of more the rest is dropped

  // What the end of a token means.
  struct Closed {
    uint32_t range = kNoRow;  // that it closes
    bool known = false;       // else of a range that was closed before, or dropped
  };

  size_t open() const { return open_.size(); }

  void NextWarp() {
    open_.clear();
    taken_.clear();
    done_.clear();
  }

  // The lowest depth that no open range of this key, a row and a name, has. There are fewer than
  // kMost.
  uint16_t TakeDepth(uint32_t key) {
    Depths& depths = taken_[key];
    size_t word = 0;
    while (depths[word] == ~uint64_t{0}) ++word;
    const int bit = std::countr_one(depths[word]);
    depths[word] |= uint64_t{1} << bit;
    return static_cast<uint16_t>(64 * word + static_cast<size_t>(bit));
  }

  void Open(uint32_t key, uint32_t token, uint32_t range, uint16_t depth) {
    done_.erase(KeyOf(key, token));
    open_.push_back({key, token, range, depth});
  }
  // One more than are kept.
  void Drop(uint32_t key, uint32_t token) { Remember(key, token); }

  Closed Close(uint32_t key, uint32_t token) {
    for (size_t i = open_.size(); i-- > 0;) {
      const Token it = open_[i];
      if (it.key != key || it.token != token) continue;
      open_.erase(open_.begin() + static_cast<ptrdiff_t>(i));
      taken_[key][it.depth / 64] &= ~(uint64_t{1} << it.depth % 64);
      Remember(key, token);
      return {it.range, true};
    }
    return {kNoRow, done_.contains(KeyOf(key, token))};
  }

  // Closes all that are open.
  template <typename End>
  void EndAll(const End& end) {
    for (const Token& it : open_) end(it.range);
    NextWarp();
  }

 private:
  struct Token {
    uint32_t key;
    uint32_t token;
    uint32_t range;
    uint16_t depth;
  };
  using Depths = std::array<uint64_t, kMost / 64>;
  static constexpr size_t kRemembered = 4096;

  static uint64_t KeyOf(uint32_t key, uint32_t token) { return uint64_t{key} << 32 | token; }
  void Remember(uint32_t key, uint32_t token) {
    if (done_.size() == kRemembered) done_.clear();
    done_.insert(KeyOf(key, token));
  }

  std::vector<Token> open_;
  std::unordered_map<StringId, Depths> taken_;
  std::unordered_set<uint64_t> done_;  // closed, or dropped
};

}  // namespace iket::trace
