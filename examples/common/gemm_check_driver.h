// SPDX-License-Identifier: Apache-2.0
//
// Launches the kernel of gemm_check.cuh over the driver API.
#pragma once

#include "common/gemm.h"
#include "common/gpu_driver.h"

namespace example {

inline unsigned CountMismatches(CUmodule module, const Array<uint16_t>& a, const Array<uint16_t>& b,
                                const Array<uint16_t>& c, GemmShape shape) {
  const Array<unsigned> mismatches(std::vector<unsigned>{0});
  const Kernel check(module, "GemmCheck");
  check.Launch({CheckTiles(shape.n), CheckTiles(shape.m)}, {kCheckTile, kCheckTile}, a.data(),
               b.data(), c.data(), shape.m, shape.n, shape.k, mismatches.data());
  return mismatches.ToHost()[0];
}

}  // namespace example
