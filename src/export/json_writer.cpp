#include "export/json_writer.h"

#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace iket::exporter {
namespace {

template <typename T>
void Append(std::string& text, T number) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
  text.append(digits, static_cast<size_t>(end - digits));
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
