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

// The same, with the usual case in line: aligned, shared or mapped global memory.
template <Space kSpace>
inline std::byte* FastAccess(Warp& warp, uint32_t lane, uint64_t address, uint32_t size,
                             bool write) {
  if ((address & (size - 1)) == 0) {
    if constexpr (kSpace == Space::kShared) {
      std::byte* const bytes = warp.cta->Shared(address, size);
      if (bytes != nullptr) return bytes;
    } else if constexpr (kSpace == Space::kGlobal) {
      std::byte* const bytes = warp.sm->memory.Find(address, size, write);
      if (bytes != nullptr) return bytes;
    }
  }
  return Access(warp, kSpace, lane, address, size, write);
}

// The address operand of loads and stores: a register, a uniform register, an offset.
struct Addressing {
  bool wide = false;     // the register is a pair
  bool uniform = false;  // a uniform register (or pair) is added
  uint16_t uniform_register = 0;
  int64_t offset = 0;
};
void Addresses(Warp& warp, const Op& op, const Addressing& how, uint64_t (&out)[kLanes]);

}  // namespace iket::sim
