// Conversions between integers and floating point, and rounding to an integer.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/bind.h"
#include "sim/float_ops.h"
#include "sim/half.h"
#include "sim/lanes.h"

namespace iket::sim {
namespace {

uint32_t DoubleBytes(const Op& op) {
  return Bits(op, 75, 2);
}  // log2 of the result's bytes; 0: bf16
uint32_t SourceBytes(const Op& op) { return Bits(op, 84, 2); }  // log2 of the source's bytes

struct Change {
  bool absolute, negate;
  double operator()(double v) const {
    if (absolute) v = std::fabs(v);
    return negate ? -v : v;
  }
};
Change ChangeOf(const Op& op) {
  const bool immediate = Bits(op, 9, 3) == 4;
  return {!immediate && Bit(op, 62), !immediate && Bit(op, 63)};
}

double SourceDouble(const Op& op, uint32_t low, uint32_t high, bool flush) {
  switch (SourceBytes(op)) {
    case 0:
      return FloatFromBfloat(static_cast<uint16_t>(Bits(op, 60, 2) == 1 ? low >> 16 : low));
    case 1:
      return FloatFromHalf(static_cast<uint16_t>(Bits(op, 60, 2) == 1 ? low >> 16 : low));
    case 2:
      return AsFloat(flush ? Flush(low) : low);
    default:
      return AsDouble(uint64_t{high} << 32 | low);
  }
}

double RoundToInteger(double v, uint32_t mode) {
  switch (mode) {
    case 0:
      return std::nearbyint(v);
    case 1:
      return std::floor(v);
    case 2:
      return std::ceil(v);
    default:
      return std::trunc(v);
  }
}

template <typename T>
uint64_t ToInteger(double v, bool nan_is_zero) {
  if (v != v) return nan_is_zero ? 0 : uint64_t{1} << (sizeof(T) * 8 - 1);
  constexpr double kTop =
      std::is_signed_v<T> ? (sizeof(T) == 8 ? 0x1p63 : 0x1p31) : (sizeof(T) == 8 ? 0x1p64 : 0x1p32);
  if (v >= kTop) return static_cast<uint64_t>(std::numeric_limits<T>::max());
  if (v < static_cast<double>(std::numeric_limits<T>::min())) {
    return static_cast<uint64_t>(std::numeric_limits<T>::min());
  }
  return static_cast<uint64_t>(static_cast<T>(v));
}

void F2i(Warp& warp, const Op& op) {
  const bool is_signed = Bit(op, 72), nan_is_zero = Bit(op, 77), flush = Bit(op, 80);
  const uint32_t mode = Bits(op, 78, 2), size = DoubleBytes(op);
  const Change change = ChangeOf(op);
  WideScratch scratch;
  Wide b = WideWords(warp, op.b, scratch);
  LaneWords low, high;
  for (uint32_t i = 0; i < kLanes; ++i) {
    const double v = RoundToInteger(change(SourceDouble(op, b.low[i], b.high[i], flush)), mode);
    uint64_t bits = 0;
    if (size == 3) {
      bits = is_signed ? ToInteger<int64_t>(v, nan_is_zero) : ToInteger<uint64_t>(v, nan_is_zero);
    } else {
      bits = is_signed ? ToInteger<int32_t>(v, nan_is_zero) : ToInteger<uint32_t>(v, nan_is_zero);
    }
    low.v[i] = static_cast<uint32_t>(bits);
    high.v[i] = static_cast<uint32_t>(bits >> 32);
  }
  warp.Write(op.d, low);
  if (size == 3) warp.Write(op.d + 1u, high);
}

void I2f(Warp& warp, const Op& op) {
  const bool is_signed = Bit(op, 74);
  const uint32_t to = DoubleBytes(op), from = SourceBytes(op), part = Bits(op, 60, 2);
  WideScratch scratch;
  const Wide b = WideWords(warp, op.b, scratch);
  LaneWords low, high;
  const RoundingScope scope(Bits(op, 78, 2));
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint32_t left = 32 - (8u << std::min(from, 2u));
    // A byte or a half is one of those of its register.
    const uint32_t word = b.low[i] >> (from < 2 ? part * (8u << from) : 0) << left;
    const uint64_t raw = from == 3 ? b[i] : word >> left;
    const auto as_signed =
        from == 3 ? static_cast<int64_t>(raw) : int64_t{static_cast<int32_t>(word) >> left};
    if (to == 3) {
      const volatile double v =
          is_signed ? static_cast<double>(as_signed) : static_cast<double>(raw);
      const uint64_t bits = AsBits(static_cast<double>(v));
      low.v[i] = static_cast<uint32_t>(bits);
      high.v[i] = static_cast<uint32_t>(bits >> 32);
    } else if (to == 1) {
      const double exact = is_signed ? static_cast<double>(as_signed) : static_cast<double>(raw);
      low.v[i] = HalfFromFloat(StickyFloat(exact));
    } else {
      const volatile float v = is_signed ? static_cast<float>(as_signed) : static_cast<float>(raw);
      low.v[i] = AsBits(static_cast<float>(v));
    }
  }
  warp.Write(op.d, low);
  if (to == 3) warp.Write(op.d + 1u, high);
}

void F2f(Warp& warp, const Op& op) {
  const bool flush = Bit(op, 80), truncate = Bits(op, 78, 2) == 3;
  const uint32_t to = DoubleBytes(op);
  const Change change = ChangeOf(op);
  WideScratch scratch;
  const Wide b = WideWords(warp, op.b, scratch);
  LaneWords low, high;
  const RoundingScope scope(Bits(op, 78, 2));
  for (uint32_t i = 0; i < kLanes; ++i) {
    const volatile double v = change(SourceDouble(op, b.low[i], b.high[i], flush));
    if (to == 3) {
      const uint64_t bits = AsBits(static_cast<double>(v));
      low.v[i] = static_cast<uint32_t>(bits);
      high.v[i] = static_cast<uint32_t>(bits >> 32);
      continue;
    }
    if (to < 2) {
      const float sticky = StickyFloat(v);
      low.v[i] = to == 1 ? (truncate ? HalfTowardZero(sticky) : HalfFromFloat(sticky))
                         : (truncate ? BfloatTowardZero(sticky) : BfloatFromFloat(sticky));
      continue;
    }
    const volatile float narrow = static_cast<float>(v);
    // A double's NaN keeps what fits of it, as an H200 does it.
    const uint32_t bits = SourceBytes(op) == 3 ? AsBits(float{narrow}) : Canonical(narrow);
    low.v[i] = flush ? Flush(bits) : bits;
  }
  warp.Write(op.d, low);
  if (to == 3) warp.Write(op.d + 1u, high);
}

void Frnd(Warp& warp, const Op& op) {
  const bool flush = Bit(op, 80);
  const uint32_t mode = Bits(op, 78, 2), size = SourceBytes(op);
  const Change change = ChangeOf(op);
  WideScratch scratch;
  const Wide b = WideWords(warp, op.b, scratch);
  LaneWords low, high;
  for (uint32_t i = 0; i < kLanes; ++i) {
    const double v = RoundToInteger(change(SourceDouble(op, b.low[i], b.high[i], flush)), mode);
    constexpr uint64_t kQuiet = uint64_t{1} << 51;
    const uint64_t bits = size != 3 ? Canonical(static_cast<float>(v))
                          : v != v  ? AsBits(v) | kQuiet
                                    : AsBits(v);
    low.v[i] = static_cast<uint32_t>(bits);
    high.v[i] = static_cast<uint32_t>(bits >> 32);
  }
  warp.Write(op.d, low);
  if (size == 3) warp.Write(op.d + 1u, high);
}

// F2FP.PACK_AB to fp16 or bf16: a becomes the high half, b the low one.
template <uint16_t (*kNarrow)(float)>
void F2fp(Warp& warp, const Op& op) {
  MapAB(warp, op, [](uint32_t a, uint32_t b) {
    return uint32_t{kNarrow(AsFloat(a))} << 16 | kNarrow(AsFloat(b));
  });
}

// What bits 60 and 61 say of a source narrower than a register: which part of it. Known of
// registers and their like; wider sources have none.
bool PartIsKnown(const Op& op, uint32_t parts) {
  if (Bits(op, 9, 3) == 4) return parts == 1;
  return Bits(op, 60, 2) < parts;
}

bool BindF2f(Op& op) {
  const uint32_t to = Bits(op, 75, 3), from = Bits(op, 84, 3), rounding = Bits(op, 78, 2);
  const bool narrow = to == 1 || to == 4;  // fp16, bf16: to nearest, or toward zero
  return BindAlu(op) && to != from && (narrow || to == 2 || to == 3) && from >= 1 && from <= 3 &&
         PartIsKnown(op, from == 1 ? 2 : 1) && (!narrow || rounding == 0 || rounding == 3);
}
bool BindF2i(Op& op) {
  const uint32_t from = Bits(op, 84, 3);
  // Flushing is a matter of fp32.
  return BindAlu(op) && DoubleBytes(op) >= 2 && from >= 1 && from <= 4 &&
         PartIsKnown(op, from == 1 || from == 4 ? 2 : 1) && (from == 2 || !Bit(op, 80));
}
bool BindI2f(Op& op) {
  const uint32_t to = Bits(op, 75, 3), from = Bits(op, 84, 3);
  return BindAlu(op) && to >= 1 && to <= 3 && from <= 3 &&
         PartIsKnown(op, from == 0   ? 4
                         : from == 1 ? 2
                                     : 1) &&
         (to != 1 || (from != 3 && Bits(op, 78, 2) == 0));
}
bool BindFrnd(Op& op) {
  const uint32_t size = Bits(op, 84, 3);
  return BindAlu(op) && size == Bits(op, 75, 3) && (size == 2 || (size == 3 && !Bit(op, 80)));
}

}  // namespace

