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

constexpr auto kValues = [] {
  std::array<uint8_t, 256> values{};
  values.fill(0xff);
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<uint8_t>(kDigits[i])] = static_cast<uint8_t>(i);
  }
  return values;
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

tl::expected<std::string, size_t> DecodeBase64(std::string_view untrusted) {
  const std::string_view digits =
      untrusted.substr(0, untrusted.size() - (untrusted.ends_with("==")  ? 2
                                              : untrusted.ends_with('=') ? 1
                                                                         : 0));
  std::string bytes;
  bytes.reserve(digits.size() / 4 * 3 + 2);
  uint32_t word = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    const uint8_t value = kValues[static_cast<uint8_t>(digits[i])];
    if (value == 0xff) return tl::unexpected(i);
    word = word << 6 | value;
    // Of every four digits the second, third and fourth end a byte.
    if (const size_t place = i % 4; place != 0) bytes += static_cast<char>(word >> (6 - 2 * place));
  }
  const size_t rest = digits.size() % 4;
  // Bits behind the last byte are zero, and there is as much padding as there must be.
  const uint32_t unused = rest == 2 ? word & 15 : rest == 3 ? word & 3 : 0;
  if (untrusted.size() % 4 != 0 || rest == 1 || unused != 0 ||
      untrusted.size() - digits.size() != (4 - rest) % 4) {
    return tl::unexpected(digits.size());
  }
  return bytes;
}

}  // namespace iket::exporter
