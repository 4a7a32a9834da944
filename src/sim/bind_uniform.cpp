// Uniform moves and selections; the arithmetic of the uniform data path stands beside that of the
// lanes.
#include "sim/bind.h"
#include "sim/lanes.h"

namespace iket::sim {
namespace {

void Umov(Warp& warp, const Op& op) { warp.WriteUniform(op.d, warp.Scalar(op.b)); }
void Usel(Warp& warp, const Op& op) {
  warp.WriteUniform(op.d,
                    UniformPredicateAt(warp, op, 87) ? warp.uniform[op.a] : warp.Scalar(op.b));
}

}  // namespace

bool IKET_SIM_ISA::BindUniform(Op& op) {
  switch (op.word.opcode()) {
    case 0x882:
    case 0xc82:
      op.guard_uniform = true;
      op.d = static_cast<uint16_t>(Bits(op, 16, 6));
      op.b = op.word.opcode() == 0x882
                 ? Operand{.kind = Operand::Kind::kImmediate, .value = Bits(op, 32, 32)}
                 : Operand{.kind = Operand::Kind::kUniform,
                           .row = static_cast<uint16_t>(Bits(op, 32, 6))};
      op.run = Umov;
      return true;
    case 0x287:
    case 0x887:
      if (BindUniformAlu(op)) op.run = Usel;
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
