#include "export/base64.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace iket::exporter {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Two digits for each value of twelve bits.
constexpr auto kPairs = [] {
  std::array<char, 2 * 4096> pairs{};
  for (size_t i = 0; i < 4096; ++i) {
    pairs[2 * i] = kDigits[i >> 6];
    pairs[2 * i + 1] = kDigits[i & 63];
  }
  return pairs;
}();

}  // namespace

void AppendBase64(std::string_view bytes, std::string& out) {
  const size_t at = out.size();
  out.resize(at + (bytes.size() + 2) / 3 * 4);
  char* to = out.data() + at;
  size_t i = 0;
  const auto byte = [&](size_t index) { return uint32_t{static_cast<uint8_t>(bytes[index])}; };
  for (; i + 3 <= bytes.size(); i += 3, to += 4) {
    const uint32_t word = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    std::memcpy(to, &kPairs[2 * (word >> 12)], 2);
    std::memcpy(to + 2, &kPairs[2 * (word & 4095)], 2);
  }
  if (i == bytes.size()) return;
  const bool two = i + 2 == bytes.size();
  const uint32_t word = byte(i) << 16 | (two ? byte(i + 1) << 8 : 0);
  std::memcpy(to, &kPairs[2 * (word >> 12)], 2);
  to[2] = two ? kDigits[word >> 6 & 63] : '=';
  to[3] = '=';
}

}  // namespace iket::exporter
