// strings.h: gives equal strings equal ids while a Model is made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace iket::trace {

class StringInterner {
 public:
  // Appends to `strings` (Model::strings), whose first entry is "".
  explicit StringInterner(std::vector<std::string>& strings) : strings_(strings) {}

  uint32_t Intern(std::string_view text) {
    if (text.empty()) return 0;
    auto [entry, is_new] =
        ids_.try_emplace(std::string(text), static_cast<uint32_t>(strings_.size()));
    if (is_new) strings_.emplace_back(text);
    return entry->second;
  }

 private:
  std::vector<std::string>& strings_;
  std::unordered_map<std::string, uint32_t> ids_;
};

}  // namespace iket::trace
