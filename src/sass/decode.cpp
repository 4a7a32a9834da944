#include "sass/decode.h"

#include <fmt/format.h>

#include <array>

#include "sass/decode_table.h"

namespace iket::sass {
namespace {

constexpr uint32_t kOpcodes = 1 << 12;

std::array<const OpcodeRow*, kOpcodes> Index() {
  std::array<const OpcodeRow*, kOpcodes> index{};
  for (const OpcodeRow& row : kOpcodeTable) {
    if (!row.any_form) {
      index[row.opcode] = &row;
      continue;
    }
    for (uint32_t form = 1; form < 8; ++form) index[form << 9 | row.opcode] = &row;
  }
  // Exact rows win.
  for (const OpcodeRow& row : kOpcodeTable) {
    if (!row.any_form) index[row.opcode] = &row;
  }
  return index;
}

class Printer {
 public:
  Printer(const Instruction& word, uint64_t pc) : word_(word), pc_(pc) {}

  std::string Print(const OpcodeRow& row) {
    for (const char* c = row.operands; *c != '\0'; ++c) {
      switch (*c) {
        case '?': {  // the next one only if it is not PT
          ++c;
          const uint32_t at = *c == 'p' || *c == 'P' ? 81 : 84;
          if (Bits(at, 3) != 7) Operand(*c);
          break;
        }
        case '!':  // only if it is not PT, not negated
          ++c;
          if (Bits(87, 4) != 7) Operand(*c);
          break;
        case '@':  // a register only if it is not RZ
          ++c;
          if (Bits(16, *c == 'd' ? 8 : 6) != (*c == 'd' ? 255u : 63u)) Operand(*c);
          break;
        case '&':  // the source predicate of a reducing barrier
          ++c;
          if (Bits(77, 2) == 2) Operand(*c);
          break;
        case '=':  // the register at 32 if it is not RZ
          if (Bits(32, 8) != kRegisterZero) Add(R(32));
          break;
        case ':':  // what an extended form has besides
          ++c;
          Extended(*c);
          break;
        default:
          Operand(*c);
      }
    }
    return text_;
  }

 private:
  uint32_t Bits(uint32_t at, uint32_t width) const { return word_.Bits(at, width); }
  void Add(const std::string& text) {
    if (!text_.empty()) text_ += ", ";
    text_ += text;
  }
  std::string R(uint32_t at) const {
    const uint32_t n = Bits(at, 8);
    return n == kRegisterZero ? "RZ" : fmt::format("R{}", n);
  }
  std::string U(uint32_t at) const {
    const uint32_t n = Bits(at, 6);
    return n == kUniformRegisterZero ? "URZ" : fmt::format("UR{}", n);
  }
  std::string P(uint32_t at, const char* prefix, bool may_negate) const {
    const uint32_t n = Bits(at, 3);
    const char* const sign = may_negate && Bits(at + 3, 1) != 0 ? "!" : "";
    return n == kPredicateTrue ? fmt::format("{}{}T", sign, prefix)
                               : fmt::format("{}{}{}", sign, prefix, n);
  }
  std::string Immediate() const { return fmt::format("{:#x}", Bits(32, 32)); }
  std::string Constant() const { return fmt::format("c[{:#x}][{:#x}]", Bits(54, 5), Bits(38, 16)); }
  std::string At32() const {
    switch (Bits(9, 3)) {
      case 2:
      case 4:
        return Immediate();
      case 3:
      case 5:
        return Constant();
      case 6:
      case 7:
        return U(32);
      default:
        return R(32);
    }
  }
  std::string UniformAt32() const {
    const uint32_t form = Bits(9, 3);
    return form == 2 || form == 4 ? Immediate() : U(32);
  }
  bool Swapped() const {
    const uint32_t form = Bits(9, 3);
    return form == 2 || form == 3 || form == 7;
  }
  std::string Offset(uint32_t at, uint32_t width) const {
    const auto raw = static_cast<int32_t>(Bits(at, width) << (32 - width)) >> (32 - width);
    return raw == 0 ? "" : fmt::format("+{:#x}", raw);
  }
  // [R + UR + offset], with a descriptor or without. `atomic`: bits 71 and 72 say what 76 and 90 do
  // elsewhere.
  std::string Global(uint32_t uniform_at) const {
    const bool uniform = word_.is_uniform_form();
    const bool atomic = uniform_at == 64 && (Bits(71, 1) != 0 || Bits(70, 1) != 0);
    // LDGSTS has another one at 44.
    const std::string offset = Bits(0, 12) == 0xfae ? Offset(32, 12) : Offset(40, 24);
    if (!uniform) return fmt::format("[{}{}]", R(24), offset);
    if (Bits(76, 1) != 0 || atomic)
      return fmt::format("desc[{}][{}{}]", U(uniform_at), R(24), offset);
    if (Bits(24, 8) == kRegisterZero) return fmt::format("[{}{}]", U(uniform_at), offset);
    return fmt::format("[{}+{}{}]", R(24), U(uniform_at), offset);
  }
  std::string Window(uint32_t uniform_at) const {
    if (!word_.is_uniform_form()) return fmt::format("[{}{}]", R(24), Offset(40, 24));
    if (Bits(24, 8) == kRegisterZero) return fmt::format("[{}{}]", U(uniform_at), Offset(40, 24));
    return fmt::format("[{}+{}{}]", R(24), U(uniform_at), Offset(40, 24));
  }

