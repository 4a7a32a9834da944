// float_operands.h: the modifiers that fp32 instructions have in common.
#pragma once

#include <cstdint>

#include "sim/lanes.h"

namespace iket::sim {

// Sign bits of the operands: |x| takes them away, -x turns them over.
struct SignChange {
  uint32_t keep = ~0u, flip = 0;
  uint32_t operator()(uint32_t bits) const { return (bits & keep) ^ flip; }
};
inline SignChange SignChangeOf(bool absolute, bool negate) {
  return {absolute ? 0x7fffffffu : ~0u, negate ? 0x80000000u : 0};
}
struct FloatOperands {
  SignChange a, b, c;
  bool flush, saturate;
  uint32_t rounding;
};
// Changes at bits 62, 63 belong to what stands at bit 32 (unless it is an immediate), those at 74,
// 75 to what stands at bit 64.
inline FloatOperands FloatOperandsOf(const Op& op) {
  const uint32_t form = Bits(op, 9, 3);
  const bool immediate = form == 2 || form == 4;
  const SignChange at32 = immediate ? SignChange{} : SignChangeOf(Bit(op, 62), Bit(op, 63));
  const SignChange at64 = SignChangeOf(Bit(op, 74), Bit(op, 75));
  const bool swapped = form == 2 || form == 3 || form == 7;
  return {.a = SignChangeOf(Bit(op, 73), Bit(op, 72)),
          .b = swapped ? at64 : at32,
          .c = swapped ? at32 : at64,
          .flush = Bit(op, 80),
          .saturate = Bit(op, 77),
          .rounding = Bits(op, 78, 2)};
}

}  // namespace iket::sim
