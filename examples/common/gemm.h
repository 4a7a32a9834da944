// SPDX-License-Identifier: Apache-2.0
//
// Host side of the GEMM examples, independent of driver or runtime API: C = A * B^T with A of
// m x k, B of n x k and C of m x n, all row-major fp16; the sum is fp32.
//
// Inputs are odd multiples of 1/32 between -31/32 and 31/32, so every product and every sum of up
// to kMaxK of them is exact in fp32, in whatever order it is added. A right result is therefore
// known to the bit: the nearest fp16 to the exact sum. No tolerance hides an error.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "common/args.h"

namespace example {

struct GemmShape {
  int m, n, k;
};

// The GPU's check of all elements (gemm_check.cuh) works on square tiles of C.
inline constexpr int kCheckTile = 32;
inline unsigned CheckTiles(int extent) {
  return static_cast<unsigned>((extent + kCheckTile - 1) / kCheckTile);
}

// 31 * 31 * kMaxK < 2^24: the sum of so many products has 24 significant bits.
inline constexpr int kMaxK = 17408;

struct GemmOptions {
  GemmShape shape;
  int iterations = 20;
  int warmup = 3;
};

// The three sizes must be multiples of those of `unit`.
inline GemmOptions ParseGemmOptions(int argc, char** argv, const char* about, GemmShape unit) {
  GemmOptions options{};
  int size = 4096;
  GemmShape shape{0, 0, 0};
  ParseArgs(argc, argv, about,
            {{"--size", &size, 1, "m, n and k, where they are not given"},
             {"--m", &shape.m, 0, "rows of A and C; 0: --size"},
             {"--n", &shape.n, 0, "rows of B, columns of C; 0: --size"},
             {"--k", &shape.k, 0, "columns of A and B; 0: --size"},
             {"--iterations", &options.iterations, 1, "timed launches"},
             {"--warmup", &options.warmup, 0, "launches before the timed ones"}});
  for (int* extent : {&shape.m, &shape.n, &shape.k}) {
    if (*extent == 0) *extent = size;
  }
  if (shape.m % unit.m != 0 || shape.n % unit.n != 0 || shape.k % unit.k != 0) {
    std::fprintf(stderr, "%s: m must be a multiple of %d, n of %d and k of %d, not %d, %d, %d\n",
                 argv[0], unit.m, unit.n, unit.k, shape.m, shape.n, shape.k);
    std::exit(2);
  }
  if (shape.k > kMaxK) {
    std::fprintf(stderr, "%s: k can be %d at most, or sums would not be exact\n", argv[0], kMaxK);
    std::exit(2);
  }
  options.shape = shape;
  return options;
}

// `count` numerators: odd numbers from -31 to 31, the same for the same seed.
inline std::vector<int8_t> MakeNumerators(size_t count, uint64_t seed) {
  std::vector<int8_t> numerators(count);
  for (int8_t& numerator : numerators) {
    seed ^= seed << 13;  // xorshift64
    seed ^= seed >> 7;
    seed ^= seed << 17;
    numerator = static_cast<int8_t>(2 * static_cast<int>(seed >> 59) - 31);
  }
  return numerators;
}

// numerator / 32 as fp16; numerator is not 0 and at most 31 in magnitude.
inline uint16_t HalfFromNumerator(int numerator) {
  const int magnitude = std::abs(numerator);
  int log2 = 0;
  while ((magnitude >> (log2 + 1)) != 0) ++log2;
  const int exponent = 15 - 5 + log2;
  const int fraction = (magnitude << (10 - log2)) & 0x3ff;
  return static_cast<uint16_t>((numerator < 0 ? 0x8000 : 0) | exponent << 10 | fraction);
}

inline std::vector<uint16_t> ToHalf(const std::vector<int8_t>& numerators) {
  uint16_t table[63] = {};  // by numerator + 31
  for (int i = -31; i <= 31; i += 2) table[i + 31] = HalfFromNumerator(i);
  std::vector<uint16_t> halves(numerators.size());
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = table[numerators[i] + 31];
  return halves;
}

inline double HalfToDouble(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 0x3ff;
  const double magnitude = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(0x400 | fraction, exponent - 25);
  return half >> 15 != 0 ? -magnitude : magnitude;
}

// The inputs of one problem, and what C must be.
class GemmProblem {
 public:
  explicit GemmProblem(GemmShape shape)
      : shape_(shape),
        a_(MakeNumerators(size_t(shape.m) * shape.k, 0x9e3779b97f4a7c15)),
        b_(MakeNumerators(size_t(shape.n) * shape.k, 0xd1b54a32d192ed03)) {}

  std::vector<uint16_t> a() const { return ToHalf(a_); }
  std::vector<uint16_t> b() const { return ToHalf(b_); }
  // NaN everywhere: what a kernel does not write is found.
  std::vector<uint16_t> unwritten_c() const {
    return std::vector<uint16_t>(size_t(shape_.m) * shape_.n, 0xffff);
  }

  // The exact element of C before it is rounded to fp16.
  double Exact(int row, int column) const {
    const int8_t* a = &a_[size_t(row) * shape_.k];
    const int8_t* b = &b_[size_t(column) * shape_.k];
    int sum = 0;
    for (int i = 0; i < shape_.k; ++i) sum += a[i] * b[i];
    return sum / 1024.0;
  }
  // True if `half` is the nearest fp16 to Exact(row, column): half a unit in the last place away at
  // most. (Sums other than 0 are no smaller than 2^-10, far from subnormal.)
  bool IsRight(uint16_t half, int row, int column) const {
    const double exact = Exact(row, column);
    return std::abs(HalfToDouble(half) - exact) <= std::ldexp(std::abs(exact), -11);
  }
  // How many of 4,096 elements spread over C are wrong, the corners among them. This check shares
  // nothing with the GPU's own of all elements (gemm_check.cuh).
  int WrongSamples(const std::vector<uint16_t>& c) const {
    constexpr int kSide = 64;
    int wrong = 0;
    for (int i = 0; i < kSide; ++i) {
      for (int j = 0; j < kSide; ++j) {
        const int row = static_cast<int>(int64_t(shape_.m - 1) * i / (kSide - 1));
        const int column = static_cast<int>(int64_t(shape_.n - 1) * j / (kSide - 1));
        if (!IsRight(c[size_t(row) * shape_.n + column], row, column)) ++wrong;
      }
    }
    return wrong;
  }

  // Prints the line of an example and returns its exit code. `mismatches` is the GPU's count over
  // all elements.
  int Report(const char* name, double us, unsigned mismatches, int wrong_samples) const {
    const double flop = 2.0 * shape_.m * shape_.n * shape_.k;
    const bool ok = mismatches == 0 && wrong_samples == 0;
    std::printf("%s %dx%dx%d: %.2f us, %.1f TFLOP/s, ", name, shape_.m, shape_.n, shape_.k, us,
                flop / us * 1e-6);
    if (ok) {
      std::printf("ok\n");
    } else {
      std::printf("WRONG: %u elements by the GPU's check, %d of 4096 by the host's\n", mismatches,
                  wrong_samples);
    }
    return ok ? 0 : 1;
  }

 private:
  GemmShape shape_;
  std::vector<int8_t> a_, b_;  // numerators over 32
};

}  // namespace example
