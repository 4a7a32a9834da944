// json_writer.h: writes JSON text, escaped and with commas where they belong.
//
// Scopes close with their C++ scope. Text that is not UTF-8 (names come from untrusted files) has
// its bad bytes replaced by U+FFFD, so the output always parses. Numbers that JSON cannot say
// (infinity, NaN) become null. Integers are written in full; readers that use doubles lose bits
// above 2^53.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace iket::exporter {

class JsonWriter {
 public:
  class Scope {
   public:
    Scope(JsonWriter& writer, char open, char close) : writer_(writer), close_(close) {
      writer_.BeforeValue();
      writer_.text_ += open;
      writer_.first_ = true;
    }
    ~Scope() {
      writer_.text_ += close_;
      writer_.first_ = false;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    JsonWriter& writer_;
    char close_;
  };

  [[nodiscard]] Scope Object() { return Scope(*this, '{', '}'); }
  [[nodiscard]] Scope Array() { return Scope(*this, '[', ']'); }
  [[nodiscard]] Scope Object(std::string_view key) { return Key(key), Object(); }
  [[nodiscard]] Scope Array(std::string_view key) { return Key(key), Array(); }

  void Key(std::string_view key);

  void Value(std::string_view text);
  void Value(const char* text) { Value(std::string_view(text)); }
  void Value(const std::string& text) { Value(std::string_view(text)); }
  void Value(double number);
  void Value(std::nullptr_t) { Raw("null"); }
  template <typename T>
    requires std::integral<T>
  void Value(T number) {
    if constexpr (std::same_as<T, bool>) {
      Raw(number ? "true" : "false");
    } else if constexpr (std::signed_integral<T>) {
      Signed(number);
    } else {
      Unsigned(number);
    }
  }
  template <typename T>
  void Value(const std::optional<T>& value) {
    if (value) {
      Value(*value);
    } else {
      Value(nullptr);
    }
  }

  template <typename T>
  void Member(std::string_view key, const T& value) {
    Key(key);
    Value(value);
  }

  // A value that is JSON already, for whoever writes many of one form.
  void Written(std::string_view json) { Raw(json); }

  const std::string& text() const { return text_; }
  // What was written since the last Take, for a sink: the document goes on.
  std::string Take() { return std::exchange(text_, {}); }

 private:
  void BeforeValue() {
    if (!first_ && !after_key_) text_ += ',';
    first_ = false;
    after_key_ = false;
  }
  void Raw(std::string_view text) {
    BeforeValue();
    text_ += text;
  }
  void Signed(int64_t number);
  void Unsigned(uint64_t number);
  void Quote(std::string_view text);

  std::string text_;
  bool first_ = true;
  bool after_key_ = false;
};

}  // namespace iket::exporter
