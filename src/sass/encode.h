// encode.h: the words that the patcher writes. One function a form; all constexpr.
//
// Words that are not the same in all generations take the generation; the others are. Where one
// generation has no such instruction its function builds another that does the same, and says so.
// Register numbers are plain integers (R5 is 5, UR2 is 2). Offsets of memory operands are signed,
// 24 bits. Each function takes the Control that its word is to carry; there is no default, since a
// forgotten wait is a wrong result that no test sees. Referee: nvdisasm (encode_test.cpp).
#pragma once

#include <cstdint>

#include "sass/generation.h"
#include "sass/instruction.h"

namespace iket::sass {

enum class Width : uint8_t { k32 = 0, k64 = 2, k128 = 4 };

namespace encode_detail {

constexpr uint64_t kAlways = 0x7000;  // guard PT

constexpr Instruction Word(uint64_t low, uint64_t high, const Control& control) {
  return Instruction{low | kAlways, high | ControlField(control)};
}
constexpr uint64_t Offset24(int32_t offset) {
  return uint64_t{static_cast<uint32_t>(offset) & 0xffffffu} << 40;
}
constexpr uint64_t Immediate(uint32_t value) { return uint64_t{value} << 32; }
constexpr uint64_t At(uint32_t position, uint64_t value) { return value << position; }
constexpr uint64_t ConstantAt(uint32_t bank, uint32_t offset) {
  return At(54, bank) | At(38, offset);
}

}  // namespace encode_detail

constexpr Instruction Nop(Control c) { return encode_detail::Word(0x918, 0, c); }

// S2R Rd, SR: variable latency, needs a write barrier.
constexpr Instruction S2r(uint8_t rd, SpecialRegister sr, Control c) {
  return encode_detail::Word(encode_detail::At(16, rd) | 0x919,
                             uint64_t{static_cast<uint8_t>(sr)} << 8, c);
}
// CS2R.32 Rd, SR and CS2R Rd:Rd+1, SR: fixed latency.
constexpr Instruction Cs2r32(uint8_t rd, SpecialRegister sr, Control c) {
  return encode_detail::Word(encode_detail::At(16, rd) | 0x805,
                             uint64_t{static_cast<uint8_t>(sr)} << 8, c);
}
constexpr Instruction Cs2r64(uint8_t rd, SpecialRegister sr, Control c) {
  return encode_detail::Word(encode_detail::At(16, rd) | 0x805,
                             0x10000 | uint64_t{static_cast<uint8_t>(sr)} << 8, c);
}
constexpr Instruction MovImmediate(uint8_t rd, uint32_t value, Control c) {
  return encode_detail::Word(encode_detail::Immediate(value) | encode_detail::At(16, rd) | 0x802,
                             0xf00, c);
}
// MOV Rd, URb.
constexpr Instruction MovFromUniform(uint8_t rd, uint8_t urb, Control c) {
  return encode_detail::Word(encode_detail::At(32, urb) | encode_detail::At(16, rd) | 0xc02,
                             0x08000f00, c);
}
// LOP3.LUT Rd, Ra, value, RZ: Ra & value, Ra | value.
constexpr Instruction AndImmediate(uint8_t rd, uint8_t ra, uint32_t value, Control c) {
  return encode_detail::Word(encode_detail::Immediate(value) | encode_detail::At(24, ra) |
                                 encode_detail::At(16, rd) | 0x812,
                             0x078ec0ff, c);
}
constexpr Instruction OrImmediate(uint8_t rd, uint8_t ra, uint32_t value, Control c) {
  return encode_detail::Word(encode_detail::Immediate(value) | encode_detail::At(24, ra) |
                                 encode_detail::At(16, rd) | 0x812,
                             0x078efcff, c);
}
// LOP3.LUT Pd, RZ, Ra, value, RZ: Pd = (Ra & value) != 0. 13 cycles until a guard may read it.
constexpr Instruction TestImmediate(uint8_t pd, uint8_t ra, uint32_t value, Control c) {
  return encode_detail::Word(encode_detail::Immediate(value) | encode_detail::At(24, ra) |
                                 encode_detail::At(16, kRegisterZero) | 0x812,
                             0x0780c0ff | encode_detail::At(81 - 64, pd), c);
}
// LOP3.LUT Pd, RZ, Ra, URb, RZ: Pd = (Ra & URb) != 0. 13 cycles until a guard may read it.
constexpr Instruction TestUniform(uint8_t pd, uint8_t ra, uint8_t urb, Control c) {
  return encode_detail::Word(encode_detail::At(32, urb) | encode_detail::At(24, ra) |
                                 encode_detail::At(16, kRegisterZero) | 0xc12,
                             0x0f80c0ff | encode_detail::At(81 - 64, pd), c);
}
// VOTEU.ANY URd, UPT, PT: the active lanes.
constexpr Instruction ActiveLanes(uint8_t urd, Control c) {
  return encode_detail::Word(encode_detail::At(16, urd) | 0x886, 0x038e0100, c);
}
// VOTEU.ANY UPd, Pa or !Pa: an active lane's predicate holds. 13 cycles until a guard may read it.
constexpr Instruction VoteUniformAny(Generation g, uint8_t upd, uint8_t pa, bool negated,
                                     Control c) {
  return encode_detail::Word(encode_detail::At(16, UniformZero(g)) | 0x886,
                             encode_detail::At(90 - 64, negated ? 1 : 0) |
                                 encode_detail::At(87 - 64, pa) | encode_detail::At(81 - 64, upd) |
                                 0x100,
                             c);
}
// ELECT Pd, URZ, PT: Pd holds in the first active lane alone. 13 cycles until a guard may read it.
// Not before sm_90.
constexpr Instruction Elect(Generation g, uint8_t pd, Control c) {
  return encode_detail::Word(encode_detail::At(16, UniformZero(g)) | 0x82f,
                             0x03800000 | encode_detail::At(81 - 64, pd), c);
}
// IMAD Rd, Ra, value, Rc.
constexpr Instruction ImadImmediate(uint8_t rd, uint8_t ra, uint32_t value, uint8_t rc, Control c) {
  return encode_detail::Word(encode_detail::Immediate(value) | encode_detail::At(24, ra) |
                                 encode_detail::At(16, rd) | 0x824,
                             0x078e0200 | uint64_t{rc}, c);
}
// IMAD Rd, Ra, Rb, Rc.
constexpr Instruction Imad(uint8_t rd, uint8_t ra, uint8_t rb, uint8_t rc, Control c) {
  return encode_detail::Word(
      encode_detail::At(32, rb) | encode_detail::At(24, ra) | encode_detail::At(16, rd) | 0x224,
      0x078e0200 | uint64_t{rc}, c);
}
// IADD3 Rd, Ra, value, RZ; on sm_90 VIADD Rd, Ra, value, which others lack or call otherwise.
constexpr Instruction AddImmediate(Generation g, uint8_t rd, uint8_t ra, uint32_t value,
                                   Control c) {
  if (g == Generation::kHopper) {
    return encode_detail::Word(encode_detail::Immediate(value) | encode_detail::At(24, ra) |
                                   encode_detail::At(16, rd) | 0x836,
                               0, c);
  }
  return encode_detail::Word(encode_detail::Immediate(value) | encode_detail::At(24, ra) |
                                 encode_detail::At(16, rd) | 0x810,
                             0x07ffe0ff, c);
}
// SHF.R.W.U32 Rd, Ra, count, Ra: rotated to the right.
constexpr Instruction RotateRight(uint8_t rd, uint8_t ra, uint32_t count, Control c) {
  return encode_detail::Word(encode_detail::Immediate(count) | encode_detail::At(24, ra) |
                                 encode_detail::At(16, rd) | 0x819,
                             0x1e00 | uint64_t{ra}, c);
}
// ISETP.<compare>.U32.<join> Pd, PT, Ra, value or Rb, Pc. 13 cycles until a guard may read it.
enum class Compare : uint8_t { kNotEqual = 5, kGreater = 4, kGreaterOrEqual = 6 };
enum class Join : uint8_t { kAnd = 0, kOr = 1 };
namespace encode_detail {
constexpr uint64_t CompareField(uint8_t pd, Compare compare, Join join, uint8_t pc) {
  return At(87 - 64, pc) | 0x700070 | At(81 - 64, pd) | At(76 - 64, static_cast<uint8_t>(compare)) |
         At(74 - 64, static_cast<uint8_t>(join));
}
}  // namespace encode_detail
constexpr Instruction CompareImmediate(uint8_t pd, Compare compare, uint8_t ra, uint32_t value,
                                       Join join, uint8_t pc, Control c) {
  return encode_detail::Word(encode_detail::Immediate(value) | encode_detail::At(24, ra) | 0x80c,
                             encode_detail::CompareField(pd, compare, join, pc), c);
}
constexpr Instruction CompareRegisters(uint8_t pd, Compare compare, uint8_t ra, uint8_t rb,
                                       Join join, uint8_t pc, Control c) {
  return encode_detail::Word(encode_detail::At(32, rb) | encode_detail::At(24, ra) | 0x20c,
                             encode_detail::CompareField(pd, compare, join, pc), c);
}
// SEL Rd, RZ, value, !Pc: Pc ? value : 0.
constexpr Instruction SelectImmediate(uint8_t rd, uint32_t value, uint8_t pc, Control c) {
  return encode_detail::Word(encode_detail::Immediate(value) |
                                 encode_detail::At(24, kRegisterZero) | encode_detail::At(16, rd) |
                                 0x807,
                             0x04000000 | encode_detail::At(87 - 64, pc), c);
}
// LDC Rd, c[bank][Ra + offset]: variable latency, needs a write barrier.
constexpr Instruction LoadConstantAt(uint8_t rd, uint8_t ra, uint32_t bank, uint32_t offset,
                                     Control c) {
  return encode_detail::Word(encode_detail::ConstantAt(bank, offset) | encode_detail::At(24, ra) |
                                 encode_detail::At(16, rd) | 0xb82,
                             0x800, c);
}
// LDC Rd, c[bank][offset]: likewise. Before sm_90 MOV Rd, c[bank][offset]: of fixed latency, so its
// barrier is left out and it stalls for its reader.
constexpr Instruction LoadConstant(Generation g, uint8_t rd, uint32_t bank, uint32_t offset,
                                   Control c) {
  if (g == Generation::kAmpere) {
    c.write_barrier = kNoBarrier;
    if (c.stall < 6) c.stall = 6;
    return encode_detail::Word(
        encode_detail::ConstantAt(bank, offset) | encode_detail::At(16, rd) | 0xa02, 0xf00, c);
  }
  return LoadConstantAt(rd, kRegisterZero, bank, offset, c);
}
// ULDC.64 URd:URd+1, c[bank][offset]: fixed latency. From sm_100 on LDCU.64: variable latency,
// needs a write barrier.
constexpr bool HasVariableUniformLoad(Generation g) { return g == Generation::kBlackwell; }
constexpr Instruction LoadUniform64(Generation g, uint8_t urd, uint32_t bank, uint32_t offset,
                                    Control c) {
  if (HasVariableUniformLoad(g)) {
    return encode_detail::Word(encode_detail::At(54, bank) | encode_detail::At(37, offset) |
                                   encode_detail::At(24, 0xff) | encode_detail::At(16, urd) | 0x7ac,
                               0x08000a00, c);
  }
  return encode_detail::Word(
      encode_detail::ConstantAt(bank, offset) | encode_detail::At(16, urd) | 0xab9, 0xa00, c);
}
// R2UR URd, Ra: 13 cycles. Before sm_90 of variable latency: needs a write barrier.
constexpr bool HasVariableR2ur(Generation g) { return g == Generation::kAmpere; }
constexpr Instruction R2ur(Generation g, uint8_t urd, uint8_t ra, Control c) {
  const uint64_t opcode = HasVariableR2ur(g) ? 0x3c2 : 0x2ca;
  return encode_detail::Word(encode_detail::At(24, ra) | encode_detail::At(16, urd) | opcode,
                             0x000e0000, c);
}
// UIADD3 URd, URa, value, URZ.
constexpr Instruction UaddImmediate(Generation g, uint8_t urd, uint8_t ura, uint32_t value,
                                    Control c) {
  return encode_detail::Word(encode_detail::Immediate(value) | encode_detail::At(24, ura) |
                                 encode_detail::At(16, urd) | 0x890,
                             0x0fffe000 | uint64_t{UniformZero(g)}, c);
}
// ULOP3.LUT URd = (URa & value) | URc.
constexpr Instruction UmaskOr(uint8_t urd, uint8_t ura, uint32_t value, uint8_t urc, Control c) {
  return encode_detail::Word(encode_detail::Immediate(value) | encode_detail::At(24, ura) |
                                 encode_detail::At(16, urd) | 0x892,
                             0x0f8eea00 | uint64_t{urc}, c);
}
// USHF.L.U32 URd, URa, count, URZ and USHF.R.U32.HI URd, URZ, count, URa.
constexpr Instruction UshiftLeft(Generation g, uint8_t urd, uint8_t ura, uint32_t count,
                                 Control c) {
  return encode_detail::Word(encode_detail::Immediate(count) | encode_detail::At(24, ura) |
                                 encode_detail::At(16, urd) | 0x899,
                             0x08000600 | uint64_t{UniformZero(g)}, c);
}
constexpr Instruction UshiftRight(Generation g, uint8_t urd, uint8_t ura, uint32_t count,
                                  Control c) {
  return encode_detail::Word(encode_detail::Immediate(count) |
                                 encode_detail::At(24, UniformZero(g)) |
                                 encode_detail::At(16, urd) | 0x899,
                             0x08011600 | uint64_t{ura}, c);
}
// STG.E [Ra.U32 + URb:URb+1 + offset], Rs; `ra` = kRegisterZero leaves the register out.
constexpr Instruction Stg(Width width, uint8_t ra, uint8_t urb, int32_t offset, uint8_t rs,
                          Control c) {
  return encode_detail::Word(encode_detail::Offset24(offset) | encode_detail::At(32, rs) |
                                 encode_detail::At(24, ra) | 0x986,
                             0x08100900 | uint64_t{static_cast<uint8_t>(width)} << 8 | urb, c);
}
// The same as STG.E.EF: the line is the first to leave the caches.
constexpr Instruction StgEvictFirst(Width width, uint8_t ra, uint8_t urb, int32_t offset,
                                    uint8_t rs, Control c) {
  Instruction store = Stg(width, ra, urb, offset, rs, c);
  store.high &= ~(uint64_t{1} << (84 - 64));
  return store;
}
// LDG.E Rd, [Ra.U32 + URb:URb+1 + offset]: variable latency, needs a write barrier.
constexpr Instruction Ldg(Width width, uint8_t rd, uint8_t ra, uint8_t urb, int32_t offset,
                          Control c) {
  return encode_detail::Word(encode_detail::Offset24(offset) | encode_detail::At(32, urb) |
                                 encode_detail::At(24, ra) | encode_detail::At(16, rd) | 0x981,
                             0x081e0900 | uint64_t{static_cast<uint8_t>(width)} << 8, c);
}
// BRA from byte `pc` to byte `target` of the same section.
constexpr Instruction Bra(Generation g, uint64_t pc, uint64_t target, Control c) {
  const auto distance = static_cast<uint64_t>(
      static_cast<int64_t>(target) - static_cast<int64_t>(pc) - int64_t{kInstructionBytes});
  if (g == Generation::kAmpere) {
    return encode_detail::Word((distance & 0xffffffff) << 32 | 0x947,
                               0x03800000 | ((distance >> 32) & 0x3ffff), c);
  }
  const uint64_t quarter = static_cast<uint64_t>(static_cast<int64_t>(distance) >> 2);
  return encode_detail::Word((quarter & 0xff) << 16 | ((quarter >> 8) & 0x3fffffff) << 34 | 0x947,
                             0x03800000 | ((quarter >> 38) & 0x3ffff), c);
}

}  // namespace iket::sass
