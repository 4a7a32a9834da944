// open_tokens.h: the ranges of one warp that tokens opened. Private to the room.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "trace/model.h"

namespace iket::trace {

class OpenTokens {
 public:
  struct Found {
    uint32_t range = kNoRow;
    bool again = false;  // other lanes closed it before
  };

  size_t open() const { return open_.size(); }

  void NextWarp() {
    open_.clear();
    closed_count_ = 0;
  }

  // The lowest depth that no open range of this name has.
  uint16_t FreeDepth(StringId name) const {
    uint16_t depth = 0;
    while (std::ranges::any_of(
        open_, [&](const Token& it) { return it.name == name && it.depth == depth; })) {
      ++depth;
    }
    return depth;
  }

  void Open(StringId name, uint32_t token, uint32_t range, uint16_t depth) {
    open_.push_back({name, token, range, depth});
  }

  // The range that this token opened last: an open one, or one of those that were closed last and
  // whose place no other has taken since.
  Found Close(StringId name, uint32_t token) {
    for (size_t i = open_.size(); i-- > 0;) {
      const Token it = open_[i];
      if (it.name != name || it.token != token) continue;
      open_.erase(open_.begin() + static_cast<ptrdiff_t>(i));
      closed_[closed_count_++ % kRemembered] = it;
      return {it.range, false};
    }
    for (size_t i = 0; i < std::min(closed_count_, kRemembered); ++i) {
      const Token& it = closed_[i];
      if (it.name != name || it.token != token || IsTaken(it)) continue;
      return {it.range, true};
    }
    return {};
  }

  // Closes all that are open.
  template <typename End>
  void EndAll(const End& end) {
    for (const Token& it : open_) end(it.range);
    open_.clear();
    closed_count_ = 0;
  }

 private:
  struct Token {
    StringId name;
    uint32_t token;
    uint32_t range;
    uint16_t depth;
  };
  static constexpr size_t kRemembered = 16;

  // Drawn longer it would overlap another range of its name and depth.
  bool IsTaken(const Token& token) const {
    const auto is_later = [&](const Token& it) {
      return it.name == token.name && it.depth == token.depth && it.range > token.range;
    };
    return std::ranges::any_of(open_, is_later) ||
           std::any_of(
               closed_.begin(),
               closed_.begin() + static_cast<ptrdiff_t>(std::min(closed_count_, kRemembered)),
               is_later);
  }

  std::vector<Token> open_;
  std::array<Token, kRemembered> closed_ = {};  // the last ones, in a circle
  size_t closed_count_ = 0;
};

}  // namespace iket::trace
