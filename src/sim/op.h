// op.h: one instruction, decoded for execution: who executes it, and where its operands are.
//
// Registers are named by rows: a warp keeps each register of its 32 lanes side by side. RZ is read
// from rows of zeros and written to rows that nobody reads, so that no handler has to ask.
#pragma once

#include <cstdint>

#include "sass/instruction.h"

namespace iket::sim {

class Warp;
struct Op;
using Handler = void (*)(Warp&, const Op&);

inline constexpr uint32_t kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xffffffffu;

// Rows of a warp's register file: zeros, the sink, R0, R1, ... Wide operands take several.
inline constexpr uint16_t kZeroRow = 0;
inline constexpr uint16_t kSinkRow = 4;
inline constexpr uint16_t kFirstRow = 8;
constexpr uint16_t SourceRow(uint32_t reg) {
  return static_cast<uint16_t>(reg == sass::kRegisterZero ? kZeroRow : kFirstRow + reg);
}
constexpr uint16_t TargetRow(uint32_t reg) {
  return static_cast<uint16_t>(reg == sass::kRegisterZero ? kSinkRow : kFirstRow + reg);
}

struct Operand {
  enum class Kind : uint8_t { kRegister, kImmediate, kConstant, kUniform };
  Kind kind = Kind::kRegister;
  uint8_t bank = 0;      // of a constant
  bool indexed = false;  // constant at an offset from a uniform register (bindless: not supported)
  uint16_t row = kZeroRow;  // register: row; uniform: its number
  uint32_t value = 0;       // immediate; constant: offset
};

// Latency classes of results that a scoreboard announces (docs/design/software-device.md).
enum class Latency : uint8_t { kNone, kShort, kShared, kGlobal, kMath, kMatrix };

struct Op {
  Handler run = nullptr;
  sass::Instruction word;
  Operand b, c;
  uint16_t d = kSinkRow;  // row, or number of a uniform register
  uint16_t a = kZeroRow;
  uint8_t guard = 7;
  bool guard_negated = false;
  bool guard_uniform = false;
  uint8_t stall = 1;
  uint8_t wait = 0;
  uint8_t write_barrier = 7;
  uint8_t read_barrier = 7;
  Latency latency = Latency::kNone;
  uint32_t target = 0;    // of a branch: instruction index
  int64_t immediate = 0;  // offset of a memory operand, native function, ...
};

}  // namespace iket::sim
