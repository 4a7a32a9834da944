// memory_access.h: the bytes behind an address of any space, or a fault.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/lanes.h"

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
void Addresses(Warp& warp, const Op& op, const Addressing& how, uint64_t (&out)[kLanes]);

}  // namespace iket::sim
