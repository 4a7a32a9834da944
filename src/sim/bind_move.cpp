// Moves, selections, special registers, constants.
#include <algorithm>

#include "sim/bind.h"
#include "sim/cta.h"
#include "sim/lanes.h"
#include "sim/sm.h"

namespace iket::sim {
namespace {

void Mov(Warp& warp, const Op& op) {
  MapB(warp, op, [](uint32_t b) { return b; });
}

void Sel(Warp& warp, const Op& op) {
  const uint32_t pick = PredicateAt(warp, op, 87);
  LaneWords scratch, out;
  const uint32_t* const a = warp.Row(op.a);
  const uint32_t* const b = warp.Words(op.b, scratch);
  for (uint32_t i = 0; i < kLanes; ++i) out.v[i] = (pick >> i & 1) != 0 ? a[i] : b[i];
  warp.Write(op.d, out);
}

// PRMT: bytes of {c, a} by the nibbles of b, or by one of the fixed patterns.
uint32_t PermuteBytes(uint32_t a, uint32_t b, uint32_t c, uint32_t mode) {
  const uint64_t bytes = uint64_t{c} << 32 | a;
  uint32_t out = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t pick = 0;
    bool sign = false;
    const uint32_t s = b & 3;
    switch (mode) {
      case 0:
        pick = b >> (4 * i) & 7;
        sign = (b >> (4 * i) & 8) != 0;
        break;
      case 1:
        pick = s + i;
        break;
      case 2:
        pick = (s + 8 - i) & 7;
        break;
      case 3:
        pick = s;
        break;
      case 4:
        pick = std::max(i, s);
        break;
      case 5:
        pick = std::min(i, s);
        break;
      default:
        pick = (s & 1) * 2 + (i & 1);
        break;
    }
    auto byte = static_cast<uint32_t>(bytes >> (8 * pick) & 0xff);
    if (sign) byte = (byte & 0x80) != 0 ? 0xff : 0;
    out |= byte << (8 * i);
  }
  return out;
}
void Prmt(Warp& warp, const Op& op) {
  const uint32_t mode = Bits(op, 72, 3);
  MapABC(warp, op,
         [mode](uint32_t a, uint32_t b, uint32_t c) { return PermuteBytes(a, b, c, mode); });
}
void Uprmt(Warp& warp, const Op& op) {
  warp.WriteUniform(op.d, PermuteBytes(warp.uniform[op.a], warp.Scalar(op.b), warp.Scalar(op.c),
                                       Bits(op, 72, 3)));
}

// ---- special registers -------------------------------------------------------------------------
enum class Special : uint32_t {
  kLaneId = 0x00,
  kVirtConfiguration = 0x02,
  kVirtId = 0x03,
  kTid = 0x20,
  kTidX = 0x21,
  kTidY = 0x22,
  kTidZ = 0x23,
  kCtaIdX = 0x25,
  kCtaIdY = 0x26,
  kCtaIdZ = 0x27,
  kNtid = 0x28,
  kSharedWindowHigh = 0x2f,
  kSharedWindowLow = 0x30,
  kSharedWindowSize = 0x31,
  kSharedSize = 0x32,
  kLocalHighOffset = 0x37,
  kEqMask = 0x38,
  kLtMask = 0x39,
  kLeMask = 0x3a,
  kGtMask = 0x3b,
  kGeMask = 0x3c,
  kGlobalErrorStatus = 0x40,
  kCgaErrorStatus = 0x41,
  kWarpErrorStatus = 0x42,
  kVirtualSmId = 0x43,
  kClockLow = 0x50,
  kClockHigh = 0x51,
  kTimerLow = 0x52,
  kTimerHigh = 0x53,
  kCgaCtaId = 0x88,
  kZero = 0xff,
};

constexpr bool IsKnown(uint32_t number) {
  switch (static_cast<Special>(number)) {
    case Special::kLaneId:
    case Special::kVirtConfiguration:
    case Special::kVirtId:
    case Special::kTid:
    case Special::kTidX:
    case Special::kTidY:
    case Special::kTidZ:
    case Special::kCtaIdX:
    case Special::kCtaIdY:
    case Special::kCtaIdZ:
    case Special::kNtid:
    case Special::kSharedWindowHigh:
    case Special::kSharedWindowLow:
    case Special::kSharedWindowSize:
    case Special::kSharedSize:
    case Special::kLocalHighOffset:
    case Special::kEqMask:
    case Special::kLtMask:
    case Special::kLeMask:
    case Special::kGtMask:
    case Special::kGeMask:
    case Special::kGlobalErrorStatus:
    case Special::kCgaErrorStatus:
    case Special::kWarpErrorStatus:
    case Special::kVirtualSmId:
    case Special::kClockLow:
    case Special::kClockHigh:
    case Special::kTimerLow:
    case Special::kTimerHigh:
    case Special::kCgaCtaId:
    case Special::kZero:
      return true;
  }
  return false;
}

// %globaltimer moves in steps of 32 ns, as on the GPU.
uint64_t Timer(const Warp& warp) { return warp.sm->NanosecondsAt(warp.time) & ~uint64_t{31}; }

uint32_t SpecialOf(const Warp& warp, uint32_t number, uint32_t lane) {
  const Dim3& block = warp.launch->block;
  const uint32_t thread = warp.number * kLanes + lane;
  const uint32_t x = thread % block.x, y = thread / block.x % block.y,
                 z = thread / block.x / block.y;
  const uint32_t bit = 1u << lane;
  switch (static_cast<Special>(number)) {
    case Special::kLaneId:
      return lane;
    case Special::kVirtConfiguration:  // %nwarpid; its other fields are not known, and 0
      return 64u << 8;
    case Special::kVirtId:
      return warp.sm->number << 20 | warp.slot << 8 | lane;
    case Special::kTid:
      return x | y << 16 | z << 26;
    case Special::kTidX:
      return x;
    case Special::kTidY:
      return y;
    case Special::kTidZ:
      return z;
    case Special::kCtaIdX:
      return warp.cta->id[0];
    case Special::kCtaIdY:
      return warp.cta->id[1];
    case Special::kCtaIdZ:
      return warp.cta->id[2];
    case Special::kNtid:
      return block.x | block.y << 16 | block.z << 26;
    case Special::kSharedWindowHigh:
      return kSharedWindowHigh;
    case Special::kSharedWindowSize:
      return static_cast<uint32_t>(kWindowBytes);
    case Special::kSharedSize:
      return kReservedShared;
    case Special::kLocalHighOffset:
      return 0;  // the least stack pointer
    case Special::kEqMask:
      return bit;
    case Special::kLtMask:
      return bit - 1;
    case Special::kLeMask:
      return bit | (bit - 1);
    case Special::kGtMask:
      return ~(bit | (bit - 1));
    case Special::kGeMask:
      return ~(bit - 1);
    case Special::kVirtualSmId:
      return warp.sm->number;
    case Special::kClockLow:
      return static_cast<uint32_t>(warp.time);
    case Special::kClockHigh:
      return static_cast<uint32_t>(warp.time >> 32);
    case Special::kTimerLow:
      return static_cast<uint32_t>(Timer(warp));
    case Special::kTimerHigh:
      return static_cast<uint32_t>(Timer(warp) >> 32);
    case Special::kSharedWindowLow:
    case Special::kGlobalErrorStatus:
    case Special::kCgaErrorStatus:
    case Special::kWarpErrorStatus:
    case Special::kCgaCtaId:
    case Special::kZero:
      return 0;
  }
  return 0;
}

void S2r(Warp& warp, const Op& op) {
  const uint32_t number = Bits(op, 72, 8);
  LaneWords out;
  for (uint32_t i = 0; i < kLanes; ++i) out.v[i] = SpecialOf(warp, number, i);
  warp.Write(op.d, out);
}
void Cs2r32(Warp& warp, const Op& op) {
  const uint32_t value = SpecialOf(warp, Bits(op, 72, 8), 0);
  LaneWords out;
  out.v.fill(value);
  warp.Write(op.d, out);
}
void Cs2r64(Warp& warp, const Op& op) {
  const uint32_t number = Bits(op, 72, 8);
  const bool zero = static_cast<Special>(number) == Special::kZero;
  LaneWords low, high;
  low.v.fill(SpecialOf(warp, number, 0));
  high.v.fill(zero ? 0 : SpecialOf(warp, number + 1, 0));
  WriteWide(warp, op.d, low, high);
}
void S2ur(Warp& warp, const Op& op) {
  warp.WriteUniform(op.d, SpecialOf(warp, Bits(op, 72, 8), warp.FirstLane()));
}

// ---- constants ---------------------------------------------------------------------------------
uint32_t Narrow(uint32_t word, uint32_t size) {
  switch (size) {
    case 0:
      return word & 0xff;
    case 1:
      return static_cast<uint32_t>(static_cast<int8_t>(word));
    case 2:
      return word & 0xffff;
    case 3:
      return static_cast<uint32_t>(static_cast<int16_t>(word));
    default:
      return word;
  }
}
// A word of a constant bank at any byte; past its end it is 0.
uint32_t ConstantBytes(Warp& warp, uint32_t bank, uint32_t offset) {
  if (bank >= 8 || offset >= warp.constant_bytes[bank]) return 0;
  uint32_t value = 0;
  std::memcpy(&value, warp.constants[bank] + offset,
              std::min<size_t>(4, warp.constant_bytes[bank] - offset));
  return value;
}
void Ldc(Warp& warp, const Op& op) {
  const uint32_t size = Bits(op, 73, 3);
  const uint32_t bank = Bits(op, 54, 5);
  const int32_t base = static_cast<int16_t>(Bits(op, 38, 16));
  const uint32_t* const a = warp.Row(op.a);
  LaneWords low, high;
  if (op.a == kZeroRow) {
    const auto offset = static_cast<uint32_t>(base) & 0xffff;
    low.v.fill(Narrow(ConstantBytes(warp, bank, offset), size));
    if (size == 5) high.v.fill(ConstantBytes(warp, bank, offset + 4));
  } else {
    for (uint32_t i = 0; i < kLanes; ++i) {
      const uint32_t offset = a[i] + static_cast<uint32_t>(base);
      low.v[i] = Narrow(ConstantBytes(warp, bank, offset), size);
      if (size == 5) high.v[i] = ConstantBytes(warp, bank, offset + 4);
    }
  }
  warp.Write(op.d, low);
  if (size == 5) warp.Write(op.d + 1u, high);
}
void Uldc(Warp& warp, const Op& op) {
  const uint32_t size = Bits(op, 73, 3);
  const uint32_t bank = Bits(op, 54, 5);
  uint32_t offset = Bits(op, 38, 16);
  if (op.word.opcode() == 0xabb) {  // [UR + offset]
    offset = warp.uniform[op.a] + static_cast<uint32_t>(int32_t{static_cast<int16_t>(offset)});
  }
  warp.WriteUniform(op.d, Narrow(ConstantBytes(warp, bank, offset), size));
  if (size == 5) warp.WriteUniform(op.d + 1u, ConstantBytes(warp, bank, offset + 4));
}

}  // namespace

