// instruction.h: one 128-bit instruction word of Volta and later, and the fields all of them share.
//
//   bits 0..8    opcode          bits 12..14  guard predicate, 7 = PT     bits 105..125 control
//   bits 9..11   operand form    bit  15      guard is negated
//   bit  91      also part of the opcode (operands from the uniform register file)
//
// The control field tells the scheduler how long to wait and on what; wrong values are wrong
// results, so every word that is built states one. Fields were read off nvdisasm's output;
// encode_test.cpp holds that reading against it.
#pragma once

#include <cstdint>

#include "sass/generation.h"

namespace iket::sass {

inline constexpr uint32_t kInstructionBytes = 16;
inline constexpr uint8_t kNoBarrier = 7;
inline constexpr uint8_t kPredicateTrue = 7;
inline constexpr uint8_t kRegisterZero = 255;        // RZ
inline constexpr uint8_t kUniformRegisterZero = 63;  // URZ, up to sm_90: generation.h

// How the scheduler treats an instruction.
struct Control {
  uint8_t stall = 1;                   // cycles until the warp's next instruction, 1..15
  uint8_t write_barrier = kNoBarrier;  // scoreboard 0..5 released when the result is written
  uint8_t read_barrier = kNoBarrier;   // scoreboard released when the sources have been read
  uint8_t wait = 0;                    // mask of scoreboards to wait for before issue
  bool prefer_stay = true;             // keep issuing this warp; must be off for stalls above 11

  friend bool operator==(const Control&, const Control&) = default;
};

// The control field as it stands at bits 105 and up. A stall of 12 and more with "prefer to stay"
// set is undefined, so that bit is left out there.
inline constexpr uint32_t kControlShift = 105 - 64;
constexpr uint64_t ControlField(const Control& control) {
  const bool stay = control.prefer_stay && control.stall < 12;
  return ((control.stall & 15u) | (stay ? 1u << 4 : 0u) |
          uint64_t{control.write_barrier & 7u} << 5 | uint64_t{control.read_barrier & 7u} << 8 |
          uint64_t{control.wait & 63u} << 11)
         << kControlShift;
}

struct Instruction {
  uint64_t low = 0;
  uint64_t high = 0;

  uint32_t opcode() const { return static_cast<uint32_t>(low & 0xfff); }
  // The opcode without its operand form.
  uint32_t base_opcode() const { return static_cast<uint32_t>(low & 0x1ff); }
  bool is_uniform_form() const { return (high >> (91 - 64)) & 1; }
  uint8_t guard() const { return (low >> 12) & 7; }
  bool guard_negated() const { return (low >> 15) & 1; }
  bool is_unguarded() const { return guard() == kPredicateTrue && !guard_negated(); }
  // `width` bits at `position`, not across the two halves.
  uint32_t Bits(uint32_t position, uint32_t width) const {
    const uint64_t half = position < 64 ? low >> position : high >> (position - 64);
    return static_cast<uint32_t>(half & ((uint64_t{1} << width) - 1));
  }
  Control control() const {
    const uint64_t field = high >> kControlShift;
    return Control{.stall = static_cast<uint8_t>(field & 15),
                   .write_barrier = static_cast<uint8_t>((field >> 5) & 7),
                   .read_barrier = static_cast<uint8_t>((field >> 8) & 7),
                   .wait = static_cast<uint8_t>((field >> 11) & 63),
                   .prefer_stay = ((field >> 4) & 1) != 0};
  }
  Instruction WithControl(const Control& control) const;
  // The same instruction if predicate `predicate` holds (kPredicateTrue: always).
  constexpr Instruction WithGuard(uint8_t predicate) const {
    return Instruction{(low & ~uint64_t{0xf000}) | uint64_t{predicate & 7u} << 12, high};
  }
  constexpr Instruction WithNegatedGuard(uint8_t predicate) const {
    return Instruction{WithGuard(predicate).low | 0x8000, high};
  }
  // The same instruction under another's guard.
  Instruction WithGuardOf(const Instruction& other) const;

