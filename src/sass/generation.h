// generation.h: GPUs whose instruction words are the same wherever the patcher looks or writes.
//
// What differs between them is written down in docs/design/architectures.md, with what is proven.
#pragma once

#include <cstdint>
#include <optional>

namespace iket::sass {

enum class Generation : uint8_t {
  kAmpere,     // sm_80, 86, 87, 88, 89
  kHopper,     // sm_90, 90a
  kBlackwell,  // sm_100, 101, 103, 110, 120, 121, with and without a or f
};

// Nothing for what no table of ours knows: sm_75 and older, and what is yet to come.
constexpr std::optional<Generation> GenerationOf(uint32_t sm) {
  switch (sm) {
    case 80:
    case 86:
    case 87:
    case 88:
    case 89:
      return Generation::kAmpere;
    case 90:
      return Generation::kHopper;
    case 100:
    case 101:  // sm_110 up to CUDA 12.9
    case 103:
    case 110:
    case 120:
    case 121:
      return Generation::kBlackwell;
    default:
      return std::nullopt;
  }
}

// URZ: uniform registers have six bits up to sm_90, and eight from sm_100 on.
constexpr uint8_t UniformZero(Generation generation) {
  return generation == Generation::kBlackwell ? 255 : 63;
}
constexpr uint32_t UniformBits(Generation generation) {
  return generation == Generation::kBlackwell ? 8 : 6;
}

}  // namespace iket::sass
