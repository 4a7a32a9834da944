// testing_code.h: instructions that tests of this room make up code of.
#pragma once

#include <cstdint>

#include "sass/encode.h"

namespace iket::patch::testing {

inline constexpr sass::Instruction kExit{0x000000000000794d, 0x000fea0003800000};

// BRA from one instruction to another, by index.
inline sass::Instruction Branch(uint32_t from, uint32_t to) {
  return sass::Bra(sass::Generation::kHopper, uint64_t{from} * sass::kInstructionBytes,
                   uint64_t{to} * sass::kInstructionBytes, {.stall = 5});
}

}  // namespace iket::patch::testing