  friend bool operator==(const Instruction&, const Instruction&) = default;
};

// Opcodes (all 12 bits) that the patcher looks for in compiled code.
inline constexpr uint32_t kOpExit = 0x94d;
inline constexpr uint32_t kOpBra = 0x947;
inline constexpr uint32_t kOpBraUniform = 0x547;  // BRA.U, from sm_100 on
inline constexpr uint32_t kOpNop = 0x918;
inline constexpr uint32_t kOpPmTrig = 0x801;
inline constexpr uint32_t kOpBssy = 0x945;
inline constexpr uint32_t kOpBsync = 0x941;
inline constexpr uint32_t kOpEndCollective = 0x91b;
inline constexpr uint32_t kOpSetMaxReg = 0x9c8;  // USETMAXREG, count at bit 32
inline constexpr uint32_t kOpElect = 0x82f;
inline constexpr uint32_t kOpStsUniform = 0x988;  // STS [UR+off], R
inline constexpr uint32_t kOpSts = 0x388;         // STS [R+off], R
inline constexpr uint32_t kOpS2r = 0x919;
inline constexpr uint32_t kOpS2ur = 0x9c3;
inline constexpr uint32_t kOpLdc = 0xb82;
inline constexpr uint32_t kOpCs2r = 0x805;

// WARPSYNC.COLLECTIVE: what follows, until ENDCOLLECTIVE, runs for all lanes of a mask at once, and
// goes on at a target that this states. (Another WARPSYNC states none.)
inline bool BeginsCollective(const Instruction& instruction) {
  return instruction.base_opcode() == 0x148 &&
         (instruction.Bits(16, 8) != 0 || instruction.Bits(34, 30) != 0);
}

// True if the instruction can send the warp, or some lanes, elsewhere, or ends its path: branches,
// calls, returns, exits, reconvergence (BSYNC, WARPSYNC, BREAK), traps. What follows it, and what
// is the target of a branch, begins a basic block. BSSY only writes down where lanes will meet, and
// ptxas moves other instructions across it.
inline bool EndsBasicBlock(const Instruction& instruction) {
  // 140..15f holds control flow: CALL, BRA, BRX, JMP, BREAK, BSSY, BSYNC, EXIT, RET, YIELD, BPT,
  // ...
  const uint32_t base = instruction.base_opcode();
  return base >= 0x140 && base <= 0x15f && base != 0x145 /* BSSY */ &&
         base != 0x15d /* NANOSLEEP */;
}

// Target of a relative BRA, BSSY or CALL.REL at byte `pc`, as a byte offset in the same section.
// Only for instructions of which HasRelativeTarget is true.
inline bool HasRelativeTarget(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case 0x944:  // CALL.REL; 0x344 adds a register to its target
    case 0x945:  // BSSY
    case 0x947:  // BRA
    case kOpBraUniform:
      return true;
    default:
      return false;
  }
}
int64_t RelativeTarget(const Instruction& instruction, uint64_t pc, Generation generation);
// The same instruction at byte `pc` with byte `target` as its target.
Instruction WithRelativeTarget(const Instruction& instruction, uint64_t pc, int64_t target,
                               Generation generation);

// Special registers, by their number in S2R, S2UR and CS2R.
enum class SpecialRegister : uint8_t {
  kLaneId = 0x00,
  kVirtualId = 0x03,  // warp slot in bits 8..13; on sm_90 the lane in bits 0..4
  kPackedTid = 0x20,  // x in bits 0..15, y in 16..25, z modulo 64 in 26..31, on sm_90
  kTidX = 0x21,
  kTidY = 0x22,
  kTidZ = 0x23,
  kCtaIdX = 0x25,
  kCtaIdY = 0x26,
  kCtaIdZ = 0x27,
  kLowerLanes = 0x39,  // a mask, %lanemask_lt
  kVirtualSmId = 0x43,
  kClusterKind = 0x8a,  // SR_CgaSize, from sm_100 on
  kClockLow = 0x50,
  kGlobalTimerLow = 0x52,
};

}  // namespace iket::sass
