#include "export/json_writer.h"

#include <charconv>
#include <cmath>

namespace iket::exporter {
namespace {

template <typename T>
void Append(std::string& text, T number) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
  text.append(digits, static_cast<size_t>(end - digits));
}

// Length of the well-formed UTF-8 sequence at the start of `text` (RFC 3629: no overlong forms, no
// surrogates), or 0.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto tail = [&](size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return tail(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (!tail(1) || !tail(2)) return 0;
    if (lead == 0xe0 && byte(1) < 0xa0) return 0;
    if (lead == 0xed && byte(1) > 0x9f) return 0;
    return 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (lead == 0xf0 && byte(1) < 0x90) return 0;
    if (lead == 0xf4 && byte(1) > 0x8f) return 0;
    return 4;
  }
  return 0;
}

}  // namespace

void JsonWriter::Key(std::string_view key) {
  BeforeValue();
  Quote(key);
  text_ += ':';
  after_key_ = true;
}

void JsonWriter::Value(std::string_view text) {
  BeforeValue();
  Quote(text);
}

void JsonWriter::Value(double number) {
  if (!std::isfinite(number)) return Raw("null");
  BeforeValue();
  Append(text_, number);
}

void JsonWriter::Signed(int64_t number) {
  BeforeValue();
  Append(text_, number);
}

void JsonWriter::Unsigned(uint64_t number) {
  BeforeValue();
  Append(text_, number);
}

void JsonWriter::Quote(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  text_ += '"';
  while (!text.empty()) {
    const auto byte = static_cast<uint8_t>(text.front());
    const size_t character = Utf8Length(text);
    size_t length = 1;
    if (byte == '"' || byte == '\\') {
      text_ += {'\\', text.front()};
    } else if (byte < 0x20 || byte == 0x7f) {
      text_ += "\\u00";
      text_ += {kHex[byte >> 4], kHex[byte & 15]};
    } else if (character != 0) {
      length = character;
      text_ += text.substr(0, length);
    } else {
      text_ += "\xef\xbf\xbd";
    }
    text.remove_prefix(length);
  }
  text_ += '"';
}

}  // namespace iket::exporter
