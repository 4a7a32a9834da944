// SPDX-License-Identifier: Apache-2.0
//
// A second, simple GEMM that checks the first: one thread computes one element with plain FMAs and
// compares it. Slow (some TFLOP/s) and obvious. This is the <<<>>> form; gemm_check_driver.h
// launches the kernel over the driver API.
#pragma once

#include <cuda_fp16.h>

#include "common/gemm.h"
#include "common/gpu_runtime.h"

// Adds to *mismatches the number of elements of c (m x n) that are not the fp16 nearest to A * B^T.
// Exact for the inputs of gemm.h. Blocks of kCheckTile x kCheckTile threads, a grid over n x m.
extern "C" __global__ void __launch_bounds__(example::kCheckTile* example::kCheckTile)
    GemmCheck(const uint16_t* a, const uint16_t* b, const uint16_t* c, int m, int n, int k,
              unsigned* mismatches) {
  using example::kCheckTile;
  __shared__ float a_tile[kCheckTile][kCheckTile];
  __shared__ float b_tile[kCheckTile][kCheckTile + 1];  // + 1: columns are read, banks differ
  const auto to_float = [](uint16_t half) { return __half2float(__ushort_as_half(half)); };
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int first_row = static_cast<int>(blockIdx.y) * kCheckTile;
  const int first_column = static_cast<int>(blockIdx.x) * kCheckTile;
  const int row = first_row + y, column = first_column + x, b_row = first_column + y;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += kCheckTile) {
    const int i = k0 + x;
    a_tile[y][x] = row < m && i < k ? to_float(a[size_t(row) * k + i]) : 0.0f;
    b_tile[y][x] = b_row < n && i < k ? to_float(b[size_t(b_row) * k + i]) : 0.0f;
    __syncthreads();
    for (int j = 0; j < kCheckTile; ++j) sum += a_tile[y][j] * b_tile[x][j];
    __syncthreads();
  }
  if (row < m && column < n) {
    const float expected = __half2float(__float2half_rn(sum));
    // Not "!=": NaN, which unwritten elements hold, is a mismatch too.
    if (!(to_float(c[size_t(row) * n + column]) == expected)) atomicAdd(mismatches, 1u);
  }
}

namespace example {

inline unsigned CountMismatches(const Array<uint16_t>& a, const Array<uint16_t>& b,
                                const Array<uint16_t>& c, GemmShape shape) {
  const Array<unsigned> mismatches(std::vector<unsigned>{0});
  GemmCheck<<<dim3(CheckTiles(shape.n), CheckTiles(shape.m)), dim3(kCheckTile, kCheckTile)>>>(
      a.data(), b.data(), c.data(), shape.m, shape.n, shape.k, mismatches.data());
  EXAMPLE_CHECK(cudaGetLastError());
  return mismatches.ToHost()[0];
}

}  // namespace example