bool IKET_SIM_ISA::BindMove(Op& op) {
  switch (op.word.opcode()) {
    case 0x202:
    case 0x802:
    case 0xa02:
    case 0xc02:
      if (BindAlu(op) && Bits(op, 72, 4) == 0xf) op.run = Mov;
      return true;
    case 0x207:
    case 0x807:
    case 0xa07:
    case 0xc07:
      if (BindAlu(op)) op.run = Sel;
      return true;
    case 0x216:
    case 0x416:
    case 0x616:
    case 0x816:
    case 0xa16:
    case 0xc16:
    case 0xe16:
      if (BindAlu(op) && Bits(op, 72, 3) <= 6) op.run = Prmt;
      return true;
    case 0x296:
    case 0x496:
    case 0x896:
      if (BindUniformAlu(op) && Bits(op, 72, 3) <= 6) op.run = Uprmt;
      return true;
    case 0x919:
      op.d = TargetRow(Bits(op, 16, 8));
      op.latency = Latency::kShort;
      if (IsKnown(Bits(op, 72, 8))) op.run = S2r;
      return true;
    case 0x805:
      op.d = TargetRow(Bits(op, 16, 8));
      if (IsKnown(Bits(op, 72, 8))) op.run = Bit(op, 80) ? Cs2r64 : Cs2r32;
      return true;
    case 0x9c3:
      op.guard_uniform = true;
      op.d = static_cast<uint16_t>(Bits(op, 16, 6));
      op.latency = Latency::kShort;
      if (IsKnown(Bits(op, 72, 8))) op.run = S2ur;
      return true;
    case 0xb82:
      op.d = TargetRow(Bits(op, 16, 8));
      op.a = SourceRow(Bits(op, 24, 8));
      op.latency = Latency::kShared;
      if (!op.word.is_uniform_form() && Bits(op, 78, 2) == 0 && Bits(op, 73, 3) <= 5) op.run = Ldc;
      return true;
    case 0xab9:
      op.d = static_cast<uint16_t>(Bits(op, 16, 6));
      op.guard_uniform = true;
      if (!op.word.is_uniform_form() && Bits(op, 73, 3) <= 5) op.run = Uldc;
      return true;
    case 0xabb:
      op.d = static_cast<uint16_t>(Bits(op, 16, 6));
      op.a = static_cast<uint16_t>(Bits(op, 24, 6));
      op.guard_uniform = true;
      if (Bits(op, 73, 3) <= 5 && Bits(op, 78, 2) == 0) op.run = Uldc;
      return true;
    default:
      return false;
  }
}

}  // namespace iket::sim
