#include "sass/known_bits.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "sass/decode.h"

namespace iket::sass {
namespace {

// What a field that names nothing holds: no register, a carry that is not there, no predicate.
constexpr uint32_t kNoCarry = 15, kNoPredicate = 7;

class Fields {
 public:
  explicit Fields(const Instruction& word) : word_(word), form_(word.Bits(9, 3)) {
    Add(0, 16);                   // opcode, form, guard
    Add(kControlShift + 64, 21);  // control, reuse
  }
  Instruction Unknown() const {
    return {(word_.low & ~known_.low & ~required_.low) | ((word_.low ^ value_.low) & required_.low),
            (word_.high & ~known_.high & ~required_.high) |
                ((word_.high ^ value_.high) & required_.high)};
  }

  void Operands(const OpcodeRow& row) {
    if (row.any_form) Form(row.operands);
    for (const char* c = row.operands; *c != '\0'; ++c) {
      switch (*c) {
        case '?':
        case '!':
        case '@':
          break;
        case '&':
          ++c;
          if (Bits(77, 2) == 2) Add(87, 4);
          break;
        case '=':
          Add(32, 8);
          break;
        case ':':
          ++c;
          Extended(*c);
          break;
        default:
          Operand(*c);
      }
    }
  }

  // See decode.h for the notation. `fields`: where to put what is listed, or null.
  void Modifiers(std::string_view text, std::vector<BitField>* fields) {
    while (!text.empty()) {
      const size_t end = std::min(text.find(' '), text.size());
      std::string_view token = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      const bool has_effect = !token.starts_with('(');
      if (!has_effect) token = token.substr(1, token.size() - 2);
      if (token.starts_with('-') || token.starts_with('|')) {
        Sign(token[1], token[0] == '-');
        continue;
      }
      if (token.starts_with("91:")) {
        if (!word_.is_uniform_form()) continue;
        token.remove_prefix(3);
      } else if (token.starts_with("X:")) {
        if (IsImmediate()) continue;
        token.remove_prefix(2);
      }
      const uint32_t first = Number(token);
      uint32_t last = first;
      if (token.starts_with('-')) {
        token.remove_prefix(1);
        last = Number(token);
      }
      if (token.starts_with('=')) {
        token.remove_prefix(1);
        Require(first, last - first + 1, Number(token));
      } else {
        Add(first, last - first + 1);
        if (fields != nullptr) fields->push_back({first, last - first + 1, has_effect});
      }
    }
  }

 private:
  // Which forms there are, the letter of the operand at bit 32 says.
  void Form(std::string_view operands) {
    constexpr uint32_t kSecond = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 6;
    constexpr uint32_t kThird = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 7;
    uint32_t forms = kSecond | kThird;
    const auto has = [&](char letter) { return operands.find(letter) != std::string_view::npos; };
    if (has('X')) forms = kSecond;
    if (has('W') || has('Z')) forms = kThird;
    if (has('Y')) forms = 1 << 1 | 1 << 4 | 1 << 6;
    if (has('E')) forms = 1 << 1 | 1 << 2 | 1 << 4;  // whose ":Y" is a carry
    if ((forms >> form_ & 1) == 0) Require(9, 3, ~form_);
    // Only these two forms take a uniform register; in those of constants it would be their bank.
    if (form_ >= 6) Require(91, 1, 1);
  }
  uint32_t Bits(uint32_t at, uint32_t width) const { return word_.Bits(at, width); }
  bool IsImmediate() const { return form_ == 2 || form_ == 4; }
  bool IsSwapped() const { return form_ == 2 || form_ == 3 || form_ == 7; }

  // Fields may lie across the halves.
  static void Set(Instruction& bits, uint32_t at, uint32_t width, uint64_t value) {
    const unsigned __int128 placed =
        static_cast<unsigned __int128>(value &
                                       (width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1))
        << at;
    bits.low |= static_cast<uint64_t>(placed);
    bits.high |= static_cast<uint64_t>(placed >> 64);
  }
  void Add(uint32_t at, uint32_t width) { Set(known_, at, width, ~uint64_t{0}); }
  void Require(uint32_t at, uint32_t width, uint32_t value) {
    Set(required_, at, width, ~uint64_t{0});
    Set(value_, at, width, value);
  }
  static uint32_t Number(std::string_view& text) {
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return value;
  }

