#include "sim/bind.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "sass/decode.h"
#include "sass/known_bits.h"
#include "sim/warp.h"

namespace iket::sim {
namespace {

void Unsupported(Warp& warp, const Op& op) {
  warp.Raise(Fault::Kind::kUnsupported, warp.FirstLane(), 0,
             fmt::format("{} ({:016x}_{:016x}) is not an instruction that it executes",
                         sass::Disassemble(op.word), op.word.high, op.word.low));
}

// The handlers for this host. IKET_SIM_BASELINE=1 takes those for any host: both must compute the
// same bits, and a test compares.
decltype(&baseline::BindAny) Binder() {
#if defined(IKET_SIM_HASWELL)
  const char* const wish = std::getenv("IKET_SIM_BASELINE");
  if ((wish == nullptr || std::string_view(wish) != "1") && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
    return haswell::BindAny;
  }
#endif
  return baseline::BindAny;
}

Operand Register(uint32_t number) { return {.row = SourceRow(number)}; }

// The operand at bits 32 and up, as the form says.
Operand Second(const sass::Instruction& word, uint32_t form, bool uniform_alu) {
  switch (form) {
    case 1:
      if (uniform_alu) {
        return {.kind = Operand::Kind::kUniform, .row = static_cast<uint16_t>(word.Bits(32, 6))};
      }
      return Register(word.Bits(32, 8));
    case 2:
    case 4:
      return {.kind = Operand::Kind::kImmediate, .value = word.Bits(32, 32)};
    case 3:
    case 5:
      return {.kind = Operand::Kind::kConstant,
              .bank = static_cast<uint8_t>(word.Bits(54, 5)),
              .indexed = word.is_uniform_form(),
              .value = word.Bits(38, 16)};
    default:
      return {.kind = Operand::Kind::kUniform, .row = static_cast<uint16_t>(word.Bits(32, 6))};
  }
}

}  // namespace

bool BindAlu(Op& op) {
  const sass::Instruction& word = op.word;
  const uint32_t form = word.Bits(9, 3);
  op.d = TargetRow(word.Bits(16, 8));
  op.a = SourceRow(word.Bits(24, 8));
  const Operand second = Second(word, form, false);
  const Operand third = Register(word.Bits(64, 8));
  switch (form) {
    case 1:
    case 4:
    case 5:
    case 6:
      op.b = second;
      op.c = third;
      break;
    case 2:
    case 3:
    case 7:
      op.b = third;
      op.c = second;
      break;
    default:
      return false;
  }
  return !second.indexed;
}

bool BindUniformAlu(Op& op) {
  const sass::Instruction& word = op.word;
  const uint32_t form = word.Bits(9, 3);
  op.guard_uniform = true;
  op.d = static_cast<uint16_t>(word.Bits(16, 6));
  op.a = static_cast<uint16_t>(word.Bits(24, 6));
  op.b = Second(word, form, true);
  op.c = {.kind = Operand::Kind::kUniform, .row = static_cast<uint16_t>(word.Bits(64, 6))};
  if (form == 2) std::swap(op.b, op.c);
  return form == 1 || form == 2 || form == 4;
}

Op BindInstruction(const sass::Instruction& word, uint32_t index) {
  Op op;
  op.word = word;
  op.guard = word.guard();
  op.guard_negated = word.guard_negated();
  const sass::Control control = word.control();
  op.stall = control.stall == 0 ? 1 : control.stall;
  op.wait = control.wait;
  op.write_barrier = control.write_barrier;
  op.read_barrier = control.read_barrier;
  // Handlers look at the modifiers of their row alone: no bit beside them may say something.
  const bool whole = sass::UnknownBits(word) == sass::Instruction{};
  static const auto kBindAny = Binder();
  if (!kBindAny(op, index) || !whole || op.run == nullptr) {
    op.run = Unsupported;
    op.guard_uniform = false;
  }
  return op;
}

bool Executes(const Op& op) { return op.run != Unsupported; }

}  // namespace iket::sim
