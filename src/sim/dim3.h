// dim3.h: the extents of a grid, a block, a cluster.
#pragma once

#include <cstdint>

namespace iket::sim {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

}  // namespace iket::sim