  // Where the operand of a letter begins: at 32, or at 64.
  uint32_t Place(char operand) const {
    switch (operand) {
      case 'B':
        return IsSwapped() ? 64 : 32;
      case 'C':
        return IsSwapped() ? 32 : 64;
      case 'E':
        return form_ == 2 ? 64 : 32;
      case 'F':
        return form_ == 2 ? 32 : 64;
      case 'Z':
        return form_ == 1 ? 64 : 32;
      case 'c':
      case 'G':
        return 64;
      default:
        return 32;
    }
  }
  // An operand whose kind the form tells.
  void ByForm(uint32_t place, bool uniform) {
    if (place == 64) return Add(64, uniform ? 6 : 8);
    if (IsImmediate()) return Add(32, 32);
    if (uniform || form_ >= 6) return Add(32, 6);
    if (form_ == 3 || form_ == 5) return Add(38, 21);
    Add(32, 8);
  }
  // "-x" stands at 72, 63 or 75, "|x|" one bit above or below; immediates have none.
  void Sign(char operand, bool negation) {
    if (operand == 'a' || operand == 'A') return Add(negation ? 72 : 73, 1);
    if (Place(operand) == 64) return Add(negation ? 75 : 74, 1);
    if (!IsImmediate()) Add(negation ? 63 : 62, 1);
  }

  void Extended(char kind) {
    const bool extended = Bits(74, 1) != 0;
    switch (kind) {
      case 'x':
      case 'X':
        if (extended) {
          Add(77, 4);
          Add(87, 4);
        } else {
          Require(77, 4, kNoCarry);
          Require(87, 4, kNoCarry);
        }
        return;
      case 'y':
      case 'Y':
        return extended ? Add(87, 4) : Require(87, 4, kNoCarry);
      case 'l':
      case 'L':
        return Bits(72, 1) != 0 ? Add(68, 4) : Require(68, 4, kNoPredicate);
      default: {  // h, H
        const bool uniform = kind == 'H';
        if (Bits(80, 1) != 0 && Bits(73, 1) == 0) {
          ByForm(uniform ? Place('F') : Place('C'), uniform);
        } else {
          Require(64, 8, uniform ? kUniformRegisterZero : kRegisterZero);
        }
        return;
      }
    }
  }

  // An address: registers, an offset, and with bit 91 a uniform register at `uniform_at`.
  void Address(uint32_t uniform_at) {
    Add(24, 8);
    Add(40, 24);
    Add(91, 1);
    if (word_.is_uniform_form()) Add(uniform_at, 6);
  }
  void Operand(char kind) {
    switch (kind) {
      case 'd':
        return Add(16, 8);
      case 'a':
      case 'm':
        return Add(24, 8);
      case 'b':
        return Add(32, 8);
      case 'c':
        return Add(64, 8);
      case 'D':
        return Add(16, 6);
      case 'A':
        return Add(24, 6);
      case 'V':
      case '4':
        return Add(32, 6);
      case 'u':
        return Add(40, 6);
      case 'B':
      case 'C':
      case 'W':
      case 'X':
      case 'Z':
        return ByForm(Place(kind), false);
      case 'E':
      case 'F':
      case 'G':
      case 'Y':
        return ByForm(Place(kind), true);
      case 'p':
      case 'P':
        return Add(81, 3);
      case 'q':
      case 'Q':
        return Add(84, 3);
      case 's':
      case 'S':
        return Add(87, 4);
      case 't':
      case 'T':
        return Add(77, 4);
      case 'l':
        return Add(67, 5);
      case 'L':
        return Add(68, 4);
      case 'i':
        return Add(32, 32);
      case 'r':
        return Add(72, 8);
      case 'k':
        Add(24, 8);
        return Add(38, 21);
      case 'K':
        Add(24, 6);
        return Add(38, 21);
      case 'n':
      case 'w':
        return Address(32);
      case 'N':
      case 'v':
        return Address(64);
      case 'g':
        Add(16, 8);
        return Add(44, 20);
      case '3':
        Add(24, 6);
        return Add(40, 24);
      case 'o':
        Add(87, 4);
        Add(91, 1);
        if (word_.is_uniform_form()) Add(24, 6);
        return;
      case 'e':
        if (word_.base_opcode() == 0x145) return Add(32, 32);  // BSSY
        Add(16, 8);
        return Add(34, 48);
      case '1':
        return Add(16, 4);
      case '2':
        return Add(24, 4);
      default:  // R, U: all predicates, and nowhere
        return;
    }
  }

  const Instruction& word_;
  uint32_t form_;
  Instruction known_, required_, value_;
};

}  // namespace

Instruction UnknownBits(const Instruction& word) {
  const OpcodeRow* const row = FindOpcode(word);
  if (row == nullptr) return {~uint64_t{0}, ~uint64_t{0}};
  Fields fields(word);
  fields.Operands(*row);
  fields.Modifiers(row->modifiers, nullptr);
  return fields.Unknown();
}

std::vector<BitField> ModifierFields(const Instruction& word) {
  std::vector<BitField> listed;
  const OpcodeRow* const row = FindOpcode(word);
  if (row != nullptr) Fields(word).Modifiers(row->modifiers, &listed);
  return listed;
}

}  // namespace iket::sass
