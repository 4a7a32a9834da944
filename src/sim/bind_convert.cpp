// Conversions between integers and floating point, and rounding to an integer.
#include <cmath>
#include <limits>

#include "sim/bind.h"
#include "sim/float_ops.h"
#include "sim/half.h"
#include "sim/lanes.h"

namespace iket::sim {
namespace {

uint32_t DoubleBytes(const Op& op) { return Bits(op, 75, 2); }  // log2 of the result's bytes
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
  const uint32_t to = DoubleBytes(op), from = SourceBytes(op);
  WideScratch scratch;
  const Wide b = WideWords(warp, op.b, scratch);
  LaneWords low, high;
  const RoundingScope scope(Bits(op, 78, 2));
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint64_t raw = from == 3 ? b[i] : b.low[i];
    const auto as_signed =
        from == 3 ? static_cast<int64_t>(raw) : int64_t{static_cast<int32_t>(b.low[i])};
    if (to == 3) {
      const volatile double v =
          is_signed ? static_cast<double>(as_signed) : static_cast<double>(raw);
      const uint64_t bits = AsBits(static_cast<double>(v));
      low.v[i] = static_cast<uint32_t>(bits);
      high.v[i] = static_cast<uint32_t>(bits >> 32);
    } else {
      const volatile float v = is_signed ? static_cast<float>(as_signed) : static_cast<float>(raw);
      low.v[i] = to == 1 ? HalfFromFloat(v) : AsBits(static_cast<float>(v));
    }
  }
  warp.Write(op.d, low);
  if (to == 3) warp.Write(op.d + 1u, high);
}

void F2f(Warp& warp, const Op& op) {
  const bool flush = Bit(op, 80);
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
    const volatile float narrow = static_cast<float>(v);
    const uint32_t bits = Canonical(narrow);
    low.v[i] = to == 1 ? HalfFromFloat(narrow) : flush ? Flush(bits) : bits;
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
    const uint64_t bits = size == 3 ? AsBits(v) : Canonical(static_cast<float>(v));
    low.v[i] = static_cast<uint32_t>(bits);
    high.v[i] = static_cast<uint32_t>(bits >> 32);
  }
  warp.Write(op.d, low);
  if (size == 3) warp.Write(op.d + 1u, high);
}

// F2FP.F16.F32.PACK_AB: a becomes the high half, b the low one.
void F2fpHalf(Warp& warp, const Op& op) {
  const uint32_t flip = Bits(op, 9, 3) != 4 && Bit(op, 63) ? 0x80000000u : 0;
  const uint32_t flip_a = Bit(op, 72) ? 0x80000000u : 0;
  MapAB(warp, op, [=](uint32_t a, uint32_t b) {
    return uint32_t{HalfFromFloat(AsFloat(a ^ flip_a))} << 16 | HalfFromFloat(AsFloat(b ^ flip));
  });
}

bool BindSource(Op& op) {
  op.latency = Latency::kMath;
  if (!BindAlu(op)) return false;
  return true;
}

}  // namespace

bool BindConvert(Op& op) {
  const bool wide_source = SourceBytes(op) == 3;
  switch (op.word.base_opcode()) {
    case 0x104:
    case 0x110:
      // Rounding to narrower than float, other than to nearest, is not known.
      if (BindSource(op) && DoubleBytes(op) != 0 && SourceBytes(op) != 0 && !Bit(op, 77) &&
          !(DoubleBytes(op) == 1 && (Bits(op, 78, 2) != 0 || wide_source))) {
        op.run = F2f;
      }
      return true;
    case 0x105:
    case 0x111:
      if (BindSource(op) && DoubleBytes(op) >= 2 && SourceBytes(op) != 0) op.run = F2i;
      return true;
    case 0x106:
    case 0x112:
    case 0x045:  // I2FP
      if (BindSource(op) && DoubleBytes(op) != 0 && SourceBytes(op) >= 2 && Bits(op, 60, 2) == 0 &&
          !(DoubleBytes(op) == 1 && Bits(op, 78, 2) != 0)) {
        op.run = I2f;
      }
      if (op.word.base_opcode() == 0x045) op.latency = Latency::kNone;
      return true;
    case 0x107:
    case 0x113:
      if (BindSource(op) && SourceBytes(op) >= 2 && SourceBytes(op) == DoubleBytes(op)) {
        op.run = Frnd;
      }
      return true;
    case 0x03e:
      if (BindAlu(op) && Bits(op, 73, 14) == 0) op.run = F2fpHalf;
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
