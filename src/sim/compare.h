// compare.h: what comparing instructions have in common: the eight integer comparisons, the three
// ways to combine a result with a predicate, and where the results go.
#pragma once

#include <cstdint>

#include "sim/lanes.h"

namespace iket::sim {

// Comparison 0..7 (F LT EQ LE GT NE GE T) of lanes, from "less" and "equal". The extended form
// continues a comparison of the low words, whose result is `low`.
inline uint32_t CompareMask(uint32_t comparison, uint32_t lt, uint32_t eq, bool extended,
                            uint32_t low) {
  const uint32_t gt = ~(lt | eq);
  switch (comparison & 7) {
    case 0:
      return 0;
    case 1:
      return extended ? lt | (eq & low) : lt;
    case 2:
      return extended ? eq & low : eq;
    case 3:
      return extended ? lt | (eq & low) : lt | eq;
    case 4:
      return extended ? gt | (eq & low) : gt;
    case 5:
      return extended ? ~eq | low : ~eq;
    case 6:
      return extended ? gt | (eq & low) : gt | eq;
    default:
      return ~0u;
  }
}

// 0 AND, 1 OR, 2 XOR.
template <typename T>
inline T CombineBits(uint32_t how, T result, T accumulated) {
  return static_cast<T>(how == 0   ? result & accumulated
                        : how == 1 ? result | accumulated
                                   : result ^ accumulated);
}

// Both predicate results of a SETP: the comparison and its opposite, combined with the source.
inline void SetPredicates(Warp& warp, const Op& op, uint32_t result) {
  const uint32_t accumulated = PredicateAt(warp, op, 87);
  const uint32_t how = Bits(op, 74, 2);
  warp.WritePredicate(Bits(op, 81, 3), CombineBits(how, result, accumulated));
  warp.WritePredicate(Bits(op, 84, 3), CombineBits(how, ~result, accumulated));
}

}  // namespace iket::sim