  void Extended(char kind) {
    const bool extended = Bits(74, 1) != 0;
    switch (kind) {
      case 'x':
        if (extended) {
          Add(P(87, "P", true));
          Add(P(77, "P", true));
        }
        return;
      case 'X':
        if (extended) {
          Add(P(87, "UP", true));
          Add(P(77, "UP", true));
        }
        return;
      case 'y':
        if (extended) Add(P(87, "P", true));
        return;
      case 'Y':
        if (extended) Add(P(87, "UP", true));
        return;
      case 'l':
        if (Bits(72, 1) != 0) Add(P(68, "P", true));
        return;
      case 'L':
        if (Bits(72, 1) != 0) Add(P(68, "UP", true));
        return;
      case 'h':  // LEA.HI has a third operand
        if (Bits(80, 1) != 0 && Bits(73, 1) == 0) Add(Swapped() ? At32() : R(64));
        return;
      default:
        if (Bits(80, 1) != 0 && Bits(73, 1) == 0) Add(U(64));
        return;
    }
  }

  void Operand(char kind) {
    switch (kind) {
      case 'd':
        return Add(R(16));
      case 'a':
        return Add(R(24));
      case 'b':
        return Add(R(32));
      case 'c':
        return Add(R(64));
      case 'D':
        return Add(U(16));
      case 'A':
        return Add(U(24));
      case 'V':
        return Add(U(32));
      case 'B':
        return Add(Swapped() ? R(64) : At32());
      case 'C':
        return Add(Swapped() ? At32() : R(64));
      case 'W':  // in form 2 where X is in form 4, and so on
      case 'X':
        return Add(At32());
      case 'Z':  // DADD: a register stands at 64, everything else at 32
        return Add(Bits(9, 3) == 1 ? R(64) : At32());
      case 'E':
        return Add(Bits(9, 3) == 2 ? U(64) : UniformAt32());
      case 'F':
        return Add(Bits(9, 3) == 2 ? UniformAt32() : U(64));
      case 'G':
        return Add(U(64));
      case 'Y':
        return Add(UniformAt32());
      case 'p':
        return Add(P(81, "P", false));
      case 'q':
        return Add(P(84, "P", false));
      case 's':
        return Add(P(87, "P", true));
      case 't':
        return Add(P(77, "P", true));
      case 'l':
        return Add(P(68, Bits(67, 1) != 0 ? "UP" : "P", true));
      case 'P':
        return Add(P(81, "UP", false));
      case 'Q':
        return Add(P(84, "UP", false));
      case 'S':
        return Add(P(87, "UP", true));
      case 'T':
        return Add(P(77, "UP", true));
      case 'L':
        return Add(P(68, "UP", true));
      case 'R':
        return Add("PR");
      case 'U':
        return Add("UPR");
      case 'i':
        return Add(Immediate());
      case 'r':
        return Add(fmt::format("SR_{:#x}", Bits(72, 8)));
      case 'k':
        // An offset of 0 from RZ is shown as RZ.
        return Add((Bits(24, 8) == kRegisterZero && Bits(38, 16) != 0) || Bits(0, 12) == 0xab9
                       ? Constant()
                       : fmt::format("c[{:#x}][{}{}]", Bits(54, 5), R(24),
                                     Bits(38, 16) == 0 ? "" : fmt::format("+{:#x}", Bits(38, 16))));
      case 'K':
        return Add(fmt::format("c[{:#x}][{}{}]", Bits(54, 5), U(24),
                               Bits(38, 16) == 0 ? "" : fmt::format("+{:#x}", Bits(38, 16))));
      case 'n':
        return Add(Global(32));
      case 'N':
        return Add(Global(64));
      case 'w':
        return Add(Window(32));
      case 'v':
        return Add(Window(64));
      case 'g':
        return Add(fmt::format("[{}{}]", R(16), Offset(44, 20)));
      case 'm':
        return Add(fmt::format("[{}]", R(24)));
      case 'u':
        return Add(U(40));
      case '3':
        return Add(fmt::format("[{}{}]", U(24), Offset(40, 24)));
      case '4':
        return Add(fmt::format("[{}]", U(32)));
      case 'o':
        if (Bits(87, 4) != 7) Add(P(87, "P", true));
        if (word_.is_uniform_form()) Add(U(24));
        return;
      case 'e':
        return Add(fmt::format("{:#x}", RelativeTarget(word_, pc_, Generation::kHopper)));
      case '1':
        return Add(fmt::format("B{}", Bits(16, 4)));
      default:
        return Add(fmt::format("B{}", Bits(24, 4)));
    }
  }

  const Instruction& word_;
  uint64_t pc_;
  std::string text_;
};

}  // namespace

std::span<const OpcodeRow> OpcodeTable() { return kOpcodeTable; }

const OpcodeRow* FindOpcode(const Instruction& instruction) {
  static const auto* const kIndex = new std::array<const OpcodeRow*, kOpcodes>(Index());
  return (*kIndex)[instruction.opcode()];
}

std::string Disassemble(const Instruction& instruction, uint64_t pc) {
  const OpcodeRow* const row = FindOpcode(instruction);
  const std::string bits = fmt::format("{:016x}_{:016x}", instruction.high, instruction.low);
  if (row == nullptr) return fmt::format("opcode {:#x} ({})", instruction.opcode(), bits);
  std::string guard;
  if (!instruction.is_unguarded()) {
    const uint32_t n = instruction.guard();
    guard = fmt::format("@{}P{} ", instruction.guard_negated() ? "!" : "",
                        n == kPredicateTrue ? "T" : std::to_string(n));
  }
  const std::string operands = Printer(instruction, pc).Print(*row);
  return guard + row->mnemonic + (operands.empty() ? "" : " " + operands);
}

}  // namespace iket::sass
