// SPDX-License-Identifier: Apache-2.0
//
// Host side of saxpy, independent of driver or runtime API: options, inputs, check.
#pragma once

#include <algorithm>
#include <cstdio>
#include <vector>

#include "common/args.h"

namespace example::saxpy {

inline constexpr int kThreads = 256;
inline constexpr float kFactor = 0.5f;

struct Options {
  int n = 1 << 24;
  int iterations = 20;
  int warmup = 3;
};

// Launches are limited so that every y stays exact: below 2^24 in units of 0.5.
inline constexpr int kMaxLaunches = 20000;

inline Options ParseOptions(int argc, char** argv) {
  Options options;
  ParseArgs(argc, argv, "y += a * x, a few elements a thread",
            {{"--n", &options.n, 1, "elements of x and y"},
             {"--iterations", &options.iterations, 1, "timed launches"},
             {"--warmup", &options.warmup, 0, "launches before the timed ones"}});
  if (options.iterations > kMaxLaunches || options.warmup > kMaxLaunches) {
    std::fprintf(stderr, "%s: at most %d launches\n", argv[0], kMaxLaunches);
    std::exit(2);
  }
  return options;
}

// Two CTAs a multiprocessor, unless there are fewer elements: threads go over several each.
inline unsigned GridSize(int n, int multiprocessors) {
  return static_cast<unsigned>(std::min(2 * multiprocessors, (n - 1) / kThreads + 1));
}

inline float X(int i) { return static_cast<float>(i % 251); }
inline float Y(int i) { return static_cast<float>(i % 127); }
template <typename F>
std::vector<float> Make(int n, F value) {
  std::vector<float> values(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) values[static_cast<size_t>(i)] = value(i);
  return values;
}

// Checks y after `launches` launches, every element and to the bit; prints the line of the example
// and returns its exit code.
inline int Report(const char* name, const Options& options, double us,
                  const std::vector<float>& y) {
  const float launches = static_cast<float>(options.iterations + options.warmup);
  int wrong = 0;
  for (int i = 0; i < options.n; ++i) {
    if (!(y[static_cast<size_t>(i)] == Y(i) + launches * kFactor * X(i))) ++wrong;
  }
  std::printf("%s n=%d: %.2f us, %.1f GB/s, ", name, options.n, us,
              3.0 * sizeof(float) * options.n / us * 1e-3);
  if (wrong == 0) {
    std::printf("ok\n");
  } else {
    std::printf("WRONG: %d elements\n", wrong);
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace example::saxpy