bool IKET_SIM_ISA::BindConvert(Op& op) {
  const uint32_t base = op.word.base_opcode();
  if ((base >= 0x104 && base <= 0x107) || (base >= 0x110 && base <= 0x113)) {
    op.latency = Latency::kMath;
  }
  switch (base) {
    case 0x104:
    case 0x110:
      if (BindF2f(op)) op.run = F2f;
      return true;
    case 0x105:
    case 0x111:
      if (BindF2i(op)) op.run = F2i;
      return true;
    case 0x106:
    case 0x112:
      if (BindI2f(op)) op.run = I2f;
      return true;
    case 0x045: {  // I2FP.F32 of 32 bits, to nearest or toward zero
      const uint32_t rounding = Bits(op, 78, 2);
      if (Bits(op, 75, 3) == 2 && Bits(op, 84, 3) == 2 && (rounding == 0 || rounding == 3) &&
          BindI2f(op)) {
        op.run = I2f;
      }
      return true;
    }
    case 0x107:
    case 0x113:
      if (BindFrnd(op)) op.run = Frnd;
      return true;
    case 0x03e:
      // Bit 76: bf16. Bits 79 and 80: toward zero, or neither.
      if (BindAlu(op) && (Bits(op, 79, 2) == 0 || Bits(op, 79, 2) == 3)) {
        const bool truncate = Bit(op, 79);
        op.run = Bit(op, 76) ? (truncate ? F2fp<BfloatTowardZero> : F2fp<BfloatFromFloat>)
                             : (truncate ? F2fp<HalfTowardZero> : F2fp<HalfFromFloat>);
      }
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
