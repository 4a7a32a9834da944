// memory_access.h: the bytes behind an address of any space, or a fault.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/cta.h"
#include "sim/lanes.h"
#include "sim/sm.h"

namespace iket::sim {

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kLocal };

// The host's pointer to `size` bytes of a lane's memory; null after it has raised the fault:
// misaligned, out of bounds, read-only. `size` is the alignment too.
std::byte* Access(Warp& warp, Space space, uint32_t lane, uint64_t address, uint32_t size,
                  bool write);

// The address operand of loads and stores: a register, a uniform register, an offset.
struct Addressing {
  bool wide = false;     // the register is a pair
  bool uniform = false;  // a uniform register (or pair) is added
  uint16_t uniform_register = 0;
  int64_t offset = 0;
};
inline void Addresses(Warp& warp, const Op& op, const Addressing& how, uint64_t (&out)[kLanes]) {
  uint64_t base = static_cast<uint64_t>(how.offset);
  if (how.uniform) {
    base += warp.uniform[how.uniform_register];
    if (how.wide || op.word.Bits(72, 1) != 0) {
      base +=
          how.uniform_register >= 62 ? 0 : uint64_t{warp.uniform[how.uniform_register + 1u]} << 32;
    }
  }
  const Wide a = WideRow(warp, op.a);
  if (how.wide) {
    for (uint32_t i = 0; i < kLanes; ++i) out[i] = a[i] + base;
  } else {
    for (uint32_t i = 0; i < kLanes; ++i) out[i] = a.low[i] + base;
  }
}

}  // namespace iket::sim
