// fp64 arithmetic and comparison.
#include <cmath>

#include "sim/bind.h"
#include "sim/compare.h"
#include "sim/float_ops.h"
#include "sim/lanes.h"

namespace iket::sim {
namespace {

struct DoubleSource {
  Wide words;
  uint64_t keep = ~uint64_t{0}, flip = 0;
  double operator[](uint32_t lane) const { return AsDouble((words[lane] & keep) ^ flip); }
};
DoubleSource Source(const Wide& words, bool absolute, bool negate) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  return {words, absolute ? ~kSign : ~uint64_t{0}, negate ? kSign : 0};
}
// An immediate is the high half of a double.
Wide WordsOf(Warp& warp, const Operand& operand, WideScratch& scratch) {
  if (operand.kind != Operand::Kind::kImmediate) return WideWords(warp, operand, scratch);
  scratch.low.v.fill(0);
  scratch.high.v.fill(operand.value);
  return {scratch.low.v.data(), scratch.high.v.data()};
}
struct Sources {
  DoubleSource a, b, c;
};
Sources SourcesOf(Warp& warp, const Op& op, WideScratch& sb, WideScratch& sc) {
  const uint32_t form = Bits(op, 9, 3);
  const bool immediate = form == 2 || form == 4;
  const bool swapped = form == 2 || form == 3 || form == 7;
  const bool abs32 = !immediate && Bit(op, 62), neg32 = !immediate && Bit(op, 63);
  const bool abs64 = Bit(op, 74), neg64 = Bit(op, 75);
  return {Source(WideRow(warp, op.a), Bit(op, 73), Bit(op, 72)),
          Source(WordsOf(warp, op.b, sb), swapped ? abs64 : abs32, swapped ? neg64 : neg32),
          Source(WordsOf(warp, op.c, sc), swapped ? abs32 : abs64, swapped ? neg32 : neg64)};
}
// Which of b and c the operation has; what stands in their place in the word is not looked at.
template <bool kHasB, bool kHasC, typename F>
void Doubles(Warp& warp, const Op& op, F f) {
  WideScratch sb, sc;
  const Sources s = SourcesOf(warp, op, sb, sc);
  LaneWords low, high;
  const RoundingScope scope(Bits(op, 78, 2));
  for (uint32_t i = 0; i < kLanes; ++i) {
    const volatile double value = f(s.a[i], s.b[i], s.c[i]);
    const uint64_t bits =
        CanonicalDouble(value, std::isnan(s.a[i]) || (kHasB && std::isnan(s.b[i])) ||
                                   (kHasC && std::isnan(s.c[i])));
    low.v[i] = static_cast<uint32_t>(bits);
    high.v[i] = static_cast<uint32_t>(bits >> 32);
  }
  WriteWide(warp, op.d, low, high);
}
void Dadd(Warp& warp, const Op& op) {
  Doubles<false, true>(warp, op, [](double a, double, double c) { return a + c; });
}
void Dmul(Warp& warp, const Op& op) {
  Doubles<true, false>(warp, op, [](double a, double b, double) { return a * b; });
}
void Dfma(Warp& warp, const Op& op) {
  Doubles<true, true>(warp, op, [](double a, double b, double c) { return std::fma(a, b, c); });
}
void Dsetp(Warp& warp, const Op& op) {
  const uint32_t comparison = Bits(op, 76, 4), form = Bits(op, 9, 3);
  const bool immediate = form == 2 || form == 4;
  const bool in_c = form == 2 || form == 3 || form == 7;
  WideScratch sb;
  const DoubleSource a = Source(WideRow(warp, op.a), Bit(op, 73), Bit(op, 72));
  const DoubleSource b = Source(WordsOf(warp, in_c ? op.c : op.b, sb), !immediate && Bit(op, 62),
                                !immediate && Bit(op, 63));
  uint32_t result = 0;
  if (comparison == 0 || comparison == 15) {  // MIN, MAX
    // The first predicate says that a is the one; the second that both are NaN.
    uint32_t neither = 0;
    for (uint32_t i = 0; i < kLanes; ++i) {
      const double x = comparison == 0 ? a[i] : -a[i], y = comparison == 0 ? b[i] : -b[i];
      const bool picks = y != y ? x == x : x < y || (x == y && std::signbit(x));
      result |= uint32_t{picks} << i;
      neither |= uint32_t{x != x && y != y} << i;
    }
    warp.WritePredicate(Bits(op, 81, 3), result & PredicateAt(warp, op, 87));
    warp.WritePredicate(Bits(op, 84, 3), neither);
    return;
  }
  for (uint32_t i = 0; i < kLanes; ++i) {
    result |= uint32_t{CompareFloat(comparison, a[i], b[i])} << i;
  }
  SetPredicates(warp, op, result);
}

}  // namespace

bool IKET_SIM_ISA::BindDouble(Op& op) {
  op.latency = Latency::kMath;
  switch (op.word.base_opcode()) {
    case 0x028:
      if (BindAlu(op)) op.run = Dmul;
      return true;
    case 0x029:
      if (BindAlu(op)) op.run = Dadd;
      return true;
    case 0x02a:
      // MIN and MAX (0 and 15) are known with AND.
      if (BindAlu(op) && Bits(op, 74, 2) != 3 &&
          (Bits(op, 74, 2) == 0 || (Bits(op, 76, 4) + 1) % 16 > 1)) {
        op.run = Dsetp;
      }
      return true;
    case 0x02b:
      if (BindAlu(op)) op.run = Dfma;
      return true;
    default:
      op.latency = Latency::kNone;
      return false;
  }
}

}  // namespace iket::sim
