// FADD, FMUL and FFMA rounded to nearest, which is nearly all that code has. A file of their own,
// because where rounding modes change at run time the compiler makes no vector code.
#include "sim/bind.h"
#include "sim/float_operands.h"
#include "sim/float_ops.h"
#include "sim/lanes.h"

namespace iket::sim {
namespace {

struct Add {
  float operator()(float a, float b, float) const { return a + b; }
};
struct AddThird {
  float operator()(float a, float, float c) const { return a + c; }
};
struct Multiply {
  float operator()(float a, float b, float) const { return a * b; }
};
struct MultiplyAdd {
  // Where the host has no such instruction this is a library call a lane.
  float operator()(float a, float b, float c) const { return __builtin_fmaf(a, b, c); }
};

template <typename F>
void Plain(Warp& warp, const Op& op) {
  MapABC(warp, op, [](uint32_t a, uint32_t b, uint32_t c) {
    return Canonical(F{}(AsFloat(a), AsFloat(b), AsFloat(c)));
  });
}
// With signs changed, denormal numbers flushed, results kept in [0, 1].
template <typename F>
void Modified(Warp& warp, const Op& op) {
  const FloatOperands how = FloatOperandsOf(op);
  const uint32_t flush = how.flush ? 0x7f800000 : 0, saturate = how.saturate ? ~0u : 0;
  // A number whose exponent is 0 keeps its sign alone.
  const auto flushed = [flush](uint32_t bits) {
    return (bits & 0x7f800000) == 0 && flush != 0 ? bits & 0x80000000 : bits;
  };
  MapABC(warp, op, [&](uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t x = flushed(how.a(a)), y = flushed(how.b(b)), z = flushed(how.c(c));
    const uint32_t bits = flushed(Canonical(F{}(AsFloat(x), AsFloat(y), AsFloat(z))));
    return saturate != 0 ? Saturate(bits) : bits;
  });
}
template <typename F>
Handler HandlerFor(const Op& op) {
  const uint32_t form = Bits(op, 9, 3);
  const bool plain = Bits(op, 72, 9) == 0 && (form == 2 || form == 4 || Bits(op, 62, 2) == 0);
  return plain ? Plain<F> : Modified<F>;
}

}  // namespace

bool IKET_SIM_ISA::BindNearest(Op& op) {
  if (Bits(op, 78, 2) != 0) return false;
  switch (op.word.base_opcode()) {
    case 0x020:
      op.run = HandlerFor<Multiply>(op);
      return true;
    case 0x021: {
      // Its second operand stands in c where that is no register.
      const uint32_t form = Bits(op, 9, 3);
      op.run = form == 2 || form == 3 || form == 7 ? HandlerFor<AddThird>(op) : HandlerFor<Add>(op);
      return true;
    }
    case 0x023:
      op.run = HandlerFor<MultiplyAdd>(op);
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
