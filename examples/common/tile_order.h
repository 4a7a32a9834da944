// SPDX-License-Identifier: Apache-2.0
//
// The order in which a persistent GEMM walks over its output tiles.
#pragma once

#if defined(__CUDACC__)
#define EXAMPLE_HOST_DEVICE __host__ __device__
#else
#define EXAMPLE_HOST_DEVICE
#endif

namespace example {

struct Tile {
  int row, column;
};

// Bands of `kBand` tile rows; within a band, column after column. The tiles that the GPU works on
// at one time then form a block that is about as high as wide, which reads the fewest distinct
// rows of A and B: they come from the L2 cache and not from memory.
class TileOrder {
 public:
  static constexpr int kBand = 8;

  EXAMPLE_HOST_DEVICE TileOrder(int rows, int columns) : rows_(rows), columns_(columns) {}
  EXAMPLE_HOST_DEVICE int count() const { return rows_ * columns_; }
  EXAMPLE_HOST_DEVICE Tile At(int index) const {
    const int band = index / (kBand * columns_);
    const int first_row = band * kBand;
    const int height = rows_ - first_row < kBand ? rows_ - first_row : kBand;
    const int in_band = index - first_row * columns_;
    return {first_row + in_band % height, in_band / height};
  }

 private:
  int rows_, columns_;
};

}  // namespace example
